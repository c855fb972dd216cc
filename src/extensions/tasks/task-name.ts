import { revisions } from '../../protocol/revisions/index.js'

/** The id of the extension. */
export const TASKS = 'io.modelcontextprotocol/tasks'

/** The revisions that have it: older ones have no `resultType`, by which a client tells a task from a result. */
export const TASK_REVISIONS: readonly string[] = revisions
  .filter(({ typedResults }) => typedResults)
  .map(({ id }) => id)
