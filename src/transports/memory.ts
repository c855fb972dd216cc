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
  #paused = false
  /** Whether the other end has closed: what it has sent before is delivered first. */
  #ended = false
  #closed = false
  readonly #exchange: ChannelExchange | undefined

  constructor(principal?: Principal) {
    if (principal !== undefined) this.#exchange = new ChannelExchange(this, principal)
  }

  send(frame: string): void {
    const { other } = this
    // Always asynchronous, like any other transport.
    if (!this.#closed) queueMicrotask(() => other?.receiveFrame(frame))
  }

  receive(receiver: Receiver): void {
    if (this.#closed) return receiver.closed()
    this.#receiver = receiver
    this.#deliver()
  }

  close(): Promise<void> {
    const { other } = this
    if (!this.#closed) queueMicrotask(() => other?.end())
    this.#closed = true
    return Promise.resolve()
  }

  receiveFrame(frame: string): void {
    if (this.#closed) return
    this.#waiting.push(frame)
    this.#deliver()
  }

  end(): void {
    this.#ended = true
    this.#deliver()
  }

  #deliver(): void {
    const receiver = this.#receiver
    if (receiver === undefined) return
    while (!this.#paused && !this.#closed) {
      const frame = this.#waiting.shift()
      if (frame === undefined) break
      receiver.frame(frame, this.#exchange)
      const ready = receiver.ready?.()
      if (ready !== undefined) void this.#pause(ready)
    }
    if (!this.#ended || this.#paused || this.#closed) return
    this.#closed = true
    receiver.closed()
  }

  async #pause(until: Promise<void>): Promise<void> {
    this.#paused = true
    await until
    this.#paused = false
    this.#deliver()
  }
}
