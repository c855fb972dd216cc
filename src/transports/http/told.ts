import { type Message, read } from '../../jsonrpc/message.js'

/** How much is remembered of one session, in characters. */
const MOST = 64 * 1024

/** What a client has told its session that outlives a request: who it is, that it is ready, and what it wants to hear of. */
export class Told {
  readonly #opening: string
  readonly #frames = new Map<string, string>()
  #size: number

  /** `opening` is the text of `initialize`. */
  constructor(opening: string) {
    this.#size = opening.length
    this.#opening = this.complete ? opening : ''
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
    return this.#size <= MOST
  }

  /** Takes note of a message; true where it said something new. */
  note(message: Message): boolean {
    if (message.kind === 'batch') return message.frames.map((frame) => this.note(read(frame))).includes(true)
    if (message.kind !== 'request' && message.kind !== 'notification') return false
    const { method, params, frame } = message
    switch (method) {
      case 'notifications/initialized':
      case 'logging/setLevel':
        return this.#set(method, frame)
      case 'resources/subscribe':
        return this.#set(`watches ${String(params?.['uri'])}`, frame)
      case 'resources/unsubscribe':
        return this.#set(`watches ${String(params?.['uri'])}`, '')
      default:
        return false
    }
  }

  #set(key: string, frame: string): boolean {
    const before = this.#frames.get(key) ?? ''
    if (before === frame || !this.complete) return false
    this.#frames.delete(key)
    if (frame !== '') this.#frames.set(key, frame)
    this.#size += frame.length - before.length
    if (!this.complete) this.#frames.clear()
    return true
  }
}
