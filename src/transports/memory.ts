import type { Channel, Principal, Receiver } from '../jsonrpc/channel.js'
import { ChannelExchange } from '../jsonrpc/peer.js'

/**
 * The two ends of a channel within this process. Messages cross it as text, as on any other transport. With a principal,
 * every message that the second end receives has it as its authenticated sender.
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
    // Always asynchronous, like any other transport.
    if (!this.#closed) queueMicrotask(() => other?.deliver(frame))
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
    const waiting = this.#waiting
    this.#waiting = []
    for (const frame of waiting) receiver.frame(frame, this.#exchange)
    // The other end may have closed already.
    if (this.#closed) receiver.closed()
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
