import type { Budget } from '../../jsonrpc/budget.js'
import {
  type Id,
  type Message,
  type Params,
  encodeNotification,
  encodeRequest,
  messagesIn,
} from '../../jsonrpc/message.js'
import type { MethodDescriptor, SessionEffect } from '../../protocol/methods.js'
import { storedInitializeParams } from '../../protocol/revisions/initialize-params.js'

/** Maximum characters of stored requests per session. */
export const MAX_CHARACTERS = 64 * 1024
/** Maximum length of a value of which only the last is stored, such as a log level. */
const MAX_LAST = 16

/** A change of the session state by one message. */
export type StateChange =
  | 'initialized'
  | (SessionEffect & { readonly id: Id; readonly method: string; readonly value: string })
type Methods = ReadonlyMap<string, MethodDescriptor>

const INITIALIZED = encodeNotification('notifications/initialized', undefined)
/** Of requests that are repeated when a session is restored: their responses are not sent. */
const ID = 0

/** An `initialize` request with the params that matter to a session; empty if they are invalid. */
export function initializeOf(params: Params | undefined): string {
  try {
    return encodeRequest(ID, 'initialize', storedInitializeParams(params ?? {}))
  } catch {
    return ''
  }
}

/** The state that a client has set in its session: its initialize params, log level and subscriptions. */
export class SessionState {
  readonly #budget: Budget
  #initialize: string
  #initialized = false
  /** The stored values of a parameter, by method. */
  readonly #values = new Map<string, { param: string; values: Set<string> }>()
  #size = 0
  #changeCount = 0
  #complete = true

  /** `initialize` comes from `initializeOf`. Subscriptions count against the budget. */
  constructor(initialize: string, budget: Budget) {
    this.#initialize = initialize
    this.#budget = budget
  }

  get initialize(): string {
    return this.#initialize
  }

  /** The messages that restore the state after `initialize`. */
  get messages(): readonly string[] {
    const messages = [...this.#values].flatMap(([method, { param, values }]) =>
      Array.from(values, (value) => encodeRequest(ID, method, { [param]: value })),
    )
    return this.#initialized ? [INITIALIZED, ...messages] : messages
  }

  /** False if the state was too large, and is not stored. */
  get complete(): boolean {
    return this.#complete
  }

  /** How many changes were applied. */
  get changeCount(): number {
    return this.#changeCount
  }

  /** Takes the characters that changes need at most, until they are applied or released; undefined if they do not fit. */
  reserve(changes: readonly StateChange[]): number | undefined {
    const characters = changes.reduce((sum, change) => sum + this.#growthBy(change), 0)
    return characters === 0 || this.#take(characters) ? characters : undefined
  }

  release(reserved: number): void {
    if (reserved > 0) this.#shrink(reserved)
  }

  /** Applies changes; true if the state is different afterwards. Those for which `reserve` was called always fit. */
  apply(changes: readonly StateChange[], reserved?: number): boolean {
    this.release(reserved ?? 0)
    const isReserved = reserved !== undefined
    const applied = changes.filter((change) => this.#complete && this.#applyOne(change, isReserved))
    this.#changeCount += applied.length
    return applied.length > 0
  }

  /** Removes what requests have set. */
  remove(changes: readonly StateChange[]): void {
    for (const change of changes) {
      if (change === 'initialized') continue
      const { method, value, keep } = change
      if (this.#values.get(method)?.values.delete(value) !== true) continue
      if (keep === 'each') this.#shrink(sizeOf(value))
      this.#changeCount++
    }
  }

  #growthBy(change: StateChange): number {
    if (change === 'initialized' || change.keep !== 'each') return 0
    const { method, value } = change
    return this.#values.get(method)?.values.has(value) === true ? 0 : sizeOf(value)
  }

  #applyOne(change: StateChange, isReserved: boolean): boolean {
    if (change === 'initialized') {
      const before = this.#initialized
      this.#initialized = true
      return !before
    }
    const { param, value, keep } = change
    const undo = typeof keep === 'object'
    const method = undo ? keep.undoes : change.method
    const { values } = this.#values.get(method) ?? { values: new Set<string>() }
    if (values.has(value) !== undo) return false
    this.#values.set(method, { param, values })
    if (keep === 'last') values.clear()
    if (undo) values.delete(value)
    else values.add(value)
    if (undo) this.#shrink(sizeOf(value))
    else if (keep === 'each') this.#grow(sizeOf(value), isReserved)
    return true
  }

  #grow(characters: number, isReserved: boolean): void {
    if (isReserved) return this.#charge(characters)
    if (this.#take(characters)) return
    this.#complete = false
    this.#initialize = ''
    this.#values.clear()
    this.#shrink(this.#size)
  }

  #take(characters: number): boolean {
    const fits = this.#size + characters <= MAX_CHARACTERS && this.#budget.fits(2 * characters)
    if (fits) this.#charge(characters)
    return fits
  }

  /** Two bytes per character: the state and its copy in a store. */
  #charge(characters: number): void {
    this.#size += characters
    this.#budget.charge(2 * characters)
  }

  #shrink(characters: number): void {
    this.#charge(-characters)
  }
}

/** Length of a stored request. */
function sizeOf(value: string): number {
  return 80 + value.length
}

/** How a message changes the state, as far as it succeeds. */
export function stateChangesOf(message: Message, methods: Methods): StateChange[] {
  if (message.kind === 'batch')
    return messagesIn(message).flatMap((each) => stateChangesOf(each, methods))
  if (message.kind === 'notification')
    return message.method === 'notifications/initialized' ? ['initialized'] : []
  if (message.kind !== 'request') return []
  const { id, method, params } = message
  const effect = methods.get(method)?.session
  const value = params?.[effect?.param ?? '']
  if (effect === undefined || typeof value !== 'string') return []
  return effect.keep === 'last' && value.length > MAX_LAST ? [] : [{ ...effect, id, method, value }]
}
