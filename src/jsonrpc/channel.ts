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

/**
 * Where one message came from, on a channel on which answers have a way of
 * their own: an HTTP request. All that belongs to the message goes there.
 */
export interface Exchange {
  /** Sends what belongs to a request before its answer: progress, a log message, a question. */
  send(frame: string): void
  /** Called once, at the end: with the answer, or without one where there is none. An error is also given as such. */
  reply(frame?: string, error?: RpcError): void
  /** Whether the other side does not read. */
  readonly congested?: boolean
  /** On whose behalf the message was sent, as far as the transport has made sure of it. */
  readonly principal?: Principal
}

/** Somebody whose identity has been verified. */
export interface Principal {
  /** Unique among all who may call. */
  readonly id: string
  readonly scopes: readonly string[]
  readonly claims?: Readonly<Record<string, unknown>>
}

export interface Receiver {
  frame(frame: string, exchange?: Exchange): void
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
        frame(frame, exchange) {
          watch({ direction: 'in', frame })
          receiver.frame(frame, exchange === undefined ? undefined : tapExchange(exchange, watch))
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

function tapExchange(exchange: Exchange, watch: (tapped: Tapped) => void): Exchange {
  const seen = (frame: string) => {
    watch({ direction: 'out', frame })
    exchange.send(frame)
  }
  return rerouted(exchange, seen, (frame, error) => {
    if (frame !== undefined) watch({ direction: 'out', frame })
    exchange.reply(frame, error)
  })
}

/** The same exchange, by other ways. */
export function rerouted(exchange: Exchange, send: Exchange['send'], reply: Exchange['reply']): Exchange {
  const { principal } = exchange
  return {
    send,
    reply,
    get congested() {
      return exchange.congested ?? false
    },
    ...(principal === undefined ? {} : { principal }),
  }
}
