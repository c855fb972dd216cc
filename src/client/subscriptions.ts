import { TimeoutError } from '../jsonrpc/deadline.js'
import { ChannelClosedError, abortError, withCode } from '../jsonrpc/errors.js'
import { callHook } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { type Params, memberAt } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import { Backoff, type ReconnectOptions } from './reconnect.js'
import { methodForField } from './listen-filter.js'
import { UriIndex } from './resource-uri.js'
import { type SessionCallOptions, deadlineOf } from './call-options.js'
import type { ClientSession, ServerDetails } from './session.js'
import { StreamLink } from './stream-link.js'
import {
  type List,
  RequestLink,
  type SubscriptionLink,
  type Topic,
  describeTopic,
} from './subscription-links.js'
import type { ListenOptions, Subscription } from './subscription.js'
import { untilDeadline } from './until-aborted.js'

/** A change of a resource. */
export interface ResourceChange {
  /** The resource that was updated: the one that was subscribed to, or a part of it. */
  readonly uri: string
  /** The connection was interrupted: the resource may have been updated meanwhile. */
  readonly missed?: true
}

/** A change of the list of tools, prompts or resources. */
export interface ListChange {
  readonly list: List
  /** The connection was interrupted: the list may have changed meanwhile. */
  readonly missed?: true
}

/** The server no longer sends notifications of what it had accepted before, such as after a restart. */
export interface SubscriptionEnded {
  /** The resource. */
  readonly uri?: string
  /** Or the list. */
  readonly list?: List
  /** Or the field of an extension, and its value. */
  readonly field?: string
  readonly value?: unknown
  readonly error: Error
}

type Listener = (event: 'changed' | 'missed' | 'interrupted', uri?: string) => unknown

interface Watch {
  readonly topic: Topic
  readonly listeners: Set<Listener>
  /** Settles when the server has accepted it, or not. */
  accepted: Promise<void>
  /** Fires when nobody listens any more. */
  readonly unwanted: AbortController
}

const LIST_CHANGED = /^notifications\/(tools|prompts|resources)\/list_changed$/

export interface SubscriptionsOptions {
  /** Times between attempts to open a stream again. */
  reconnect: ReconnectOptions
  /** Called before the listeners if changes may have been missed. */
  missed(): void
  ended(event: SubscriptionEnded): void
  report(entry: LogEntry): void
}

/** The listeners of a client for changes, across its connections. */
export class Subscriptions {
  readonly #options: SubscriptionsOptions
  readonly #watches = new Map<string, Watch>()
  /** Of those, the resources, and the fields of extensions by their names. */
  readonly #resources = new UriIndex<Watch>()
  readonly #fields = new Map<string, Set<Watch>>()
  #link: SubscriptionLink | undefined
  #capabilities: Params = {}

  constructor(options: SubscriptionsOptions) {
    this.#options = options
  }

  /** A new connection: what is watched is subscribed to again. */
  connected(session: ClientSession, { revision, capabilities }: ServerDetails): void {
    this.#link?.close()
    this.#capabilities = capabilities
    this.#link = revision.methods.clientRequests.includes('subscriptions/listen')
      ? this.#openStreamLink(session)
      : new RequestLink(session)
    for (const watch of this.#watches.values()) void this.#restore(watch)
  }

  #openStreamLink(session: ClientSession): StreamLink {
    const observer = {
      missed: (topics: readonly Topic[]) => this.#missed(topics),
      interrupted: (topics: readonly Topic[]) => this.#interrupted(topics),
      lost: (topic: Topic, error: Error) => this.#lost(topic, error),
      report: this.#options.report,
    }
    // A stream is optional for the server: it is tried for as long as somebody listens.
    return new StreamLink(
      session,
      observer,
      new Backoff({ ...this.#options.reconnect, attempts: Infinity }),
    )
  }

  close(): void {
    this.#link?.close()
    this.#interrupted([...this.#watches.values()].map(({ topic }) => topic))
    for (const [key, watch] of this.#watches) this.#forget(key, watch)
  }

  subscribe(
    uri: string,
    listener: (change: ResourceChange) => unknown,
    options: SessionCallOptions = {},
  ): Promise<Subscription> {
    const heard: Listener = (event, updated = uri) =>
      event !== 'interrupted' && listener({ uri: updated, ...missedBy(event) })
    return this.#watch({ uri }, heard, options)
  }

  watch(
    list: List,
    listener: (change: ListChange) => unknown,
    options: SessionCallOptions = {},
  ): Promise<Subscription> {
    const heard: Listener = (event) =>
      event !== 'interrupted' && listener({ list, ...missedBy(event) })
    return this.#watch({ list }, heard, options)
  }

  /** Listens to a field of an extension. Its notifications go to the handlers of the extension. */
  listen(
    field: string,
    value: unknown,
    options: ListenOptions & SessionCallOptions = {},
  ): Promise<Subscription> {
    const core = methodForField(field)
    if (core !== undefined)
      throw new TypeError(`listen: "${field}" belongs to the core protocol; use client.${core}`)
    if (value === undefined) throw new TypeError(`listen: the value of "${field}" is missing`)
    const { onMissed, onInterrupted, ...others } = options
    const topic = { field, value }
    // Either all values of a field are lists, or there is one.
    const [other] = this.#fields.get(field) ?? []
    if (other !== undefined && keyOf(other.topic) !== keyOf(topic))
      if (!Array.isArray(value) || !('value' in other.topic && Array.isArray(other.topic.value)))
        throw new TypeError(`listen: "${field}" is listened to with another value; end that first`)
    const heard: Listener = (event) => {
      if (event === 'missed') return onMissed?.()
      return event === 'interrupted' ? onInterrupted?.() : undefined
    }
    return this.#watch(topic, heard, others)
  }

  notified(method: string, params: Params): void {
    if (method === 'notifications/subscriptions/acknowledged') this.#link?.acknowledged(params)
    const list = LIST_CHANGED.exec(method)?.[1]
    const { uri } = params
    const updated =
      method === 'notifications/resources/updated' && typeof uri === 'string' ? uri : undefined
    if ((list === undefined && updated === undefined) || this.#link?.owns(params) !== true) return
    for (const { listeners } of this.#concernedBy(list, updated))
      for (const listener of listeners) this.#call(() => listener('changed', updated))
  }

  #concernedBy(list: string | undefined, updated: string | undefined): readonly Watch[] {
    if (updated !== undefined) return this.#resources.concernedBy(updated)
    const watch = this.#watches.get(`list ${list}`)
    return watch === undefined ? [] : [watch]
  }

  async #watch(
    topic: Topic,
    listener: Listener,
    options: SessionCallOptions,
  ): Promise<Subscription> {
    const { signal, deadline = deadlineOf(options) } = options
    this.#checkCapability(topic)
    signal?.throwIfAborted()
    const key = keyOf(topic)
    const watch = this.#watches.get(key) ?? this.#add(key, topic)
    // The same function may be given twice.
    const own: Listener = (event, uri) => listener(event, uri)
    watch.listeners.add(own)
    try {
      await untilDeadline(
        watch.accepted,
        { signal, deadline },
        (when) =>
          new TimeoutError(`No response ${when} to the subscription to ${describeTopic(topic)}`),
      )
    } catch (error) {
      void this.#remove(key, watch, own)
      throw error
    }
    const unsubscribe = () => this.#remove(key, watch, own)
    return { unsubscribe, [Symbol.asyncDispose]: unsubscribe }
  }

  #add(key: string, topic: Topic): Watch {
    const unwanted = new AbortController()
    // Each of those who listen has a timeout of its own.
    const options = { signal: unwanted.signal, timeout: Infinity, maxTimeout: Infinity }
    const accepted = this.#link?.add(topic, options) ?? Promise.resolve()
    const watch: Watch = { topic, listeners: new Set(), accepted, unwanted }
    this.#watches.set(key, watch)
    if ('uri' in topic) this.#resources.add(topic.uri, watch)
    else if ('field' in topic) {
      const watches = this.#fields.get(topic.field) ?? new Set()
      this.#fields.set(topic.field, watches.add(watch))
    }
    accepted.catch(() => this.#forget(key, watch))
    return watch
  }

  async #remove(key: string, watch: Watch, listener: Listener): Promise<void> {
    if (!watch.listeners.delete(listener) || watch.listeners.size > 0) return
    if (!this.#forget(key, watch)) return
    watch.unwanted.abort(new Error('The subscription is no longer needed'))
    try {
      await this.#link?.remove(watch.topic)
    } catch (error) {
      if (error instanceof ChannelClosedError) return
      this.#options.report({
        level: 'warning',
        message: 'The server could not be told to end a subscription',
        error,
      })
    }
  }

  #forget(key: string, watch: Watch): boolean {
    if (this.#watches.get(key) !== watch) return false
    const { topic } = watch
    if ('uri' in topic) this.#resources.delete(topic.uri, watch)
    else if ('field' in topic) {
      const watches = this.#fields.get(topic.field)
      watches?.delete(watch)
      if (watches?.size === 0) this.#fields.delete(topic.field)
    }
    return this.#watches.delete(key)
  }

  /** After a new connection. Updates may have been missed before it. */
  async #restore(watch: Watch): Promise<void> {
    const link = this.#link
    try {
      this.#checkCapability(watch.topic)
      watch.accepted = link?.add(watch.topic) ?? Promise.resolve()
      await watch.accepted
      this.#missed([watch.topic])
    } catch (error) {
      // If the connection was lost again, the next one restores it.
      if (link === this.#link && !(error instanceof ChannelClosedError))
        this.#lost(watch.topic, abortError(error))
    }
  }

  #missed(topics: readonly Topic[]): void {
    this.#options.missed()
    this.#tell('missed', topics)
  }

  #interrupted(topics: readonly Topic[]): void {
    this.#tell('interrupted', topics)
  }

  #tell(event: 'missed' | 'interrupted', topics: readonly Topic[]): void {
    for (const topic of topics)
      for (const listener of this.#watches.get(keyOf(topic))?.listeners ?? [])
        this.#call(() => listener(event))
  }

  #lost(topic: Topic, error: Error): void {
    this.#interrupted([topic])
    const key = keyOf(topic)
    const watch = this.#watches.get(key)
    if (watch !== undefined) this.#forget(key, watch)
    this.#options.ended({ ...topic, error })
  }

  #checkCapability(topic: Topic): void {
    if ('field' in topic) return this.#checkStreams(topic.field)
    const path = 'uri' in topic ? ['resources', 'subscribe'] : [topic.list, 'listChanged']
    if (memberAt(this.#capabilities, path) === true) return
    const what =
      'uri' in topic
        ? `subscriptions to resources, such as ${truncate(topic.uri)}`
        : `notifications of changed ${topic.list}`
    throw withCode(
      'NOT_SUPPORTED',
      new Error(
        `The server does not offer ${what}: it has not declared the capability ${path.join('.')}`,
      ),
    )
  }

  #checkStreams(field: string): void {
    if (this.#link instanceof StreamLink) return
    throw withCode(
      'NOT_SUPPORTED',
      new Error(
        `The field "${truncate(field)}" cannot be listened to: the protocol revision has no subscriptions/listen`,
      ),
    )
  }

  #call(listener: () => unknown): void {
    callHook(listener, (error) =>
      this.#options.report({ level: 'error', message: 'A listener for changes failed', error }),
    )
  }
}

function missedBy(event: 'changed' | 'missed'): { missed?: true } {
  return event === 'missed' ? { missed: true } : {}
}

function keyOf(topic: Topic): string {
  if ('uri' in topic) return `uri ${topic.uri}`
  if ('list' in topic) return `list ${topic.list}`
  return `field ${JSON.stringify([topic.field, topic.value])}`
}
