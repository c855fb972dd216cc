import type { Params } from '../../jsonrpc/message.js'
import type { Suspension } from '../../server/asking/ask-by-result.js'
import type { Recorded } from '../../server/asking/steps.js'
import type { Caller } from '../../server/call.js'
import type { Carrier } from '../../protocol/telemetry.js'

/** A question that has not been answered. */
export interface OpenQuestion {
  /** Its key in `call.ask`. */
  readonly key: string
  readonly digest: string
  readonly request: { readonly method: string; readonly params: object }
}

/** The part of a task that changes. */
export interface TaskState {
  readonly tool: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string | undefined
  readonly createdAt: number
  readonly updatedAt: number
  readonly ttl: number
  readonly poll?: number | undefined
  /** The idempotency key of the call. */
  readonly key: string
  /** How often the handler was started. */
  readonly attempt: number
  /** Whether the handler is running. */
  readonly started: boolean
  /** The name of the run that has begun last, and of what it has appended last: it recognizes its own writes. */
  readonly run?: string
  readonly appended?: string
  /** How often it was run again after it was interrupted. */
  readonly retried?: number
  /** The bytes of its entries. */
  readonly bytes: number
  /** How many questions were asked, so that no key is used twice. */
  readonly questions: number
  /** By their keys on the wire. */
  readonly open: Readonly<Record<string, OpenQuestion>>
  /** Whether the rest cannot be opened; not stored. */
  readonly unreadable?: boolean
  readonly result?: object
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** The call that a task runs. */
export interface TaskOrigin {
  readonly arguments: unknown
  readonly meta: Readonly<Record<string, unknown>>
  readonly client: Caller
  readonly remote: boolean
  /** A digest of the tool's name, schemas and version. */
  readonly definition: string
  /** The trace context of the call, with telemetry. */
  readonly trace?: Carrier
}

export type Answers = Suspension['answers']

/** What is appended to a task; the first entry is its origin. */
export type TaskEntry =
  | { readonly origin: TaskOrigin }
  | { readonly step: string; readonly outcome: Recorded }
  | { readonly answer: string; readonly digest: string; readonly response: unknown }

/** The recorded steps and answers as entries. */
export function entriesOf(answers: Answers, steps: Readonly<Record<string, Recorded>>) {
  const entries: TaskEntry[] = []
  for (const [step, outcome] of Object.entries(steps)) entries.push({ step, outcome })
  for (const [answer, given] of Object.entries(answers))
    for (const [digest, response] of Object.entries(given))
      entries.push({ answer, digest, response })
  return entries
}

/** What the handler of a task needs to be run again. */
export interface Restored {
  readonly origin: TaskOrigin
  readonly steps: Readonly<Record<string, Recorded>>
  readonly answers: Answers
}

export function restore(entries: readonly string[]): Restored {
  let origin: TaskOrigin | undefined
  // Maps: a key may be `__proto__`.
  const steps = new Map<string, Recorded>()
  const answers = new Map<string, Record<string, unknown>>()
  for (const text of entries) {
    const entry = JSON.parse(text) as TaskEntry // written by this extension
    if ('origin' in entry) origin = entry.origin
    else if ('step' in entry) steps.set(entry.step, entry.outcome)
    else answers.set(entry.answer, { ...answers.get(entry.answer), [entry.digest]: entry.response })
  }
  if (origin === undefined) throw new TypeError('The stored task has no origin')
  return { origin, steps: Object.fromEntries(steps), answers: Object.fromEntries(answers) }
}

export function isTerminal({ status }: TaskState): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** The longest poll interval that the server proposes by itself, in milliseconds. It grows in whole seconds. */
const SLOWEST = 10_000

/** The members that a task has in every message. */
export function taskOf(taskId: string, state: TaskState): Params {
  const { status, statusMessage, createdAt, updatedAt, ttl, poll } = state
  const age = Math.max(updatedAt, Date.now()) - createdAt
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs: ttl,
    pollIntervalMs: poll ?? Math.min(SLOWEST, Math.max(1, Math.floor(age / 20_000)) * 1000),
  }
}

/** The task as `tasks/get` and `notifications/tasks` carry it: with its questions, result or error. */
export function detailedTask(taskId: string, state: TaskState): Params {
  const task = taskOf(taskId, state)
  const { status, open, result, error } = state
  switch (status) {
    case 'input_required': {
      const requests = Object.entries(open).map(([key, { request }]) => [key, request] as const)
      return { ...task, inputRequests: Object.fromEntries(requests) }
    }
    case 'completed':
      return { ...task, result }
    case 'failed':
      return { ...task, error }
    default:
      return task
  }
}
