import type { Budget } from '../../jsonrpc/budget.js'
import {
  type Message,
  type Params,
  encodeNotification,
  encodeRequest,
  read,
} from '../../jsonrpc/message.js'
import type { MethodFacts, SessionFact } from '../../protocol/methods.js'
import { clientFacts } from '../../protocol/revisions/client-facts.js'

/** How much is remembered of one session, in characters. */
const MOST = 64 * 1024
/** The longest value of a request of which only the last is stored, in characters. */
const MAX_LAST = 16

/** Something that a message says, and that outlives it. */
type Fact = 'initialized' | (SessionFact & { method: string; value: string })
type LookUp = (method: string) => MethodFacts | undefined

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
  /** The values of each parameter that is stored, by method; of some methods only the last. */
  readonly #values = new Map<string, { param: string; values: Set<string> }>()
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
    const requests = [...this.#values].flatMap(([method, { param, values }]) =>
      Array.from(values, (value) => encodeRequest(ID, method, { [param]: value })),
    )
    return this.#initialized ? [INITIALIZED, ...requests] : requests
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
    const { param, value, keep } = fact
    const undo = typeof keep === 'object'
    const method = undo ? keep.undoes : fact.method
    const { values } = this.#values.get(method) ?? { values: new Set<string>() }
    if (values.has(value) !== undo) return false
    this.#values.set(method, { param, values })
    if (keep === 'last') values.clear()
    if (undo) values.delete(value)
    else values.add(value)
    if (keep !== 'last') this.#grow(undo ? -sizeOf(value) : sizeOf(value))
    return true
  }

  /** What is kept here is kept by the subscriptions as well: what counts is the copy in a store. */
  #grow(characters: number): void {
    if (this.#size + characters <= MOST && this.#budget.take(2 * characters))
      this.#size += characters
    else {
      this.#complete = false
      this.#opening = ''
      this.#values.clear()
      this.#budget.give(2 * this.#size)
      this.#size = 0
    }
  }
}

/** How many characters a stored request has. */
function sizeOf(value: string): number {
  return 80 + value.length
}

/** What is to be remembered of a message, once it is answered. */
export function factsOf(message: Message, lookUp: LookUp): Fact[] {
  if (message.kind === 'batch')
    return message.frames.flatMap((frame) => factsOf(read(frame), lookUp))
  if (message.kind === 'notification')
    return message.method === 'notifications/initialized' ? ['initialized'] : []
  if (message.kind !== 'request') return []
  const { method, params } = message
  const fact = lookUp(method)?.session
  const value = params?.[fact?.param ?? '']
  if (fact === undefined || typeof value !== 'string') return []
  return fact.keep === 'last' && value.length > MAX_LAST ? [] : [{ ...fact, method, value }]
}
