import type { ExtensionConnection } from '../../client/extension.js'
import { TimeoutError } from '../../jsonrpc/deadline.js'
import { RpcError, abortError, withCode } from '../../jsonrpc/errors.js'
import { markHandled } from '../../jsonrpc/hook.js'
import { onAbort } from '../../jsonrpc/on-abort.js'
import type { Params } from '../../jsonrpc/message.js'
import { untilAborted } from '../../client/until-aborted.js'
import { TaskQuestions } from './client-task-questions.js'
import {
  type ReceivedTask,
  type TaskStatus,
  ageOf,
  isEnded,
  outcomeOf,
} from './client-task-state.js'
import { TaskWatch, type WatchOptions, type WatchedTasks, isLost } from './client-task-watch.js'

/** Milliseconds for which a task that has outlived its `ttlMs` is still polled. */
const GRACE = 60_000

export interface WaitOptions {
  /** Whether the first state is that of a new task, which lacks what belongs to its status. */
  isNew: boolean
  connection: ExtensionConnection
  /** Sends a request with the timeouts of the caller. */
  request: ExtensionConnection['request']
  watched: WatchedTasks
  /** Fires when the caller gives up. */
  signal: AbortSignal
  /** Milliseconds in total. */
  maxWait: number
  seen(task: TaskStatus): void
}

/** Waits until a task has ended, and answers its questions. If the caller gives up, or cannot go on, the task is cancelled. */
export async function waitFor(first: ReceivedTask, options: WaitOptions): Promise<Params> {
  const { connection, signal } = options
  const { taskId } = first.status
  const stop = new AbortController()
  const giveUp = (error: unknown) => {
    if (stop.signal.aborted) return
    stop.abort(error)
    // Not with the signal of the caller, which may be aborted.
    void markHandled(connection.request('tasks/cancel', { taskId }))
  }
  const abort = () => giveUp(abortError(signal.reason))
  const unlisten = onAbort(signal, abort)
  if (signal.aborted) abort()
  try {
    return await untilAborted(follow(first, options, stop.signal, giveUp), stop.signal)
  } catch (error) {
    if (error instanceof Ended) throw error.reason
    // One that cannot be reached now can be resumed later.
    if (!isLost(error) && !(error instanceof RpcError) && !isUnknown(error)) giveUp(error)
    throw error
  } finally {
    unlisten()
    stop.abort(new Error('The task is no longer waited for'))
  }
}

/** The task has ended without a result. */
class Ended extends Error {
  readonly reason: unknown

  constructor(reason: unknown) {
    super('The task has ended')
    this.reason = reason
  }
}

async function follow(
  first: ReceivedTask,
  { connection, request, watched, maxWait, seen, isNew }: WaitOptions,
  signal: AbortSignal,
  giveUp: (error: unknown) => void,
): Promise<Params> {
  const watching: WatchOptions = { connection, request, watched, signal }
  const watch = new TaskWatch(first.status, watching)
  const questions = new TaskQuestions({
    answer: connection.answer,
    send: (inputResponses) => watch.request('tasks/update', { inputResponses }),
    failed: giveUp,
  })
  const began = performance.now()
  const age = ageOf(first.status)
  try {
    let task = { ...first, polled: true }
    if (isNew) {
      seen(task.status)
      task = await watch.next(task.status.status === 'working' ? maxWait : 0)
    }
    for (;;) {
      signal.throwIfAborted()
      seen(task.status)
      if (isEnded(task.status)) return endOf(task)
      await questions.see(task, task.polled)
      const waited = performance.now() - began
      const late = lateBy(task.status, waited, age, maxWait)
      if (late !== undefined) giveUp(late)
      signal.throwIfAborted()
      task = await watch.next(maxWait - waited)
    }
  } finally {
    watch.end()
    questions.end()
  }
}

function endOf(task: ReceivedTask): Params {
  try {
    return outcomeOf(task)
  } catch (error) {
    throw new Ended(error)
  }
}

/** Whether the server does not know the task. */
function isUnknown(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof RpcError
}

/** Why a task is not waited for any longer. A client may take it for unusable after its `ttlMs`. */
function lateBy(
  { ttlMs }: TaskStatus,
  waited: number,
  age: number,
  maxWait: number,
): Error | undefined {
  if (waited >= maxWait) return new TimeoutError(`The task has not ended within ${maxWait} ms`)
  if (ttlMs === null || waited + age <= ttlMs + GRACE) return undefined
  const message = `The task has not ended within its time to live of ${ttlMs} ms`
  return withCode('TASK_EXPIRED', new Error(message))
}
