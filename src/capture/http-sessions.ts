import { type Revision, revisions } from '../protocol/revisions/index.js'
import { ConversationDefinitions, type SharedDefinitions } from './conversation-definitions.js'
import type { Frame } from './frames.js'
import { type HttpExchange, hasHead, headerOf } from './http-exchange.js'
import type { Message } from './messages.js'
import { type Operation, Operations, type RequestStates } from './operations.js'
import type { SchemaCheck } from './schema-check.js'
import { SessionRules } from './session-rules.js'

/** Sessions and event ids that are remembered. */
const MAX_SESSIONS = 10_000
const MAX_EVENT_IDS = 100_000
/** With more exchanges in which the server asks, it is not known which one a response belongs to. */
const MAX_ASKING = 300

/** One client's messages, which are linked with each other. */
export interface Conversation {
  operations: Operations
  definitions: ConversationDefinitions
  rules: SessionRules
  /** Whether messages may belong to it that the capture does not show. */
  isPartial: boolean
  /** Whether some of its messages may not be recorded. */
  isLossy: boolean
  /** How many losses of the whole capture it has been told of. */
  losses: number
  /** Ids of events that were sent. */
  eventIds: Set<string>
}

/** Something of a conversation was not recorded. */
export function noteLossIn(conversation: Conversation): void {
  conversation.isLossy = true
  conversation.operations.noteLoss()
  conversation.rules.noteLoss()
}

interface Known {
  conversation: Conversation
  /** Whether the exchange belongs to no session: requests of the client are answered in this exchange. */
  isSessionless: boolean
  operations: Operation[]
}

/**
 * Decides which messages belong together over HTTP: those of a session, by `Mcp-Session-Id`; those of a stream and the
 * endpoint that it has named (HTTP+SSE); otherwise those of one exchange. Two clients may use the same ids.
 */
export class HttpSessions {
  readonly #schemas: ReadonlyMap<string, SchemaCheck>
  readonly #definitions: SharedDefinitions
  readonly #sessions = new Map<string, Conversation>()
  readonly #exchanges = new Map<HttpExchange, Known>()
  /** Those of open exchanges without a session in which the server has sent requests. */
  readonly #asking = new Set<Known>()
  /** A stateless request is continued in another exchange. */
  readonly #states: RequestStates = new Map()
  /** The revision that `initialize` without a session has negotiated; undefined if there were several. */
  #negotiated: Revision | undefined
  #initialized = 0
  /** How often something was not recorded. */
  #losses = 0

  constructor(schemas: ReadonlyMap<string, SchemaCheck>, definitions: SharedDefinitions) {
    this.#schemas = schemas
    this.#definitions = definitions
  }

  /** Something was not recorded; it is not known of which conversation. Later ones do not lack it. */
  noteLoss(): void {
    this.#losses++
    // It may be another handshake.
    this.#initialized++
    this.#negotiated = undefined
  }

  /** The conversation of an exchange. */
  of(exchange: HttpExchange): Conversation {
    return this.#known(exchange).conversation
  }

  /** The conversation of a message. A client without a session sends its responses in requests of their own. */
  ofMessage(message: Message, { exchange, dir }: Frame): Conversation | undefined {
    if (exchange === undefined) return undefined
    const known = this.#known(exchange)
    const { id, kind, method } = message
    if (method === 'initialize' && dir === 'in' && known.isSessionless)
      this.#startConversation(known.conversation)
    if (kind === 'request' && dir === 'out' && known.isSessionless) this.#asking.add(known)
    if (!known.isSessionless || kind !== 'response' || dir !== 'in' || id === undefined)
      return known.conversation
    if (this.#asking.size > MAX_ASKING) return known.conversation
    const asked = [...this.#asking].filter(
      ({ conversation, isSessionless }) =>
        isSessionless && conversation.operations.hasPending('out', id),
    )
    const [only] = asked
    return only === undefined || asked.length > 1 ? known.conversation : this.#current(only)
  }

  /** Whether the request of a response may be one that the capture does not show. */
  mayLackRequest({ exchange, dir }: Frame): boolean {
    if (exchange === undefined) return false
    const { conversation, isSessionless, operations } = this.#known(exchange)
    if (conversation.isLossy) return true
    // Without a session, a server responds in the exchange of the request.
    const isHere = isSessionless && dir === 'out' && operations.length > 0
    return conversation.isPartial && !isHere
  }

  /** The requests of an exchange. */
  requestsOf(exchange: HttpExchange): readonly Operation[] {
    return this.#known(exchange).operations
  }

  /** Whether an event was sent before: a stream that is resumed repeats what the client may not have received. */
  isRepeated({ exchange, fields }: Frame): boolean {
    const id = fields?.id
    if (exchange === undefined || id === undefined) return false
    const { eventIds } = this.of(exchange)
    const isResumed = headerOf(exchange.requestHeaders, 'last-event-id') !== undefined
    const isRepeated = isResumed && eventIds.has(id)
    eventIds.add(id)
    const [oldest] = eventIds.size > MAX_EVENT_IDS ? eventIds : []
    if (oldest !== undefined) eventIds.delete(oldest)
    return isRepeated
  }

  /** A request of an exchange, which the response or its end answers. */
  sent(exchange: HttpExchange, operation: Operation): void {
    this.#known(exchange).operations.push(operation)
  }

  /** The head of a response: it may begin a session. */
  responded(exchange: HttpExchange): void {
    const session = headerOf(exchange.responseHeaders, 'mcp-session-id')
    if (session === undefined || this.#sessions.has(session)) return
    const known = this.#known(exchange)
    known.isSessionless = false
    known.conversation.definitions.isOneClient = true
    this.#remember(session, known.conversation)
  }

  /** Messages to this request target belong to the stream that has named it. */
  endpoint(exchange: HttpExchange, target: string): void {
    const known = this.#known(exchange)
    known.isSessionless = false
    this.#startConversation(known.conversation)
    known.conversation.definitions.isOneClient = true
    this.#remember(`endpoint ${target}`, known.conversation)
  }

  /** Nothing more of an exchange follows. Returns its requests that are not answered, if they cannot be any more. */
  closed(exchange: HttpExchange, by: string | undefined): Operation[] {
    const known = this.#exchanges.get(exchange)
    if (known === undefined) return []
    this.#exchanges.delete(exchange)
    this.#asking.delete(known)
    const { conversation, isSessionless } = known
    const { operations } = conversation
    const open = known.operations.filter((operation) => operations.isPending(operation))
    const isError = exchange.status !== undefined && exchange.status >= 400
    const unanswered: Operation[] = []
    for (const operation of open) {
      // Closing the stream cancels a stateless request.
      const isCancelled = by === 'client' && operation.revision?.lifecycle === 'stateless'
      if (isError || isCancelled) operations.settle(operation, isError ? 'error' : 'cancelled')
      else if (isSessionless) {
        operations.settle(operation, undefined)
        unanswered.push(operation)
      }
    }
    if (isSessionless && !conversation.isPartial && operations.negotiated !== undefined) {
      this.#initialized++
      this.#negotiated = this.#initialized === 1 ? operations.negotiated : undefined
    }
    return unanswered
  }

  /** The conversations at the end of the capture, with requests that nothing has answered. */
  open(): Conversation[] {
    const all = new Set([
      ...this.#sessions.values(),
      ...[...this.#exchanges.values()].map(({ conversation }) => conversation),
    ])
    return [...all].map((conversation) => this.#current({ conversation }))
  }

  #known(exchange: HttpExchange): Known {
    let known = this.#exchanges.get(exchange)
    if (known === undefined) {
      known = this.#join(exchange, headerOf(exchange.requestHeaders, 'mcp-session-id'))
      this.#exchanges.set(exchange, known)
    }
    this.#current(known)
    return known
  }

  /** The conversation, after it was told what was lost. */
  #current({ conversation }: Pick<Known, 'conversation'>): Conversation {
    if (conversation.losses < this.#losses) noteLossIn(conversation)
    conversation.losses = this.#losses
    return conversation
  }

  #join(exchange: HttpExchange, session: string | undefined): Known {
    const key = session ?? `endpoint ${exchange.target}`
    const joined = this.#sessions.get(key)
    if (joined !== undefined) return { conversation: joined, isSessionless: false, operations: [] }
    const version = headerOf(exchange.requestHeaders, 'mcp-protocol-version')
    const named = revisions.find(({ id }) => id === version)
    const definitions = new ConversationDefinitions(this.#definitions, session !== undefined)
    const conversation: Conversation = {
      operations: new Operations(version === undefined ? this.#negotiated : named, this.#states),
      definitions,
      rules: new SessionRules(this.#schemas, definitions),
      isPartial: true,
      isLossy: false,
      losses: this.#losses,
      eventIds: new Set(),
    }
    // Its handshake was in another exchange, or before the capture began.
    conversation.rules.beginPartial()
    if (!hasHead(exchange, 'in')) noteLossIn(conversation)
    if (session !== undefined) this.#remember(session, conversation)
    return { conversation, isSessionless: session === undefined, operations: [] }
  }

  /** The conversation begins here: its handshake is not in another exchange. */
  #startConversation(conversation: Conversation): void {
    conversation.operations = new Operations(undefined, this.#states)
    conversation.rules = new SessionRules(this.#schemas, conversation.definitions)
    conversation.isPartial = false
  }

  #remember(key: string, conversation: Conversation): void {
    this.#definitions.agreed.hasSessions = true
    this.#sessions.set(key, conversation)
    if (this.#sessions.size <= MAX_SESSIONS) return
    const oldest = this.#sessions.keys().next().value
    if (oldest !== undefined) this.#sessions.delete(oldest)
  }
}
