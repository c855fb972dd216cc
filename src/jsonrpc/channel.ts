import type { Budget } from './budget.js'
import type { RpcError } from './errors.js'
import { callHook, ignore } from './hook.js'
import type { Id, Message, SentMessage, SentResponse } from './message.js'

/** A pipe of messages between two peers. What crosses it is their text. */
export interface Channel {
  /**
   * Sends one message: its text, and what it is where the sender knows (not for text that is relayed or made up by a
   * test). A closed channel drops it.
   */
  send(frame: string, message?: SentMessage): void
  /**
   * Cancels a request that was sent, where the transport has a way of its own, such as closing the stream of an HTTP
   * response. False: a notification is to be sent instead.
   */
  cancel?(id: Id): boolean
  /** Whether the other side does not read: what is sent now has to wait. */
  readonly congested?: boolean
  /** What the other side may make this one hold, in bytes: until a request is answered, and beyond that. */
  readonly pending?: Budget | undefined
  readonly retained?: Budget | undefined
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
  send(frame: string, message?: SentMessage): void
  /** Called once, at the end: with the response, or without one where there is none. A batch has only a frame. */
  reply(frame?: string, response?: SentResponse): void
  /** Whether the other side does not read. */
  readonly congested?: boolean
  /** Lets go of the connection before the answer: the other side will come back for the rest. Where that is not possible, nothing happens. */
  release?(): void
  /** On whose behalf the message was sent, as far as the transport has made sure of it. */
  readonly principal?: Principal
  /** The HTTP request that carried the message; undefined on other transports. */
  readonly http?: HttpRequest | undefined
}

/** The HTTP request that carried a message, without its credentials. */
export interface HttpRequest {
  /** Names in lower case. A header that was sent several times has its values joined by a comma. */
  readonly headers: HttpHeaders
}

export type HttpHeaders = Readonly<Partial<Record<string, string>>>

/** Somebody whose identity has been verified. */
export interface Principal {
  /** Unique among all who may call. */
  readonly id: string
  readonly scopes: readonly string[]
  /** When this is not so any more, in milliseconds since 1970. */
  readonly expires?: number
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Throws where a value is no principal: not everything that makes one was checked by a compiler. */
export function checkPrincipal(source: string, principal: Principal): void {
  const { id, scopes } = Object(principal) as Partial<Principal>
  if (
    typeof id === 'string' &&
    id !== '' &&
    Array.isArray(scopes) &&
    scopes.every((scope) => typeof scope === 'string')
  )
    return
  throw new TypeError(`${source} a principal: an object with an "id" and an array of "scopes"`)
}

export interface Receiver {
  /** With what was read of it, where the channel had to look into it already. */
  frame(frame: string, exchange?: Exchange, message?: Message): void
  /** Resolves when more messages can be taken in; undefined where they can be now. Where it is not heeded, requests are refused instead. */
  ready?(): Promise<void> | undefined
  /** Bytes that were no message: why, and the ends of them where they may tell more. */
  garbage(error: RpcError, head: string, tail: string): void
  /** A request that was sent gets no response; the channel goes on. HTTP: a status of 401, 404 or 5xx, a broken stream. */
  failed?(id: Id, error: Error): void
  /** Nothing more will come. With an error, the channel broke. */
  closed(error?: Error): void
}

export interface Tapped {
  direction: 'in' | 'out'
  frame: string
}

/**
 * The same channel, with every frame shown to `observe` as it passes. Where that
 * fails, the frame passes all the same, and `failed` is told. A channel that
 * nobody taps has no trace of this.
 */
export function tap(
  channel: Channel,
  observe: (tapped: Tapped) => unknown,
  failed: (error: unknown) => void = ignore,
): Channel {
  const watch = (tapped: Tapped) => callHook(() => observe(tapped), failed)
  return {
    send(frame, message) {
      watch({ direction: 'out', frame })
      channel.send(frame, message)
    },
    cancel: (id) => channel.cancel?.(id) ?? false,
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
        garbage(error, head, tail) {
          watch({ direction: 'in', frame: head })
          receiver.garbage(error, head, tail)
        },
        ready: () => receiver.ready?.(),
        failed: (id, error) => receiver.failed?.(id, error),
        closed: (error) => receiver.closed(error),
      })
    },
    get congested() {
      return channel.congested ?? false
    },
    get pending() {
      return channel.pending
    },
    get retained() {
      return channel.retained
    },
    close: () => channel.close(),
  }
}

function tapExchange(exchange: Exchange, watch: (tapped: Tapped) => void): Exchange {
  const seen = (frame: string, message?: SentMessage) => {
    watch({ direction: 'out', frame })
    exchange.send(frame, message)
  }
  return rerouted(exchange, seen, (frame, response) => {
    if (frame !== undefined) watch({ direction: 'out', frame })
    exchange.reply(frame, response)
  })
}

/** The same exchange, by other ways. */
export function rerouted(
  exchange: Exchange,
  send: Exchange['send'],
  reply: Exchange['reply'],
): Exchange {
  return new Rerouted(exchange, send, reply)
}

/* Classes, not literals with getters: each of those would be a shape of its own, which costs more than all the rest of a call. */

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

/** Most channels have one way for everything. */
export class ChannelExchange implements Exchange {
  readonly principal?: Principal
  readonly #channel: Channel

  constructor(channel: Channel, principal?: Principal) {
    this.#channel = channel
    if (principal !== undefined) this.principal = principal
  }

  get congested(): boolean {
    return this.#channel.congested ?? false
  }

  send(frame: string, message?: SentMessage): void {
    this.#channel.send(frame, message)
  }

  reply(frame?: string, response?: SentResponse): void {
    if (frame !== undefined) this.#channel.send(frame, response)
  }
}
