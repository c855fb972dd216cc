import { Deadline } from '../jsonrpc/deadline.js'

export interface Progress {
  progress: number
  total?: number
  message?: string
}

export interface CallOptions {
  /** Cancels the request. */
  signal?: AbortSignal
  /** Milliseconds without a response or progress (default 60 s). */
  timeout?: number
  /** Milliseconds in total, also with progress (default 10 min). */
  maxTimeout?: number
  /** Requests progress notifications, and is called with each. */
  onProgress?: (progress: Progress) => unknown
}

export interface SessionCallOptions extends CallOptions {
  /** Called if the response is not yet the result: it needs input, or belongs to an extension. */
  onRound?: () => void
  /** The timeouts of the call, if it has waited for something else before. */
  deadline?: Deadline
}

const TIMEOUT = 60_000
const MAX_TIMEOUT = 600_000

/** The timeouts of one call, for all that it waits for. `busy`: whether the server waits for this client. */
export function deadlineOf(
  { timeout = TIMEOUT, maxTimeout = MAX_TIMEOUT }: CallOptions,
  busy?: () => boolean,
): Deadline {
  return new Deadline({ idle: timeout, total: maxTimeout, ...(busy && { busy }) })
}
