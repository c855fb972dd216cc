import type { Budget } from '../../jsonrpc/budget.js'
import {
  type Message,
  type Params,
  encodeNotification,
  encodeRequest,
  read,
} from '../../jsonrpc/message.js'
import { clientFacts } from '../../protocol/revisions/client-facts.js'

/** How much is remembered of one session, in characters. */
const MOST = 64 * 1024
/** The longest log level. */
const MAX_LEVEL = 16

/** Something that a message says, and that outlives it. */
type Fact = 'initialized' | { level: string } | { subscribe: string } | { unsubscribe: string }

const INITIALIZED = encodeNotification('notifications/initialized', undefined)
/** Nobody sees the ids: the answers were given long ago. */
const ID = 0

/** An `initialize` that says what is remembered of a client; empty where it is refused anyway. */
export function openingOf(params: Params | undefined): string {
  try {
    return encodeRequest(ID, 'initialize', clientFacts(params ?? {}))
  } catch {
    return ''
  }
}

/** What a client has told its session that outlives a request: who it is, that it is ready, and what it wants to hear of. */
export class SessionState {
  readonly #budget: Budget
  #opening: string
  #initialized = false
  #level: string | undefined
  readonly #uris = new Set<string>()
  #size = 0
  #complete = true

  /** `opening` is an `initialize`, as `openingOf` writes it. What comes behind it is taken from the budget. */
  constructor(opening: string, budget: Budget) {
    this.#opening = opening
    this.#budget = budget
  }

  get opening(): string {
    return this.#opening
  }

  /** What came behind it, as messages. */
  get frames(): readonly string[] {
    const subscribed = [...this.#uris].map((uri) =>
      encodeRequest(ID, 'resources/subscribe', { uri }),
    )
    if (this.#level !== undefined)
      subscribed.unshift(encodeRequest(ID, 'logging/setLevel', { level: this.#level }))
    return this.#initialized ? [INITIALIZED, ...subscribed] : subscribed
  }

  /** Whether that is all of it: it may have been too much. */
  get complete(): boolean {
    return this.#complete
  }

  /** Takes note of what a message has said; true where that was new. */
  note(facts: readonly Fact[]): boolean {
    return facts.map((fact) => this.#complete && this.#noteOne(fact)).includes(true)
  }

  #noteOne(fact: Fact): boolean {
    if (fact === 'initialized') {
      const before = this.#initialized
      this.#initialized = true
      return !before
    }
    if ('level' in fact) {
      const before = this.#level
      this.#level = fact.level
      return before !== fact.level
    }
    if ('unsubscribe' in fact) {
      const known = this.#uris.delete(fact.unsubscribe)
      if (known) this.#grow(-sizeOf(fact.unsubscribe))
      return known
    }
    if (this.#uris.has(fact.subscribe)) return false
    this.#uris.add(fact.subscribe)
    this.#grow(sizeOf(fact.subscribe))
    return true
  }

  /** What is kept here is kept by the subscriptions as well: what counts is the copy in a store. */
  #grow(characters: number): void {
    if (this.#size + characters <= MOST && this.#budget.take(2 * characters))
      this.#size += characters
    else {
      this.#complete = false
      this.#opening = ''
      this.#uris.clear()
      this.#budget.give(2 * this.#size)
      this.#size = 0
    }
  }
}

/** How many characters a subscription has as a message. */
function sizeOf(uri: string): number {
  return 80 + uri.length
}

/** What is to be remembered of a message, once it is answered. */
export function factsOf(message: Message): Fact[] {
  if (message.kind === 'batch') return message.frames.flatMap((frame) => factsOf(read(frame)))
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
