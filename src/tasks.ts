export type { TaskStatus } from './extensions/tasks/client-task-state.js'
export {
  type ClientTask,
  type ClientTasksOptions,
  type TaskMembers,
  clientTasks,
} from './extensions/tasks/client-tasks.js'
export type { TaskOptions } from './extensions/tasks/task-options.js'
export { type TasksOptions, tasks } from './extensions/tasks/tasks.js'
export { MemoryTaskStore, type MemoryTaskStoreOptions } from './stores/memory-task-store.js'
export type {
  ClaimedTask,
  NewTask,
  StoreReport,
  StoredTask,
  TaskChange,
  TaskCommand,
  TaskStore,
} from './stores/task-store.js'
