import {
  ChannelClosedError,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  RpcError,
  abortError,
  withCode,
} from '../jsonrpc/errors.js'
import { markHandled } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Params } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import { MISSING_CLIENT_CAPABILITY } from '../protocol/errors.js'
import type { CallOptions } from './call-options.js'
import { ListenStream } from './listen-stream.js'
import { type Backoff, wait } from './reconnect.js'
import type { ClientSession } from './session.js'

export type List = 'tools' | 'prompts' | 'resources'

/** What is watched: a resource, a list, or what a field of an extension asks for. */
export type Topic =
  | { readonly uri: string }
  | { readonly list: List }
  | { readonly field: string; readonly value: unknown }

/** How the server of one session is told what is watched. */
export interface SubscriptionLink {
  /** Resolves when the server sends notifications of the topic; rejects if it does not. */
  add(topic: Topic, options?: CallOptions): Promise<void>
  /** Tells the server; may resolve before the server has been told. */
  remove(topic: Topic): Promise<void>
  /** Whether a notification belongs to what was added here. */
  owns(params: Params): boolean
  acknowledged(params: Params): void
  close(): void
}

export interface LinkObserver {
  /** Changes of these topics may have been missed. */
  missed(topics: readonly Topic[]): void
  /** The stream of these topics has ended, and is opened again. */
  interrupted(topics: readonly Topic[]): void
  /** The server no longer accepts a topic that it had accepted. */
  lost(topic: Topic, error: Error): void
  report(entry: LogEntry): void
}

/**
 * For revisions with a handshake: one request per resource; changes of lists are sent to every client.
 * https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions
 */
export class RequestLink implements SubscriptionLink {
  readonly #session: ClientSession
  /** The last request for each URI: over HTTP the next one could overtake it. */
  readonly #last = new Map<string, Promise<unknown>>()

  constructor(session: ClientSession) {
    this.#session = session
  }

  add(topic: Topic, options?: CallOptions): Promise<void> {
    return this.#send('resources/subscribe', topic, options)
  }

  remove(topic: Topic): Promise<void> {
    return this.#send('resources/unsubscribe', topic)
  }

  owns(): boolean {
    return true
  }

  acknowledged(): void {}

  close(): void {}

  async #send(method: string, topic: Topic, options?: CallOptions): Promise<void> {
    if (!('uri' in topic)) return
    const { uri } = topic
    const before = this.#last.get(uri) ?? Promise.resolve()
    const request = () => this.#session.request(method, { uri }, options)
    const sent = markHandled(before.then(request, request))
    this.#last.set(uri, sent)
    try {
      await sent
    } finally {
      if (this.#last.get(uri) === sent) this.#last.delete(uri)
    }
  }
}

interface Waiting {
  resolve(): void
  reject(error: Error): void
}

/** Milliseconds for what is still on its way in a stream that was replaced by another. */
const LINGER = 1000

/**
 * For stateless revisions: one stream for everything that is watched. It is replaced when that changes; the old stream is
 * closed after the new one is acknowledged, so that no notification is lost. A stream that ends is opened again.
 */
export class StreamLink implements SubscriptionLink {
  readonly #session: ClientSession
  readonly #observer: LinkObserver
  readonly #backoff: Backoff
  readonly #wanted = new Set<Topic>()
  readonly #waiting = new Map<Topic, Waiting>()
  #current: ListenStream | undefined
  #covered: ReadonlySet<Topic> = new Set()
  #opening: ListenStream | undefined
  /** Streams that were replaced, with the timers that close them. */
  readonly #replaced = new Map<ListenStream, ReturnType<typeof setTimeout>>()
  #running = false
  /** Whether there was a time without a stream. */
  #gap = false
  /** Ends the pause before the next attempt. */
  #pause = new AbortController()
  #closed = false

  constructor(session: ClientSession, observer: LinkObserver, backoff: Backoff) {
    this.#session = session
    this.#observer = observer
    this.#backoff = backoff
  }

  add(topic: Topic): Promise<void> {
    this.#wanted.add(topic)
    const accepted = new Promise<void>((resolve, reject) =>
      this.#waiting.set(topic, { resolve, reject }),
    )
    this.#pause.abort()
    this.#update()
    return accepted
  }

  remove(topic: Topic): Promise<void> {
    this.#wanted.delete(topic)
    this.#waiting.get(topic)?.resolve()
    this.#waiting.delete(topic)
    if (this.#wanted.size === 0) this.#pause.abort()
    this.#update()
    return Promise.resolve()
  }

  owns(params: Params): boolean {
    const streams = [this.#current, this.#opening]
    // On an ordered channel, what the replaced stream sends after the acknowledgement, the new one sends too.
    if (!this.#session.ordered) streams.push(...this.#replaced.keys())
    return streams.some((stream) => stream?.owns(params) === true)
  }

  acknowledged(params: Params): void {
    if (this.#opening?.owns(params) === true) this.#opening.acknowledge(params)
  }

  close(): void {
    this.#closed = true
    this.#pause.abort()
    for (const [stream, timer] of this.#replaced) {
      clearTimeout(timer)
      stream.close()
    }
    this.#opening?.close()
    this.#current?.close()
  }

  /** Opens, replaces or closes the stream until it covers what is wanted. Changes of one turn are made together. */
  #update(): void {
    if (this.#running) return
    this.#running = true
    queueMicrotask(() => void this.#run())
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isClosed() && !this.#isCovered()) {
        const more = await this.#open([...this.#wanted])
        if (!more) break
      }
      if (this.#wanted.size === 0) {
        this.#current?.close()
        this.#current = undefined
        this.#covered = new Set()
      }
      if (!this.#isClosed()) return
      for (const { reject } of this.#waiting.values())
        reject(new ChannelClosedError('The connection is closed'))
      this.#waiting.clear()
    } finally {
      // In the same turn as the last check, so that no change is overlooked.
      this.#running = false
    }
  }

  #isClosed(): boolean {
    return this.#closed || this.#session.closed
  }

  #isCovered(): boolean {
    if (this.#wanted.size === 0) return true
    if (this.#current === undefined) return false
    // It is opened again after a pause, or at once for a new topic.
    if (this.#current.hasEnded) return this.#waiting.size === 0
    if (this.#wanted.size !== this.#covered.size) return false
    return [...this.#wanted].every((topic) => this.#covered.has(topic))
  }

  /** Opens one stream; false if there is nothing more to do. */
  async #open(topics: readonly Topic[]): Promise<boolean> {
    const stream = new ListenStream(this.#session, filterOf(topics))
    this.#opening = stream
    try {
      const accepted = await stream.acknowledged
      this.#adopt(stream, topics, accepted)
      return true
    } catch (error) {
      stream.close()
      return await this.#failed(topics, abortError(error))
    } finally {
      this.#opening = undefined
    }
  }

  #adopt(stream: ListenStream, topics: readonly Topic[], accepted: Params): void {
    const replaced = this.#current
    this.#current = stream
    this.#backoff.opened()
    if (replaced !== undefined) this.#retire(replaced)
    void stream.ended.then((reason) => this.#ended(stream, reason))
    const covered = topics.filter((topic) => isAccepted(topic, accepted))
    this.#covered = new Set(covered)
    for (const topic of topics)
      if (!this.#covered.has(topic)) this.#refuse(topic, notAccepted(topic))
    const earlier = covered.filter((topic) => !this.#waiting.has(topic))
    for (const topic of covered) {
      this.#waiting.get(topic)?.resolve()
      this.#waiting.delete(topic)
    }
    if (this.#gap) this.#observer.missed(earlier)
    this.#gap = false
  }

  #retire(stream: ListenStream): void {
    if (this.#session.ordered || stream.hasEnded) return stream.close()
    const timer = setTimeout(() => {
      this.#replaced.delete(stream)
      stream.close()
    }, LINGER)
    this.#replaced.set(stream, timer)
  }

  /** New topics fail; the others are tried again later. */
  async #failed(topics: readonly Topic[], error: Error): Promise<boolean> {
    if (this.#isClosed()) return false
    const refused = this.#refusedBy(error, topics)
    for (const topic of refused) this.#refuse(topic, error)
    if (refused.length > 0) return true
    this.#observer.report({
      level: 'warning',
      message: 'The stream of notifications could not be opened',
      error,
    })
    // A stream that could not be narrowed still does its work.
    if (this.#current !== undefined && !this.#current.hasEnded) return false
    await this.#paused()
    return true
  }

  #refusedBy(error: Error, topics: readonly Topic[]): readonly Topic[] {
    const added = topics.filter((topic) => this.#waiting.has(topic))
    if (!(error instanceof RpcError)) return added
    if (error.code === METHOD_NOT_FOUND) return topics
    // An extension that refuses its field must not end what the core protocol sends.
    const addedFields = added.filter((topic) => 'field' in topic)
    if (addedFields.length > 0) return addedFields
    const fields = topics.filter((topic) => 'field' in topic)
    return REFUSALS.has(error.code) && fields.length > 0 ? fields : added
  }

  #refuse(topic: Topic, error: Error): void {
    this.#wanted.delete(topic)
    const waiting = this.#waiting.get(topic)
    this.#waiting.delete(topic)
    if (waiting === undefined) this.#observer.lost(topic, error)
    else waiting.reject(error)
  }

  #ended(stream: ListenStream, reason: Error | undefined): void {
    if (stream !== this.#current || this.#isClosed()) return
    this.#gap = true
    this.#observer.interrupted([...this.#covered])
    this.#observer.report({
      level: 'info',
      message: 'The stream of notifications has ended and is opened again',
      ...(reason === undefined ? {} : { error: reason }),
    })
    void this.#openAgain(stream)
  }

  async #openAgain(ended: ListenStream): Promise<void> {
    await this.#paused()
    if (this.#current === ended) this.#current = undefined
    this.#update()
  }

  async #paused(): Promise<void> {
    this.#pause = new AbortController()
    const { delay } = this.#backoff.next() ?? { delay: 0 }
    await wait(delay, this.#pause.signal).catch(() => {})
  }
}

/** Errors that mean: not with this value, or not for this client. */
const REFUSALS: ReadonlySet<number> = new Set([INVALID_PARAMS, MISSING_CLIENT_CAPABILITY])

/** The field of `subscriptions/listen` for each list. */
const FIELDS: Readonly<Record<List, string>> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
}

/** The method of a client for a field of the core protocol; undefined for one of an extension. */
export function methodForField(field: string): 'watch' | 'subscribe' | undefined {
  if (field === 'resourceSubscriptions') return 'subscribe'
  return Object.values(FIELDS).includes(field) ? 'watch' : undefined
}

function filterOf(topics: readonly Topic[]): Params {
  const filter: Record<string, unknown> = {}
  const uris: string[] = []
  for (const topic of topics) {
    if ('uri' in topic) uris.push(topic.uri)
    else if ('list' in topic) filter[FIELDS[topic.list]] = true
    else filter[topic.field] = union(filter[topic.field], topic.value)
  }
  return uris.length === 0 ? filter : { ...filter, resourceSubscriptions: uris }
}

/** Lists for the same field are sent as one. */
function union(before: unknown, value: unknown): unknown {
  return Array.isArray(before) && Array.isArray(value) ? [...new Set([...before, ...value])] : value
}

function isAccepted(topic: Topic, accepted: Params): boolean {
  if ('field' in topic) return isFieldAccepted(topic.value, accepted[topic.field])
  if ('list' in topic) return accepted[FIELDS[topic.list]] === true
  const { resourceSubscriptions: uris } = accepted
  return Array.isArray(uris) && uris.includes(topic.uri)
}

/** Of a list, the server may accept a part. */
function isFieldAccepted(value: unknown, accepted: unknown): boolean {
  if (!Array.isArray(value) || !Array.isArray(accepted)) return accepted !== undefined
  const items = new Set(accepted.map((item) => JSON.stringify(item)))
  return value.every((item) => items.has(JSON.stringify(item)))
}

function notAccepted(topic: Topic): Error {
  return withCode(
    'NOT_SUPPORTED',
    new Error(`The server does not send notifications of ${describeTopic(topic)}`),
  )
}

/** The notifications of a topic, for messages. */
export function describeTopic(topic: Topic): string {
  if ('uri' in topic) return `changes of ${truncate(topic.uri)}`
  if ('list' in topic) return `changes of the list of ${topic.list}`
  return `the field "${truncate(topic.field)}" of subscriptions/listen`
}
