import type { RpcError } from './errors.js'

/** A pipe of messages between two peers. What crosses it is their text. */
export interface Channel {
  /** Sends one message. A channel that is closed drops it. */
  send(frame: string): void
  /** Whether the other side does not read: what is sent now has to wait. */
  readonly congested?: boolean
  /** Starts delivery; called once. */
  receive(receiver: Receiver): void
  /** Sends what is queued, then closes. */
  close(): Promise<void>
}

export interface Receiver {
  frame(frame: string): void
  /** Bytes that were no message: why, and the ends of them where they may tell more. */
  garbage(error: RpcError, head: string, tail: string): void
  /** Nothing more will come. With an error, the channel broke. */
  closed(error?: Error): void
}

export interface Tapped {
  direction: 'in' | 'out'
  frame: string
}

/**
 * The same channel, with every frame shown to `watch` as it passes. A channel
 * that nobody taps has no trace of this.
 */
export function tap(channel: Channel, watch: (tapped: Tapped) => void): Channel {
  return {
    send(frame) {
      watch({ direction: 'out', frame })
      channel.send(frame)
    },
    receive(receiver) {
      channel.receive({
        frame(frame) {
          watch({ direction: 'in', frame })
          receiver.frame(frame)
        },
        garbage(error, head, tail) {
          watch({ direction: 'in', frame: head })
          receiver.garbage(error, head, tail)
        },
        closed: (error) => receiver.closed(error),
      })
    },
    get congested() {
      return channel.congested ?? false
    },
    close: () => channel.close(),
  }
}
