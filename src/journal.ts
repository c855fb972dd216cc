export { JournalCorruptError } from './stores/journal/journal-lines.js'
export { JournalLockedError, JournalLostError } from './stores/journal/journal-lock.js'
export {
  JournalTaskStore,
  type JournalTaskStoreOptions,
} from './stores/journal/journal-task-store.js'
