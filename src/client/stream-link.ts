import {
  ChannelClosedError,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  RpcError,
  abortError,
} from '../jsonrpc/errors.js'
import type { Params } from '../jsonrpc/message.js'
import { MISSING_CLIENT_CAPABILITY } from '../protocol/errors.js'
import { acceptedBy, filterOf, notAccepted } from './listen-filter.js'
import { ListenStream } from './listen-stream.js'
import { type Backoff, wait } from './reconnect.js'
import type { ClientSession } from './session.js'
import type { LinkObserver, SubscriptionLink, Topic } from './subscription-links.js'

interface Waiting {
  resolve(): void
  reject(error: Error): void
}

/** A stream that the server has acknowledged. */
interface OpenStream {
  readonly stream: ListenStream
  /** What it covers and is still wanted. */
  readonly topics: Set<Topic>
  /** How many topics the server has accepted. */
  readonly accepted: number
}

/** Milliseconds for what is still on its way in a stream that was replaced by another. */
const LINGER = 1000
/** A replaced stream is closed earlier when so many others were replaced since: each has taken a round trip. */
const MAX_LINGERING = 64
/** Milliseconds without a change after which one stream replaces all. */
const QUIET = 1000
/** How many times larger than what is added a stream is that is not replaced. */
const MERGED = 8

/**
 * For stateless revisions: streams for what is watched. What is added gets a new stream, which replaces those that are not
 * much larger: n additions cost n log n, and 10,000 topics have at most five streams. Later one stream replaces all. A
 * stream is closed after that which replaces it is acknowledged, so that no notification is lost. One that ends is opened
 * again.
 */
export class StreamLink implements SubscriptionLink {
  readonly #session: ClientSession
  readonly #observer: LinkObserver
  readonly #backoff: Backoff
  /** What is watched, with the stream that covers it. */
  readonly #wanted = new Map<Topic, OpenStream | undefined>()
  /** What is watched and has no stream. */
  readonly #uncovered = new Set<Topic>()
  /** Of that, what had a stream: changes may be missed. */
  readonly #missed = new Set<Topic>()
  readonly #waiting = new Map<Topic, Waiting>()
  readonly #streams = new Set<OpenStream>()
  #opening: ListenStream | undefined
  /** Streams that were replaced, oldest first, with the timers that close them. */
  readonly #replaced = new Map<ListenStream, ReturnType<typeof setTimeout>>()
  #running = false
  /** Whether a stream has ended or failed: the next attempt is made after a pause, or at once for a new topic. */
  #failing = false
  /** Ends the pause before the next attempt. */
  #pause = new AbortController()
  #quiet: ReturnType<typeof setTimeout> | undefined
  #isQuiet = false
  #closed = false

  constructor(session: ClientSession, observer: LinkObserver, backoff: Backoff) {
    this.#session = session
    this.#observer = observer
    this.#backoff = backoff
  }

  add(topic: Topic): Promise<void> {
    this.#wanted.set(topic, undefined)
    this.#uncovered.add(topic)
    const accepted = new Promise<void>((resolve, reject) =>
      this.#waiting.set(topic, { resolve, reject }),
    )
    this.#pause.abort()
    this.#update()
    return accepted
  }

  remove(topic: Topic): Promise<void> {
    this.#waiting.get(topic)?.resolve()
    this.#forget(topic)
    if (this.#wanted.size === 0) this.#pause.abort()
    this.#update()
    return Promise.resolve()
  }

  owns(params: Params): boolean {
    if (this.#opening?.owns(params) === true) return true
    for (const { stream } of this.#streams) if (stream.owns(params)) return true
    // On an ordered channel, what the replaced stream sends after the acknowledgement, the new one sends too.
    for (const stream of this.#replaced.keys()) if (stream.owns(params)) return true
    return false
  }

  acknowledged(params: Params): void {
    if (this.#opening?.owns(params) === true) this.#opening.acknowledge(params)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#quiet)
    this.#pause.abort()
    for (const stream of this.#replaced.keys()) this.#closeReplaced(stream)
    this.#opening?.close()
    for (const { stream } of this.#streams) stream.close()
  }

  #forget(topic: Topic): void {
    this.#wanted.get(topic)?.topics.delete(topic)
    this.#wanted.delete(topic)
    this.#uncovered.delete(topic)
    this.#missed.delete(topic)
    this.#waiting.delete(topic)
  }

  /** Opens, replaces and closes streams until they cover what is wanted. Changes of one turn are made together. */
  #update(): void {
    clearTimeout(this.#quiet)
    if (this.#running) return
    this.#running = true
    queueMicrotask(() => void this.#run())
  }

  async #run(): Promise<void> {
    let more = true
    try {
      while (more && !this.#isClosed()) {
        const replaced = this.#outdated()
        if (this.#uncovered.size === 0 && replaced.length === 0) break
        more =
          this.#failing && this.#waiting.size === 0 && this.#uncovered.size > 0
            ? await this.#paused()
            : await this.#open(replaced)
      }
      this.#isQuiet = false
      // What could not be merged is not tried again before the next change.
      if (!this.#isClosed()) return more ? this.#mergeLater() : undefined
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

  /** The streams that the next one replaces. Closes those that nobody needs. */
  #outdated(): readonly OpenStream[] {
    let size = this.#uncovered.size
    const outdated: OpenStream[] = []
    const sorted = [...this.#streams].sort((one, other) => one.topics.size - other.topics.size)
    for (const open of sorted) {
      const { stream, topics, accepted } = open
      const isNarrower = accepted >= 2 * topics.size
      if (topics.size === 0) {
        this.#streams.delete(open)
        stream.close()
      } else if (this.#isQuiet || isNarrower || (size > 0 && topics.size <= MERGED * size)) {
        outdated.push(open)
        size += topics.size
      }
    }
    return outdated
  }

  /** Once nothing has changed for a while. */
  #mergeLater(): void {
    let unwanted = 0
    for (const { topics, accepted } of this.#streams) unwanted += accepted - topics.size
    if (this.#streams.size < 2 && unwanted === 0) return
    this.#quiet = setTimeout(() => {
      this.#isQuiet = true
      this.#update()
    }, QUIET)
  }

  /** Opens one stream; false if there is nothing more to do. */
  async #open(replaced: readonly OpenStream[]): Promise<boolean> {
    const topics = new Set<Topic>()
    for (const open of replaced.toReversed()) for (const topic of open.topics) topics.add(topic)
    for (const topic of this.#uncovered) topics.add(topic)
    const stream = new ListenStream(this.#session, filterOf(topics))
    this.#opening = stream
    this.#isQuiet = false
    try {
      const accepted = await stream.acknowledged
      this.#adopt(stream, topics, accepted)
      for (const open of replaced) if (this.#streams.delete(open)) this.#retire(open.stream)
      return true
    } catch (error) {
      stream.close()
      return this.#failed(topics, abortError(error))
    } finally {
      this.#opening = undefined
    }
  }

  #adopt(stream: ListenStream, topics: ReadonlySet<Topic>, accepted: Params): void {
    this.#backoff.opened()
    this.#failing = false
    const isAccepted = acceptedBy(accepted)
    const covered = [...topics].filter(isAccepted)
    const wanted = covered.filter((topic) => this.#wanted.has(topic))
    const open = { stream, topics: new Set(wanted), accepted: covered.length }
    this.#streams.add(open)
    void stream.ended.then((reason) => this.#ended(open, reason))
    const missed: Topic[] = []
    for (const topic of wanted) {
      this.#wanted.set(topic, open)
      this.#uncovered.delete(topic)
      if (this.#missed.delete(topic)) missed.push(topic)
      this.#waiting.get(topic)?.resolve()
      this.#waiting.delete(topic)
    }
    for (const topic of topics) if (!isAccepted(topic)) this.#refuse(topic, notAccepted(topic))
    if (missed.length > 0) this.#observer.missed(missed)
  }

  #retire(stream: ListenStream): void {
    if (this.#session.ordered || stream.hasEnded) return stream.close()
    const timer = setTimeout(() => this.#closeReplaced(stream), LINGER)
    this.#replaced.set(stream, timer)
    const [oldest] = this.#replaced.keys()
    if (this.#replaced.size > MAX_LINGERING && oldest !== undefined) this.#closeReplaced(oldest)
  }

  #closeReplaced(stream: ListenStream): void {
    clearTimeout(this.#replaced.get(stream))
    this.#replaced.delete(stream)
    stream.close()
  }

  /** New topics fail; the others are tried again later. */
  #failed(topics: ReadonlySet<Topic>, error: Error): boolean {
    if (this.#isClosed()) return false
    const refused = this.#refusedBy(
      error,
      [...topics].filter((topic) => this.#uncovered.has(topic)),
    )
    for (const topic of refused) this.#refuse(topic, error)
    if (refused.length > 0) return true
    this.#observer.report({
      level: 'warning',
      message: 'The stream of notifications could not be opened',
      error,
    })
    // Streams that could not be merged or narrowed still do their work.
    this.#failing = this.#uncovered.size > 0
    return this.#failing
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
    const waiting = this.#waiting.get(topic)
    const isWanted = this.#wanted.has(topic)
    this.#forget(topic)
    if (waiting !== undefined) waiting.reject(error)
    else if (isWanted) this.#observer.lost(topic, error)
  }

  #ended(open: OpenStream, reason: Error | undefined): void {
    if (this.#isClosed() || !this.#streams.delete(open)) return
    for (const topic of open.topics) {
      this.#wanted.set(topic, undefined)
      this.#uncovered.add(topic)
      this.#missed.add(topic)
    }
    this.#failing = true
    this.#observer.interrupted([...open.topics])
    this.#observer.report({
      level: 'info',
      message: 'The stream of notifications has ended and is opened again',
      ...(reason === undefined ? {} : { error: reason }),
    })
    this.#update()
  }

  async #paused(): Promise<true> {
    this.#pause = new AbortController()
    const { delay } = this.#backoff.next() ?? { delay: 0 }
    await wait(delay, this.#pause.signal).catch(() => {})
    this.#failing = false
    return true
  }
}

/** Errors that mean: not with this value, or not for this client. */
const REFUSALS: ReadonlySet<number> = new Set([INVALID_PARAMS, MISSING_CLIENT_CAPABILITY])
