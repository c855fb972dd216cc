export type { TaskStatus } from './extensions/tasks/client-task-state.js'
export {
  type ClientTask,
  type ClientTasksOptions,
  type TaskMembers,
  clientTasks,
} from './extensions/tasks/client-tasks.js'
export type { TaskOptions } from './extensions/tasks/task-options.js'
export { type TasksOptions, tasks } from './extensions/tasks/tasks.js'
export {
  type ClaimedTask,
  MemoryTaskStore,
  type MemoryTaskStoreOptions,
  type NewTask,
  type StoredTask,
  type TaskChange,
  type TaskStore,
} from './stores/task-store.js'
