import type { ExtensionConnection } from '../../client/extension.js'
import { wait } from '../../client/reconnect.js'
import type { Subscription } from '../../client/subscription.js'
import {
  ChannelClosedError,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  RequestFailedError,
  RpcError,
  withCode,
} from '../../jsonrpc/errors.js'
import { TimeoutError } from '../../jsonrpc/deadline.js'
import { ignore } from '../../jsonrpc/hook.js'
import { onAbort } from '../../jsonrpc/on-abort.js'
import type { Params } from '../../jsonrpc/message.js'
import { MISSING_CLIENT_CAPABILITY } from '../../protocol/errors.js'
import {
  type ReceivedTask,
  type TaskStatus,
  isOlder,
  pollInterval,
  readTask,
  readTaskOf,
} from './client-task-state.js'

/** With a shorter poll interval (milliseconds), no stream is opened. */
const MIN_STREAM_INTERVAL = 500
/** Minimum milliseconds between polls while a stream is open, in case a notification is lost. */
const STREAM_POLL_INTERVAL = 30_000
/** Attempts of a request that gets no response, and the milliseconds between them. */
const ATTEMPTS = 8
const FIRST_PAUSE = 250
const LONGEST_PAUSE = 10_000

/** The tasks that one client waits for, and whether its server sends notifications of tasks. */
export class WatchedTasks {
  readonly #watches = new Map<string, Set<TaskWatch>>()
  /** Undefined until a server has accepted or refused to. */
  notifies: boolean | undefined

  add(watch: TaskWatch): void {
    const watches = this.#watches.get(watch.taskId) ?? new Set()
    this.#watches.set(watch.taskId, watches.add(watch))
  }

  delete(watch: TaskWatch): void {
    const watches = this.#watches.get(watch.taskId)
    watches?.delete(watch)
    if (watches?.size === 0) this.#watches.delete(watch.taskId)
  }

  notified(params: Params): void {
    for (const watch of this.#watches.get(String(params['taskId'])) ?? []) watch.notified(params)
  }
}

export interface WatchOptions {
  connection: ExtensionConnection
  /** Sends a request with the timeouts of the caller. */
  request: ExtensionConnection['request']
  watched: WatchedTasks
  /** Fires when the task is no longer waited for. */
  signal: AbortSignal
}

/** A state, and whether the server has sent it as a response: then it is the newest. */
interface SeenTask extends ReceivedTask {
  readonly polled: boolean
}

/** The states of one task, from notifications if the server sends them, otherwise from polling. */
export class TaskWatch {
  readonly taskId: string
  readonly #options: WatchOptions
  #last: TaskStatus
  /** The newest state of a notification that was not taken yet. */
  #notified: ReceivedTask | undefined
  #pollNow = false
  #wake: () => void = ignore
  #listening: 'not yet' | 'opening' | 'yes' | 'no' = 'not yet'
  #subscription: Subscription | undefined
  #unlisten: () => void = ignore

  constructor(first: TaskStatus, options: WatchOptions) {
    this.taskId = first.taskId
    this.#last = first
    this.#options = options
    options.watched.add(this)
    const { signal } = options.connection
    if (signal.aborted) this.#closed()
    else this.#unlisten = onAbort(signal, this.#closed)
  }

  end(): void {
    this.#unlisten()
    this.#options.watched.delete(this)
    this.#subscription?.unsubscribe().catch(ignore)
  }

  notified(params: Params): void {
    try {
      const task = readTask(params)
      if (isOlder(task.status, this.#notified?.status ?? this.#last)) return
      this.#notified = task
    } catch {
      // It only says that something has changed.
      this.#pollNow = true
    }
    this.#wake()
  }

  /** The next state, after at most so many milliseconds. */
  async next(atMost: number): Promise<SeenTask> {
    const interval = pollInterval(this.#last)
    if (this.#listening === 'not yet' && interval >= MIN_STREAM_INTERVAL) void this.#listen()
    const pause = this.#listening === 'yes' ? Math.max(interval, STREAM_POLL_INTERVAL) : interval
    if (this.#notified === undefined && !this.#pollNow) await this.#sleep(Math.min(pause, atMost))
    const { signal } = this.#options
    signal.throwIfAborted()
    const notified = this.#notified
    this.#notified = undefined
    const task = notified ?? (await this.#poll())
    this.#last = task.status
    return { ...task, polled: notified === undefined }
  }

  async #poll(): Promise<ReceivedTask> {
    this.#pollNow = false
    try {
      return readTaskOf(this.taskId, await this.request('tasks/get'))
    } catch (error) {
      if (!(error instanceof RpcError && error.code === INVALID_PARAMS)) throw error
      const message = 'The server no longer knows the task: it has expired'
      throw withCode('TASK_EXPIRED', new Error(message, { cause: error }))
    }
  }

  /** Sends a request about the task. Retries after errors that may pass, for example while the server restarts. */
  async request(method: string, params: Params = {}): Promise<Params> {
    const { signal, request } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await request(method, { taskId: this.taskId, ...params }, { signal })
      } catch (error) {
        if (signal.aborted || attempt === ATTEMPTS || !isTransient(error)) throw error
        // The next one waits for a new connection, if there will be one.
        if (error instanceof ChannelClosedError) continue
      }
      await wait(Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)), signal)
    }
  }

  async #listen(): Promise<void> {
    const { connection, watched, signal } = this.#options
    if (watched.notifies === false) {
      this.#listening = 'no'
      return
    }
    this.#listening = 'opening'
    try {
      const subscription = await connection.listen('taskIds', [this.taskId], {
        signal,
        onMissed: () => this.#streamChanged('yes'),
        onInterrupted: () => this.#streamChanged('no'),
      })
      watched.notifies = true
      if (signal.aborted) return await subscription.unsubscribe()
      this.#subscription = subscription
      this.#streamChanged('yes')
    } catch (error) {
      if (!signal.aborted && isRefusal(error)) watched.notifies ??= false
      this.#listening = 'no'
    }
  }

  /** The connection was closed: polls at once, which rejects with the reason. */
  readonly #closed = (): void => {
    this.#pollNow = true
    this.#wake()
  }

  /** The stream begins or ends: the state may have changed meanwhile. */
  #streamChanged(listening: 'yes' | 'no'): void {
    this.#listening = listening
    this.#pollNow = true
    this.#wake()
  }

  #sleep(milliseconds: number): Promise<void> {
    const { signal } = this.#options
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        this.#wake = ignore
        resolve()
      }
      const timer = setTimeout(wake, milliseconds)
      this.#wake = wake
      if (signal.aborted) wake()
      else signal.addEventListener('abort', wake)
    })
  }
}

/** Whether a retry may succeed. */
function isTransient(error: unknown): boolean {
  if (error instanceof RpcError) return error.code === INTERNAL_ERROR
  if (!(error instanceof RequestFailedError)) return isLost(error)
  const { code, status = 0 } = error
  if (code === 'HTTP_STATUS') return status >= 500 || status === 429
  return code === 'NETWORK' || code === 'STREAM_ENDED'
}

/** Whether there was no response, so that the task may still exist. */
export function isLost(error: unknown): boolean {
  return (
    error instanceof ChannelClosedError ||
    error instanceof RequestFailedError ||
    error instanceof TimeoutError
  )
}

/** Whether the server sends no notifications of any task. */
function isRefusal(error: unknown): boolean {
  if (error instanceof RpcError)
    return error.code === METHOD_NOT_FOUND || error.code === MISSING_CLIENT_CAPABILITY
  return error instanceof Error && 'code' in error && error.code === 'NOT_SUPPORTED'
}
