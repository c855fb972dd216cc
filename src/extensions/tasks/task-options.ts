import { isObject } from '../../jsonrpc/message.js'
import { nearest, namesOf } from '../../schema/names.js'
import { digest } from '../../server/asking/state.js'
import type { Tool } from '../../server/define.js'
import type { ServedTool } from '../../server/features/served-tool.js'

/** How a tool uses tasks. */
export interface TaskOptions {
  /** `never`: it is called plainly. `may`: a call that takes long becomes a task. `must`: clients without tasks cannot call it. */
  mode: 'never' | 'may' | 'must'
  /** Milliseconds after its creation at which a task is aborted and deleted (default 1 hour). */
  ttl?: number
  /** Milliseconds between two polls of a client (default: 1 second, and more for older tasks). */
  poll?: number
  /** Milliseconds in which a call can finish before it becomes a task (default 1000 for `may`, 0 for `must`). Its questions in this time are part of the call. */
  after?: number
  /** Change it when tasks that wait for answers cannot be continued by the new handler: they fail. */
  version?: string
  /**
   * How often a task is run again that was running when the server stopped or crashed (default 0: it fails). Recorded
   * steps are not repeated; what was done after the last one is, with the same `call.key`.
   */
  retries?: number
  /** Milliseconds before it is run again the first time (default 1000); they double each time, up to a minute. */
  retryDelay?: number
}

declare module '../../server/define.js' {
  interface ToolFields {
    /** Whether calls become tasks: `never` (default), `may` or `must`, or an object with a `mode`. Needs the extension `tasks()`. */
    task?: TaskOptions['mode'] | TaskOptions
  }
}

const MEMBERS = namesOf<TaskOptions>()('mode ttl poll after version retries retryDelay')
const MODES = new Set(['never', 'may', 'must'])
/** A longer timer would fire immediately. */
const LONGEST = 2 ** 31 - 1
const MAX_RETRIES = 1000
const SLOWEST_RETRY = 60_000

/** What is wrong with the `task` of a tool. */
export function checkTaskOptions(value: unknown): string | undefined {
  const options = typeof value === 'string' ? { mode: value } : value
  if (!isObject(options) || !MODES.has(String(options['mode'])))
    return 'must be "never", "may" or "must", or an object with one of them as its "mode"'
  const names = MEMBERS.split(' ')
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined)
    return `has the unknown member "${unknown}"; did you mean "${nearest(unknown, names) ?? names.join('", "')}"?`
  for (const [name, least] of [
    ['ttl', 1],
    ['poll', 1],
    ['after', 0],
    ['retryDelay', 0],
  ] as const) {
    const given = options[name]
    if (given === undefined) continue
    if (!(Number.isInteger(given) && Number(given) >= least && Number(given) <= LONGEST))
      return `has a "${name}" that is not an integer from ${least} to ${LONGEST} (milliseconds)`
  }
  const { version, retries = 0 } = options
  if (!(Number.isInteger(retries) && Number(retries) >= 0 && Number(retries) <= MAX_RETRIES))
    return `has "retries" that are not an integer from 0 to ${MAX_RETRIES}`
  if (version !== undefined && typeof version !== 'string')
    return 'has a "version" that is not a string'
  return undefined
}

/** How a tool uses tasks; undefined if it does not. */
export type ToolTask = NonNullable<ReturnType<typeof taskOptionsOf>>

export function taskOptionsOf({ task }: Tool) {
  const options = typeof task === 'string' ? { mode: task } : task
  if (options === undefined || options.mode === 'never') return undefined
  const { mode, ttl = 3_600_000, poll, after = mode === 'must' ? 0 : 1000, version } = options
  const { retries = 0, retryDelay = 1000 } = options
  return { mode, ttl, poll, after, version, retries, retryDelay }
}

/** Milliseconds to wait before a task is run again; undefined if it is not. */
export function retryDelayOf(
  { retries, retryDelay }: ToolTask,
  retried: number,
): number | undefined {
  return retried < retries ? Math.min(retryDelay * 2 ** retried, SLOWEST_RETRY) : undefined
}

/** A task is continued by the same tool only: its name, schemas and version. The code of the handler may change. */
export function definitionOf({ listing }: ServedTool, { version }: ToolTask): Promise<string> {
  return digest([listing.name, listing.inputSchema, listing.outputSchema ?? null, version ?? null])
}
