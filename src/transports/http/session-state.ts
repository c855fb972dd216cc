import type { Budget } from '../../jsonrpc/budget.js'
import {
  type Message,
  type Params,
  encodeNotification,
  encodeRequest,
  read,
} from '../../jsonrpc/message.js'
import { clientFacts } from '../../protocol/revisions/client-facts.js'

/** Maximum characters of subscriptions per session. */
const MAX_CHARACTERS = 64 * 1024
/** Maximum length of a log level. */
const MAX_LEVEL = 16

/** A change of the session state by one message. */
export type StateChange =
  | 'initialized'
  | { level: string }
  | { subscribe: string }
  | { unsubscribe: string }

const INITIALIZED = encodeNotification('notifications/initialized', undefined)
/** Of requests that are repeated when a session is restored: their responses are not sent. */
const ID = 0

/** An `initialize` request with the params that matter to a session; empty where they are invalid. */
export function initializeOf(params: Params | undefined): string {
  try {
    return encodeRequest(ID, 'initialize', clientFacts(params ?? {}))
  } catch {
    return ''
  }
}

/** The state that a client has set in its session: its initialize params, log level and subscriptions. */
export class SessionState {
  readonly #budget: Budget
  #initialize: string
  #initialized = false
  #level: string | undefined
  readonly #uris = new Set<string>()
  #size = 0
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
    const messages = [...this.#uris].map((uri) => encodeRequest(ID, 'resources/subscribe', { uri }))
    if (this.#level !== undefined)
      messages.unshift(encodeRequest(ID, 'logging/setLevel', { level: this.#level }))
    return this.#initialized ? [INITIALIZED, ...messages] : messages
  }

  /** False where the state was too large, and is not stored. */
  get complete(): boolean {
    return this.#complete
  }

  /** Applies changes; true where the state is different afterwards. */
  apply(changes: readonly StateChange[]): boolean {
    return changes.map((change) => this.#complete && this.#applyOne(change)).includes(true)
  }

  #applyOne(change: StateChange): boolean {
    if (change === 'initialized') {
      const before = this.#initialized
      this.#initialized = true
      return !before
    }
    if ('level' in change) {
      const before = this.#level
      this.#level = change.level
      return before !== change.level
    }
    if ('unsubscribe' in change) {
      const known = this.#uris.delete(change.unsubscribe)
      if (known) this.#grow(-sizeOf(change.unsubscribe))
      return known
    }
    if (this.#uris.has(change.subscribe)) return false
    this.#uris.add(change.subscribe)
    this.#grow(sizeOf(change.subscribe))
    return true
  }

  /** Two bytes per character: the state and its copy in a store. */
  #grow(characters: number): void {
    if (this.#size + characters <= MAX_CHARACTERS && this.#budget.take(2 * characters))
      this.#size += characters
    else {
      this.#complete = false
      this.#initialize = ''
      this.#uris.clear()
      this.#budget.give(2 * this.#size)
      this.#size = 0
    }
  }
}

/** Length of a `resources/subscribe` request. */
function sizeOf(uri: string): number {
  return 80 + uri.length
}

/** How a message changes the state, once it has succeeded. */
export function stateChangesOf(message: Message): StateChange[] {
  if (message.kind === 'batch')
    return message.frames.flatMap((frame) => stateChangesOf(read(frame)))
  if (message.kind !== 'request' && message.kind !== 'notification') return []
  const { uri, level } = message.params ?? {}
  switch (message.method) {
    case 'notifications/initialized':
      return ['initialized']
    case 'logging/setLevel':
      return typeof level === 'string' && level.length <= MAX_LEVEL ? [{ level }] : []
    case 'resources/subscribe':
      return typeof uri === 'string' ? [{ subscribe: uri }] : []
    case 'resources/unsubscribe':
      return typeof uri === 'string' ? [{ unsubscribe: uri }] : []
    default:
      return []
  }
}
