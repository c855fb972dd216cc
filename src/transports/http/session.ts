import type { MethodDescriptor } from '../../protocol/methods.js'
import type { Budget } from '../../jsonrpc/budget.js'
import type { Channel, ConnectionFacts, Principal, Receiver } from '../../jsonrpc/channel.js'
import { INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import { ignore } from '../../jsonrpc/hook.js'
import {
  type Id,
  type Message,
  type SentResponse,
  encodeError,
  messagesIn,
  parseMessage,
} from '../../jsonrpc/message.js'
import {
  type Revision,
  handshakeRevision,
  newestHandshakeRevision,
} from '../../protocol/revisions/index.js'
import type { EventId } from './resumable-stream.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { PostExchange, type PostOptions, type SessionPort } from './post-exchange.js'
import { isRefusal } from './refusal.js'
import type { ServedSession } from './served-session.js'
import { sessionNameOf } from './session-id.js'
import { MAX_CHARACTERS, SessionState, type StateChange, stateChangesOf } from './session-state.js'
import { SessionStreams, type StreamSettings } from './session-streams.js'

export interface SessionSettings extends StreamSettings {
  methods: ReadonlyMap<string, MethodDescriptor>
  /** The memory of its requests in progress. */
  pending: Budget
  /** Called when the state that is stored has changed; resolves with whether it is stored. */
  stateChanged(session: HttpSession): Promise<boolean>
  /** Whether a response to what has changed the state waits until that is stored. */
  durable: boolean
}

export interface SessionFacts {
  id: string
  /** The principal that has created it; no other may use it. */
  owner: string | undefined
  /** The `initialize` request, as `initializeOf` writes it. */
  initialize: string
  /** 0 in the process that has created it; then `nextGeneration`. */
  generation: number
}

/** The stored state that a session is restored from. */
export interface RestorableState {
  readonly initialize: string
  /** From the result of `initialize`; the capabilities as JSON. */
  readonly protocolVersion: string
  readonly capabilities: string
  /** The messages that follow `initialize`. */
  readonly messages: readonly string[]
}

/**
 * What became of a session that is restored. `refused`: the server would now respond to `initialize` differently;
 * `failed`: `initialize` cannot be served at present; `incomplete`: some messages after it must still be repeated.
 */
export type Restored = 'restored' | 'refused' | 'failed' | 'incomplete'

/** Milliseconds after which the next request continues to restore a session: clients do not wait forever. */
const RESTORING_TIME = 5000

/** Bytes of the objects of a session, as `npm run held` measures them. */
const SESSION = 4096

/** Memory of an `initialize` request in a session: parsed, as text, and its copy in a store. */
export function initializeBytes(initialize: string): number {
  return 6 * initialize.length
}

/** Memory of a session without subscriptions. */
export function sessionBytes(initialize: string): number {
  return SESSION + initializeBytes(initialize)
}

/**
 * A session of a client that has initialized, over any number of HTTP requests. Messages that belong to a request are
 * sent in its response, all others on the stream that the client opens with GET.
 */
export class HttpSession implements Channel, SessionPort {
  readonly id: string
  readonly owner: string | undefined
  /** The part of the id by which stores know it. */
  readonly name: string
  readonly generation: number
  readonly state: SessionState
  readonly pending: Budget
  readonly retained: Budget
  readonly #settings: SessionSettings
  readonly #streams: SessionStreams
  readonly #exchanges = new Set<PostExchange>()
  #receiver: Receiver | undefined
  #served: ServedSession | undefined
  #protocolVersion: string | undefined
  #capabilities = ''
  #revision = newestHandshakeRevision
  #closed = false
  /** By the clock of `performance.now`, as all times here: the date may be set. */
  #lastUsed = performance.now()
  /** When it was last stored; 0 for never. */
  storedAt = Number.NEGATIVE_INFINITY
  /** Whether another process has restored or ended it: this process stores it no more. */
  superseded = false
  /** The term of this process in which it certainly belonged to it, if several processes serve sessions. */
  term: number | undefined
  /** How many changes of the state are stored. */
  storedChangeCount = 0
  /** False while messages of the stored state must be repeated: until then, the session serves no request. */
  restored = true
  /** How many of these messages were repeated. */
  #repeated = 0
  #retired = false
  /** Called when it has left, if it was retired. */
  #left = () => {}

  constructor(
    { id, owner, initialize, generation }: SessionFacts,
    settings: SessionSettings,
    openSession: (channel: Channel) => ServedSession,
  ) {
    this.id = id
    this.owner = owner
    this.name = sessionNameOf(id)
    this.generation = generation
    this.pending = settings.pending
    this.retained = settings.retained
    this.retained.charge(sessionBytes(initialize))
    this.state = new SessionState(initialize, this.retained)
    this.#settings = settings
    this.#streams = new SessionStreams(this.name, generation, settings, this)
    this.#served = openSession(this)
  }

  get connection(): ConnectionFacts {
    return { transport: 'tcp', protocol: 'http', session: this.name }
  }

  /** The negotiated revision, as in the result of `initialize`. */
  get protocolVersion(): string | undefined {
    return this.#protocolVersion
  }

  /** The server capabilities in the result of `initialize`, as JSON. */
  get capabilities(): string {
    return this.#capabilities
  }

  get revision(): Revision {
    return this.#revision
  }

  /** Whether its client has a connection open. A call without one does not count: its client may have disconnected. */
  get busy(): boolean {
    for (const exchange of this.#exchanges) if (exchange.connected) return true
    return this.#streams.connected
  }

  get lastUsed(): number {
    return this.#lastUsed
  }

  used(): void {
    this.#lastUsed = performance.now()
  }

  /** Whether it has ended in this process. */
  get closed(): boolean {
    return this.#closed
  }

  /** Starts with the response to `initialize`; false if that was an error. */
  begin({ result }: SentResponse): boolean {
    const { protocolVersion, capabilities } = (result ?? {}) as {
      protocolVersion?: string
      capabilities?: object
    } // our own result
    this.#protocolVersion = protocolVersion
    this.#capabilities = JSON.stringify(capabilities)
    this.#revision = handshakeRevision(protocolVersion) ?? newestHandshakeRevision
    return protocolVersion !== undefined
  }

  /** Restores a stored session. */
  async restore(stored: RestorableState, principal: Principal | undefined): Promise<Restored> {
    this.restored = false
    const end = performance.now() + RESTORING_TIME
    const response = await this.#repeat(stored.initialize, principal)
    if (response === undefined) return 'failed'
    if (response.error !== undefined) {
      this.#reportFailure('initialize', response.error)
      return isRefusal(response.error) ? 'refused' : 'failed'
    }
    if (
      !this.begin(response) ||
      this.#protocolVersion !== stored.protocolVersion ||
      this.#capabilities !== stored.capabilities
    )
      return 'refused'
    // All of them before any is repeated: if the session is stored meanwhile, its state is complete.
    for (const frame of stored.messages) this.state.apply(this.#changesOf(frame))
    return this.state.complete ? this.continueRestoring(principal, end) : 'failed'
  }

  /** Repeats the messages of the stored state, from the one that has failed. */
  async continueRestoring(
    principal: Principal | undefined,
    end = performance.now() + RESTORING_TIME,
  ): Promise<Restored> {
    for (const frame of this.state.messages.slice(this.#repeated)) {
      if (performance.now() > end) return 'incomplete'
      const { kind } = parseMessage(frame)
      const response = await this.#repeat(frame, principal)
      // Without a response, it has ended in the meantime.
      if (this.#closed || (kind === 'request' && response === undefined)) return 'incomplete'
      const { error } = response ?? {}
      if (error !== undefined) this.#reportFailure('a stored request', error)
      if (error === undefined) this.#repeated++
      else if (isRefusal(error)) this.state.remove(this.#changesOf(frame))
      else return 'incomplete'
    }
    this.restored = true
    return 'restored'
  }

  #changesOf(frame: string): StateChange[] {
    return stateChangesOf(parseMessage(frame), this.#settings.methods)
  }

  #reportFailure(what: string, error: RpcError): void {
    const message = `The server responded with an error to ${what} when a session was restored`
    this.#settings.report({ level: 'warning', message, error })
  }

  /** Serves a stored message again, without sending the response. */
  #repeat(frame: string, principal: Principal | undefined): Promise<SentResponse | undefined> {
    return new Promise((resolve) => {
      // Copied: a response is cleared once it was sent.
      const reply = (_frame?: string, response?: SentResponse) =>
        resolve(
          response && {
            kind: 'response',
            id: response.id,
            result: response.result,
            error: response.error,
          },
        )
      const exchange = { send: () => {}, reply }
      this.#receiver?.frame(frame, principal === undefined ? exchange : { ...exchange, principal })
    })
  }

  /** Serves the message of a POST. */
  post(
    text: string,
    message: Message,
    options: Omit<PostOptions, 'session' | 'streams' | 'received'>,
  ): void {
    const received = message.kind === 'invalid' ? message : { kind: message.kind }
    const all = { ...options, session: this, streams: this.#streams, received }
    this.used()
    if (this.#settings.durable) return this.#postDurably(text, message, all)
    const exchange = new PostExchange(all)
    this.#receiver?.frame(text, exchange, message)
    // Afterwards: the messages of a batch that was refused are not read.
    if (exchange.failed) return
    const changes = stateChangesOf(message, this.#settings.methods)
    if (exchange.responded) return this.#apply(exchange, changes)
    this.#wait(exchange, changes.length === 0 ? ignore : () => this.#apply(exchange, changes))
  }

  /** Serves a message whose response waits until what it has changed is stored. */
  #postDurably(text: string, message: Message, options: PostOptions): void {
    const requestIds = requestIdsOf(message)
    const changes = stateChangesOf(message, this.#settings.methods)
    if (changes.length > 0)
      return this.#postChanges(text, message, { ...options, requestIds }, changes)
    const exchange = new PostExchange({ ...options, requestIds })
    this.#receiver?.frame(text, exchange, message)
    if (!exchange.responded) this.#wait(exchange, ignore)
  }

  #postChanges(
    text: string,
    message: Message,
    options: PostOptions & { requestIds: readonly Id[] },
    changes: readonly StateChange[],
  ): void {
    // Before it is served: a change that cannot be stored is not made.
    let reserved = this.state.reserve(changes)
    if (reserved === undefined) {
      refuseTooLarge(new PostExchange(options), message.kind, options.requestIds)
      return
    }
    const acknowledge = (exchange: PostExchange) => {
      this.state.apply(exchange.withResult(changes), reserved)
      reserved = 0
      return this.#stored()
    }
    const exchange = new PostExchange({ ...options, acknowledge })
    this.#receiver?.frame(text, exchange, message)
    const release = () => this.state.release(reserved ?? 0)
    if (exchange.responded) release()
    else this.#wait(exchange, release)
  }

  /** Resolves with whether all changes until now are stored; undefined if they are already. */
  #stored(): Promise<boolean> | undefined {
    const { changeCount } = this.state
    if (changeCount === this.storedChangeCount || this.#protocolVersion === undefined)
      return undefined
    return this.#settings
      .stateChanged(this)
      .then((stored) => stored && this.storedChangeCount >= changeCount)
  }

  /** Apart from `post`, so that its closure does not retain the message. */
  #wait(exchange: PostExchange, done: () => void): void {
    this.#exchanges.add(exchange)
    exchange.wait(() => {
      this.#exchanges.delete(exchange)
      this.used()
      done()
      if (this.#retired && this.#exchanges.size === 0) this.leave()
    })
  }

  #apply(exchange: PostExchange, changes: readonly StateChange[]): void {
    if (changes.length === 0) return
    const succeeded = exchange.withResult(changes)
    if (this.state.apply(succeeded)) void this.#settings.stateChanged(this)
  }

  /** Opens the standalone stream; false if it is open already. */
  listen(context: HttpContext, headers: HeaderList, expires: number | undefined): boolean {
    this.used()
    return this.#streams.listen(context, headers, expires)
  }

  /** Sends what followed an event; false if its stream is unknown, 'unavailable' if the event store fails. */
  resume(
    context: HttpContext,
    event: EventId,
    headers: HeaderList,
    expires: number | undefined,
  ): boolean | Promise<boolean | 'unavailable'> {
    this.used()
    return this.#streams.resume(context, event, headers, expires)
  }

  /** Whether the client does not read the standalone stream. */
  get congested(): boolean {
    return this.#streams.standalone.congested
  }

  /** The client may be reading that stream again. */
  drained(): void {
    if (!this.congested) this.#receiver?.drained?.()
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  /** Sends a message that belongs to no request. Dropped if the client has never opened the standalone stream. */
  send(frame: string): void {
    if (this.#streams.listened && !this.#closed) this.#streams.standalone.push(frame)
  }

  /** The client is told that everything may have changed. */
  missedChanges(): void {
    this.#served?.missedChanges()
  }

  failed(id: Id, error: Error): void {
    this.#receiver?.failed?.(id, error)
  }

  /** Waits for calls in progress, and ends every stream. */
  async drain(deadline: number): Promise<void> {
    await this.#served?.drain(deadline)
  }

  /** Ends the session: cancels calls in progress, and deletes its events. */
  end(): void {
    this.#streams.delete()
    this.leave()
  }

  /**
   * Ends the session in this process after its calls in progress, and calls `left` then; the stream that belongs to none
   * of them ends now.
   */
  retire(left: () => void): void {
    this.superseded = true
    this.#retired = true
    this.#left = left
    this.#streams.standalone.end()
    if (this.#exchanges.size === 0) this.leave()
  }

  /** Ends the session in this process: its events stay in the store. */
  leave(): void {
    if (this.#closed) return
    this.#closed = true
    this.#receiver?.closed()
    this.#streams.end()
    this.retained.close()
    this.#left()
  }

  close(): Promise<void> {
    this.end()
    return Promise.resolve()
  }
}

/** The ids of the requests in a message. */
function requestIdsOf(message: Message): readonly Id[] {
  return messagesIn(message).flatMap((each) => (each.kind === 'request' ? [each.id] : []))
}

/** Responds to a message that would make the stored state of its session too large, and was not served. */
function refuseTooLarge(exchange: PostExchange, kind: Message['kind'], ids: readonly Id[]): void {
  const isBatch = kind === 'batch'
  const advice = isBatch ? 'Nothing of this batch was executed' : 'Unsubscribe from some'
  const error = new RpcError(
    INTERNAL_ERROR,
    `Too many subscriptions: at most ${MAX_CHARACTERS} characters of them are stored per session, within the memory limit of the server. ${advice}`,
  )
  const frames = ids.map((id) => encodeError(id, error, 'omitted'))
  const [id] = ids
  if (isBatch || id === undefined) return exchange.reply(`[${frames.join()}]`)
  exchange.reply(frames[0], { kind: 'response', id, error })
}
