import { type Channel, ChannelExchange, type Principal, type Receiver } from '../jsonrpc/channel.js'

/**
 * Two ends of one pipe in memory. What crosses it is text, as on any other channel. With a principal, the second end
 * receives every message on its behalf.
 */
export function memoryChannels(principal?: Principal): [Channel, Channel] {
  const left = new MemoryChannel()
  const right = new MemoryChannel(principal)
  left.other = right
  right.other = left
  return [left, right]
}

export class MemoryChannel implements Channel {
  other: MemoryChannel | undefined
  #receiver: Receiver | undefined
  #waiting: string[] = []
  #closed = false
  readonly #exchange: ChannelExchange | undefined

  constructor(principal?: Principal) {
    if (principal !== undefined) this.#exchange = new ChannelExchange(this, principal)
  }

  send(frame: string): void {
    const { other } = this
    // Never in the sender's own turn: a real peer is not that close either.
    if (!this.#closed) queueMicrotask(() => other?.deliver(frame))
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
    const waiting = this.#waiting
    this.#waiting = []
    for (const frame of waiting) receiver.frame(frame, this.#exchange)
  }

  close(): Promise<void> {
    const { other } = this
    if (!this.#closed) queueMicrotask(() => other?.end())
    this.#closed = true
    return Promise.resolve()
  }

  deliver(frame: string): void {
    if (this.#closed) return
    if (this.#receiver === undefined) this.#waiting.push(frame)
    else this.#receiver.frame(frame, this.#exchange)
  }

  end(): void {
    if (this.#closed) return
    this.#closed = true
    this.#receiver?.closed()
  }
}
