import type { Budget } from '../jsonrpc/budget.js'
import type { IncomingRequest } from '../jsonrpc/incoming.js'
import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../jsonrpc/errors.js'
import { callHook, markHandled } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { inSmallSteps } from '../jsonrpc/small-steps.js'
import {
  type Id,
  type Params,
  type Send,
  encodeId,
  isObject,
  isThenable,
  sendNotification,
  stringifyWithId,
} from '../jsonrpc/message.js'
import { SUBSCRIPTION_ID } from '../protocol/meta.js'
import { TURN, goOnLater } from '../jsonrpc/turns.js'
import type { ExtensionStream, OpenedStream } from './extensions.js'
import type { Change, ChangeEmitter } from './registry.js'
import { SubscribedUris } from './subscribed-uris.js'
import { type NormalizedUri, normalizeUri } from './uri.js'

type List = 'tools' | 'resources' | 'prompts'

/** What is needed of a server. */
type ChangeSource = { readonly changes: ChangeEmitter } & Readonly<
  Record<List, { readonly offered: boolean }>
>

/** What a client has subscribed to. */
interface Filter {
  lists: ReadonlySet<List>
  uris: SubscribedUris
}

interface Stream {
  call: IncomingRequest
  filter: Filter
  /** The size of its filter. */
  bytes: number
  /** The streams of extensions that were started. */
  started: ExtensionStream[]
  end(result: object): void
}

const FIELDS: Readonly<Record<string, List>> = {
  toolsListChanged: 'tools',
  resourcesListChanged: 'resources',
  promptsListChanged: 'prompts',
}
/** The fields of `subscriptions/listen` in the core protocol. */
export const LISTEN_FIELDS: readonly string[] = [...Object.keys(FIELDS), 'resourceSubscriptions']
const LISTS: readonly List[] = ['tools', 'resources', 'prompts']
/** Maximum resource subscriptions of a client. */
const MAX_URIS = 10_000
/** Maximum length of a URI that can be subscribed to, in characters. */
const MAX_URI = 8192
/** The size of a subscription in bytes, without its URI. */
const SUBSCRIPTION = 600
/** Maximum streams of a client: each is a call in progress, and those are limited. */
const MAX_STREAMS = 100

/** Notifies one client of changes of the server, as its revision does it. Changes of one turn of the event loop are merged. */
export class Subscriptions {
  readonly #server: ChangeSource
  readonly #send: Send
  readonly #congested: () => boolean
  /** The bytes that may be stored for the client. */
  readonly #retained: Budget
  readonly #report: (entry: LogEntry) => void
  #stop: (() => void) | undefined
  #stopped = false
  /** Whether streams end as soon as they are open: the server is being stopped. */
  #ending = false
  /** After a handshake: the lists whose capability was declared, and the resources that the client has subscribed to. */
  #session: Filter | undefined
  readonly #streams = new Set<Stream>()
  /** Streams that the server has ended, and whose `notifications/cancelled` has not been sent. */
  #ended: Id[] = []
  /** Whether changes wait until the client reads. */
  #waiting = false
  /** What has changed since, as far as it is subscribed to. */
  readonly #lists = new Set<List>()
  readonly #uris = new Set<string>()

  constructor(
    server: ChangeSource,
    {
      send,
      congested,
      retained,
      report,
    }: {
      send: Send
      congested: () => boolean
      retained: Budget
      report: (entry: LogEntry) => void
    },
  ) {
    this.#server = server
    this.#send = send
    this.#congested = congested
    this.#retained = retained
    this.#report = report
  }

  /** On `notifications/initialized`. */
  start(): Filter {
    // What was not declared is not used: https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#operation
    this.#session ??= {
      lists: new Set(LISTS.filter((list) => this.#server[list].offered)),
      uris: this.#subscribedUris(),
    }
    this.#watch()
    return this.#session
  }

  /** `key` is the normal form of the URI. */
  subscribe(uri: string, key: string): void {
    const { uris } = this.start()
    if (uris.hasSpelling(uri, key)) return
    if (uris.size >= MAX_URIS)
      throw new RpcError(INVALID_PARAMS, `At most ${MAX_URIS} resources can be subscribed to`)
    if (!this.#retained.take(bytesOf(uri, key))) throw memoryLimitError()
    uris.add(uri, key)
  }

  unsubscribe(uri: string): void {
    // One that is longer was never stored.
    if (uri.length > MAX_URI || this.#session === undefined) return
    const { text } = normalizeUri(uri)
    if (this.#session.uris.delete(uri, text)) this.#retained.release(bytesOf(uri, text))
  }

  /** Serves `subscriptions/listen`: a call that lasts until it is cancelled or the server is stopped. */
  async listen(
    call: IncomingRequest,
    { notifications }: Params,
    mayWatch: (uri: string, normalized: NormalizedUri) => boolean | Promise<boolean>,
    streams: readonly OpenedStream[] = [],
  ): Promise<object> {
    if (!isObject(notifications))
      throw new RpcError(
        INVALID_PARAMS,
        'Invalid params: "notifications" must be an object that names what to listen for',
      )
    if (this.#streams.size >= MAX_STREAMS)
      throw new RpcError(
        INTERNAL_ERROR,
        `At most ${MAX_STREAMS} subscription streams can be open; cancel one, or combine them`,
      )
    const asked = filterOf(notifications, this.#server)
    let bytes = 0
    const take = (more: number) => {
      if (!this.#retained.take(more)) throw memoryLimitError()
      bytes += more
    }
    const keys = new Map<string, string>()
    const may: (boolean | Promise<boolean>)[] = []
    let known: readonly boolean[]
    try {
      for (const [, { acknowledged }] of streams)
        if (acknowledged !== undefined) take(SUBSCRIPTION + 2 * JSON.stringify(acknowledged).length)
      // What does not fit is refused before anything is done with it.
      for (const uri of asked.uris) take(bytesOf(uri))
      let turnEnds = performance.now() + TURN
      for (const uri of asked.uris) {
        if (performance.now() >= turnEnds) {
          await new Promise<void>(goOnLater)
          turnEnds = performance.now() + TURN
          if (!call.open) break
        }
        const normalized = normalizeUri(uri)
        take(2 * normalized.text.length)
        keys.set(uri, normalized.text)
        const each = mayWatch(uri, normalized)
        // Another one may reject first.
        may.push(each instanceof Promise ? markHandled(each) : each)
      }
      known = may.every((each) => typeof each === 'boolean')
        ? may
        : await Promise.all(may.map((each) => Promise.resolve(each)))
    } catch (error) {
      this.#retained.release(bytes)
      throw error
    }
    // Hidden resources are not subscribed to; the response does not reveal them.
    for (const [index, [uri, key]] of [...keys].entries())
      if (known[index] !== true) {
        keys.delete(uri)
        take(-bytesOf(uri, key))
      }
    // It may have been cancelled meanwhile.
    if (call.open) return this.#openStream(call, asked, keys, bytes, streams)
    this.#retained.release(bytes)
    return {}
  }

  #openStream(
    call: IncomingRequest,
    asked: ReturnType<typeof filterOf>,
    keys: ReadonlyMap<string, string>,
    bytes: number,
    extended: readonly OpenedStream[],
  ): Promise<object> {
    const agreed: Record<string, unknown> = {}
    for (const [field, list] of Object.entries(FIELDS))
      if (asked.lists.has(list)) agreed[field] = true
    if (asked.uris.size > 0) agreed['resourceSubscriptions'] = [...asked.uris]
    for (const [field, { acknowledged }] of extended)
      if (acknowledged !== undefined) agreed[field] = acknowledged
    call.forgetParams()
    const filter = { lists: asked.lists, uris: this.#subscribedUris() }
    for (const [uri, key] of keys) filter.uris.add(uri, key)
    this.#watch()
    sendTagged(call, 'notifications/subscriptions/acknowledged', { notifications: agreed })
    const ended = new Promise<object>((resolve, reject) => {
      const stream: Stream = { call, filter, bytes, started: [], end: resolve }
      this.#streams.add(stream)
      call.signal.addEventListener('abort', () => this.#remove(stream))
      const failed = (error: unknown) => {
        this.#remove(stream)
        reject(error)
      }
      try {
        for (const [, each] of extended)
          if (each.acknowledged !== undefined) this.#start(each, stream, failed)
      } catch (error) {
        failed(error)
      }
    })
    if (this.#ending) this.endStreams()
    return call.park(ended)
  }

  #start(each: ExtensionStream, { call, started }: Stream, failed: (error: unknown) => void): void {
    // First: a stream that fails to start is stopped too.
    started.push(each)
    const returned: unknown = each.start((method, params) => {
      if (typeof method !== 'string' || !isObject(params))
        throw new TypeError('notify: pass the method of a notification, and an object of params')
      sendTagged(call, method, params)
    })
    if (isThenable(returned)) Promise.resolve(returned).catch(failed)
  }

  /** Ends all streams, each with its result; also those that are opened later. */
  endStreams(): void {
    this.#ending = true
    for (const stream of this.#streams) {
      const { call, end } = stream
      this.#ended.push(call.id)
      end({ _meta: { [SUBSCRIPTION_ID]: call.id } })
      this.#remove(stream)
    }
  }

  #remove(stream: Stream): void {
    if (!this.#streams.delete(stream)) return
    stream.filter.uris.stop()
    this.#retained.release(stream.bytes)
    for (const each of stream.started)
      callHook(
        () => each.stop(),
        (error) =>
          this.#report({
            level: 'error',
            message: 'The stream of an extension failed to stop',
            error,
          }),
      )
  }

  /**
   * Closes the streams that were ended, once their results are out. If all
   * streams share one channel, this is how a client sees that they are closed:
   * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation
   */
  closeStreams(): void {
    const method = 'notifications/cancelled'
    for (const requestId of this.#ended.splice(0))
      this.#send(
        `{"jsonrpc":"2.0","method":"${method}","params":{"requestId":${encodeId(requestId)}}}`,
        {
          kind: 'notification',
          method,
          params: { requestId },
        },
      )
  }

  stop(): void {
    this.#stopped = true
    this.#stop?.()
    this.#session?.uris.stop()
    for (const { filter } of this.#streams) filter.uris.stop()
  }

  /** Not before something is subscribed to: a session may be as short as one request. */
  #watch(): void {
    if (this.#stopped) return
    this.#stop ??= this.#server.changes.listen((change) => this.#changed(change))
  }

  /** Notifies the client of everything that it has subscribed to in its session. */
  missed(): void {
    if (this.#session !== undefined) this.#addAll(this.#session)
  }

  #changed(change: Change): void {
    if ('log' in change) return
    const filters = Array.from(this.#streams, ({ filter }) => filter)
    if (this.#session !== undefined) filters.push(this.#session)
    for (const filter of filters)
      if ('everything' in change) this.#addAll(filter)
      else if (filter.lists.has(change.list)) this.#add(this.#lists, change.list)
  }

  #addAll({ lists, uris }: Filter): void {
    for (const list of lists) this.#add(this.#lists, list)
    for (const key of uris.keys()) this.#add(this.#uris, key)
  }

  /** Adds to what is sent at the end of this turn. */
  #add<Item>(changed: Set<Item>, item: Item): void {
    if (!this.#hasChanges) inSmallSteps(this.#notify())
    changed.add(item)
  }

  #subscribedUris(): SubscribedUris {
    const uris = new SubscribedUris(this.#server.changes, (key) => this.#add(this.#uris, key))
    if (this.#stopped) uris.stop()
    return uris
  }

  get #hasChanges(): boolean {
    return this.#lists.size > 0 || this.#uris.size > 0
  }

  /** Sends what has changed, one after the other. */
  *#notify(): Generator<undefined> {
    while (this.#hasChanges) {
      for (const list of this.#lists) {
        if (this.#mustWait()) return
        this.#lists.delete(list)
        this.#sendList(list)
        if (this.#hasChanges) yield
      }
      for (const key of this.#uris) {
        if (this.#mustWait()) return
        this.#uris.delete(key)
        this.#sendUpdate(key)
        if (this.#hasChanges) yield
      }
    }
  }

  /** While the client is not reading, changes are merged and sent later. */
  #mustWait(): boolean {
    this.#waiting = this.#congested()
    return this.#waiting || this.#stopped
  }

  /** The client may be reading again. */
  drained(): void {
    if (!this.#waiting) return
    this.#waiting = false
    inSmallSteps(this.#notify())
  }

  #sendList(list: List): void {
    const method = `notifications/${list}/list_changed`
    if (this.#session?.lists.has(list) === true) sendNotification(this.#send, method)
    for (const { call, filter } of this.#streams)
      if (filter.lists.has(list)) sendTagged(call, method, {})
  }

  #sendUpdate(key: string): void {
    const method = 'notifications/resources/updated'
    for (const uri of this.#session?.uris.spellings(key) ?? [])
      sendNotification(this.#send, method, { uri })
    for (const { call, filter } of this.#streams)
      for (const uri of filter.uris.spellings(key)) sendTagged(call, method, { uri })
  }
}

/** The part of the filter that the server supports. */
function filterOf(
  notifications: Params,
  server: ChangeSource,
): { lists: ReadonlySet<List>; uris: ReadonlySet<string> } {
  const { resourceSubscriptions: uris = [] } = notifications
  if (
    !Array.isArray(uris) ||
    uris.length > MAX_URIS ||
    !uris.every((uri): uri is string => typeof uri === 'string')
  ) {
    throw new RpcError(
      INVALID_PARAMS,
      `Invalid params: "resourceSubscriptions" must be a list of at most ${MAX_URIS} URIs`,
    )
  }
  uris.forEach(checkUri)
  const lists = Object.entries(FIELDS).filter(
    ([field, list]) => notifications[field] === true && server[list].offered,
  )
  return {
    lists: new Set(lists.map(([, list]) => list)),
    uris: new Set(server.resources.offered ? uris : []),
  }
}

/** Throws for a URI that is too long to be stored; before anything of it is compared. */
export function checkUri(uri: string): void {
  if (uri.length > MAX_URI)
    throw new RpcError(
      INVALID_PARAMS,
      `Invalid params: a URI of ${uri.length} characters; at most ${MAX_URI} can be subscribed to`,
    )
}

function bytesOf(uri: string, key = ''): number {
  return SUBSCRIPTION + 2 * (uri.length + key.length)
}

function memoryLimitError(): RpcError {
  return new RpcError(
    INTERNAL_ERROR,
    'Too many subscriptions: their memory limit is reached. Unsubscribe from some, or try again later',
  )
}

/** Sends a notification with the id of its stream, last: nothing that is sent on the stream can replace it. */
function sendTagged(call: IncomingRequest, method: string, params: Params): void {
  const { _meta: given } = params
  const _meta = { ...(isObject(given) ? given : {}), [SUBSCRIPTION_ID]: call.id }
  const tagged = { ...params, _meta }
  // The digits of the id may not fit a number.
  const written = stringifyWithId(call.id, tagged)
  call.send(`{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${written}}`, {
    kind: 'notification',
    method,
    params: tagged,
  })
}
