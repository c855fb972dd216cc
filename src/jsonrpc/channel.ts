import type { Budget } from './budget.js'
import type { RpcError } from './errors.js'
import { callHook, ignore } from './hook.js'
import type { Id, Message, SentMessage, SentResponse } from './message.js'

/**
 * A bidirectional pipe of messages between two peers. What crosses it are frames: the text of each message.
 * `test/stdio/channels.test.ts` has the contract of `Channel` and `Receiver` as tests.
 */
export interface Channel {
  /**
   * Sends one message: its text and, if the sender has it, the message itself (a relay has only the text). A closed
   * channel drops it.
   */
  send(frame: string, message?: SentMessage): void
  /**
   * Cancels a sent request in the transport's own way, such as closing the HTTP response stream. False: the transport
   * has none, so `notifications/cancelled` must be sent.
   */
  cancel?(id: Id): boolean
  /** Whether the other side may have received a request that is pending. Without it, every request is sent at once. */
  hasSent?(id: Id): boolean
  /** Whether the other side is not reading, so that what is sent now is buffered. When it ends, call `receiver.drained`. */
  readonly congested?: boolean
  /** Whether no more responses may be buffered: no queued call starts until `receiver.drained` is called. */
  readonly full?: boolean
  /** Limits on the bytes that the other side can make this one hold: for requests in progress, and beyond them (subscriptions). */
  readonly pending?: Budget | undefined
  readonly retained?: Budget | undefined
  /** What is known of the connection, for logs and telemetry. */
  readonly connection?: ConnectionFacts | undefined
  /**
   * Starts delivery; called once. What arrived before is delivered now. A channel that wraps another one forwards every
   * member of `Receiver`.
   */
  receive(receiver: Receiver): void
  /**
   * Sends what is buffered, then closes. May be called again. If the channel owns a stream, it keeps an `error` listener
   * until the stream is gone: a late EPIPE or ECONNRESET without one ends the process.
   */
  close(): Promise<void>
}

export interface ConnectionFacts {
  /** `pipe` for stdio. */
  readonly transport: 'pipe' | 'tcp'
  /** The protocol that carries the messages. */
  readonly protocol?: 'http'
  /** The id of the session for logs and telemetry; it does not grant access. */
  readonly session?: string | undefined
  /** The address of the server, as a client knows it. */
  readonly server?: Address
}

export interface Address {
  /** A host name or an IP address. */
  readonly address: string
  readonly port?: number | undefined
}

/**
 * The return path of one received message. On most transports it is the channel itself (`ChannelExchange`); over HTTP it
 * is the response to the POST. Everything that belongs to the message is sent through it.
 */
export interface Exchange {
  /** Sends what belongs to a request before its response: progress, a log message, an elicitation request. */
  send(frame: string, message?: SentMessage): void
  /** Called once, at the end: with the response, or with nothing for a notification or a cancelled request. A batch has only a frame. */
  reply(frame?: string, response?: SentResponse): void
  /** Whether the other side is not reading. */
  readonly congested?: boolean
  /** Closes the connection before the response; the client reconnects for the rest. Does nothing on transports that cannot resume. */
  release?(): void
  /** The authenticated sender, if the transport has authenticated one. */
  readonly principal?: Principal
  /** The HTTP request that carried the message; undefined on other transports. */
  readonly http?: HttpRequest | undefined
}

/** The HTTP request that carried a message, without its credentials. */
export interface HttpRequest {
  /** By lower-case name. The values of a repeated header are joined by a comma. */
  readonly headers: HttpHeaders
  /** The other end of the connection: the client, or a proxy before it. Undefined if the runtime does not say. */
  readonly client?: Address | undefined
}

export type HttpHeaders = Readonly<Partial<Record<string, string>>>

/** An authenticated caller. */
export interface Principal {
  /** Unique among all callers. */
  readonly id: string
  readonly scopes: readonly string[]
  /** When the authentication expires, in milliseconds since 1970. */
  readonly expires?: number
  readonly claims?: Readonly<Record<string, unknown>>
}

export interface Receiver {
  /** One received message; `message` is given by channels that had to parse it already. */
  frame(frame: string, exchange?: Exchange, message?: Message): void
  /** Backpressure, to be called after each frame: a promise that resolves when more messages can be accepted; undefined if they can be now. A channel that does not wait gets requests rejected instead. */
  ready?(): Promise<void> | undefined
  /** The other side reads again, after the channel was `congested` or `full`: queued calls may start. */
  drained?(): void
  /** Bytes that are not a message: why, and their first and last characters, from which the request id may be read. */
  malformed(error: RpcError, head: string, tail: string): void
  /** A sent request gets no response, though the channel stays open. HTTP: status 401, 404 or 5xx, a broken stream. */
  failed?(id: Id, error: Error): void
  /**
   * Called once, after the last frame: nothing more will be received, and nothing that is sent arrives. With an error if
   * the channel broke. Requests in progress are aborted, so the end of the input alone is not `closed` while responses
   * can still be sent.
   */
  closed(error?: Error): void
}

export interface TappedMessage {
  direction: 'in' | 'out'
  frame: string
}

/**
 * Wraps a channel so that `observe` sees every frame in both directions. An exception in `observe` goes to `failed` and
 * never stops the frame. A channel without a tap has no overhead.
 */
export function tap(
  channel: Channel,
  observe: (tapped: TappedMessage) => unknown,
  failed: (error: unknown) => void = ignore,
): Channel {
  const watch = (tapped: TappedMessage) => callHook(() => observe(tapped), failed)
  return {
    send(frame, message) {
      watch({ direction: 'out', frame })
      channel.send(frame, message)
    },
    cancel: (id) => channel.cancel?.(id) ?? false,
    hasSent: (id) => channel.hasSent?.(id) ?? true,
    receive(receiver) {
      channel.receive({
        frame(frame, exchange, message) {
          watch({ direction: 'in', frame })
          receiver.frame(
            frame,
            exchange === undefined ? undefined : tapExchange(exchange, watch),
            message,
          )
        },
        malformed(error, head, tail) {
          watch({ direction: 'in', frame: head })
          receiver.malformed(error, head, tail)
        },
        ready: () => receiver.ready?.(),
        drained: () => receiver.drained?.(),
        failed: (id, error) => receiver.failed?.(id, error),
        closed: (error) => receiver.closed(error),
      })
    },
    get congested() {
      return channel.congested ?? false
    },
    get full() {
      return channel.full ?? false
    },
    get pending() {
      return channel.pending
    },
    get retained() {
      return channel.retained
    },
    get connection() {
      return channel.connection
    },
    close: () => channel.close(),
  }
}

function tapExchange(exchange: Exchange, watch: (tapped: TappedMessage) => void): Exchange {
  const seen = (frame: string, message?: SentMessage) => {
    watch({ direction: 'out', frame })
    exchange.send(frame, message)
  }
  return rerouted(exchange, seen, (frame, response) => {
    if (frame !== undefined) watch({ direction: 'out', frame })
    exchange.reply(frame, response)
  })
}

/** The same exchange with another `send` and `reply`. */
export function rerouted(
  exchange: Exchange,
  send: Exchange['send'],
  reply: Exchange['reply'],
): Exchange {
  return new Rerouted(exchange, send, reply)
}

/* Classes instead of object literals with getters: V8 gives each such literal its own hidden class, which costs more than the rest of a call. */

class Rerouted implements Exchange {
  readonly send: Exchange['send']
  readonly reply: Exchange['reply']
  readonly principal?: Principal
  readonly #exchange: Exchange

  constructor(exchange: Exchange, send: Exchange['send'], reply: Exchange['reply']) {
    this.#exchange = exchange
    this.send = send
    this.reply = reply
    if (exchange.principal !== undefined) this.principal = exchange.principal
  }

  get http(): HttpRequest | undefined {
    return this.#exchange.http
  }

  get congested(): boolean {
    return this.#exchange.congested ?? false
  }

  release(): void {
    this.#exchange.release?.()
  }
}
