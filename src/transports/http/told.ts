import type { Budget } from '../../jsonrpc/budget.js'
import { type Message, type Params, encodeNotification, encodeRequest, read } from '../../jsonrpc/message.js'
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
export class Told {
  readonly #budget: Budget
  #opening: string
  /** What came behind it, by what it is about. */
  readonly #frames = new Map<string, string>()
  #size = 0
  #complete = true

  /** `opening` is an `initialize`, as `openingOf` writes it. What comes behind it is taken from the budget. */
  constructor(opening: string, budget: Budget) {
    this.#budget = budget
    this.#opening = opening
  }

  get opening(): string {
    return this.#opening
  }

  /** What came behind it, in that order. */
  get frames(): readonly string[] {
    return [...this.#frames.values()]
  }

  /** Whether that is all of it: it may have been too much. */
  get complete(): boolean {
    return this.#complete
  }

  /** Takes note of what a message has said; true where that was new. */
  note(facts: readonly Fact[]): boolean {
    return facts.map((fact) => this.#noteOne(fact)).includes(true)
  }

  #noteOne(fact: Fact): boolean {
    if (fact === 'initialized') return this.#set('initialized', INITIALIZED)
    if ('level' in fact) return this.#set('level', encodeRequest(ID, 'logging/setLevel', fact))
    if ('subscribe' in fact) return this.#set(`watches ${fact.subscribe}`, encodeRequest(ID, 'resources/subscribe', { uri: fact.subscribe }))
    return this.#set(`watches ${fact.unsubscribe}`, '')
  }

  #set(key: string, frame: string): boolean {
    const before = this.#frames.get(key) ?? ''
    if (before === frame || !this.#complete) return false
    this.#frames.delete(key)
    this.#grow((frame === '' ? 0 : key.length + frame.length) - (before === '' ? 0 : key.length + before.length))
    if (frame !== '' && this.complete) this.#frames.set(key, frame)
    return true
  }

  /** Counts for what is kept here, and for the copy in a store. */
  #grow(characters: number): void {
    if (this.#size + characters <= MOST && this.#budget.take(4 * characters)) this.#size += characters
    else {
      this.#complete = false
      this.#opening = ''
      this.#frames.clear()
      this.#budget.give(4 * this.#size)
      this.#size = 0
    }
  }
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
