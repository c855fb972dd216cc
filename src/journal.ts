export { JournalCorruptError } from './stores/journal/journal-file.js'
export { JournalLockedError } from './stores/journal/journal-lock.js'
export {
  JournalTaskStore,
  type JournalTaskStoreOptions,
} from './stores/journal/journal-task-store.js'
