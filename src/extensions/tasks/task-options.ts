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
}

declare module '../../server/define.js' {
  interface ToolFields {
    /** Whether calls become tasks: `never` (default), `may` or `must`, or an object with a `mode`. Needs the extension `tasks()`. */
    task?: TaskOptions['mode'] | TaskOptions
  }
}

const MEMBERS = namesOf<TaskOptions>()('mode ttl poll after version')
const MODES = new Set(['never', 'may', 'must'])
/** A longer timer would fire immediately. */
const LONGEST = 2 ** 31 - 1

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
  ] as const) {
    const given = options[name]
    if (given === undefined) continue
    if (!(Number.isInteger(given) && Number(given) >= least && Number(given) <= LONGEST))
      return `has a "${name}" that is not an integer from ${least} to ${LONGEST} (milliseconds)`
  }
  const { version } = options
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
  return { mode, ttl, poll, after, version }
}

/** A task is continued by the same tool only: its name, schemas and version. The code of the handler may change. */
export function definitionOf({ listing }: ServedTool, { version }: ToolTask): Promise<string> {
  return digest([listing.name, listing.inputSchema, listing.outputSchema ?? null, version ?? null])
}
