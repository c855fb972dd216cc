import type { Address, ConnectionFacts } from '../jsonrpc/channel.js'
import { type Id, isObject } from '../jsonrpc/message.js'
import { PROTOCOL_VERSION } from '../protocol/meta.js'
import { handshakeRevision, revisions, statelessRevision } from '../protocol/revisions/index.js'
import type { ObservedMessage, ObservedSession, Operation, Outcome } from '../protocol/telemetry.js'

/** A message of the protocol, as telemetry observes it. It does not hold the params: a call may last for hours. */
export class MessageOperation implements Operation {
  readonly kind: 'received' | 'sent'
  readonly method: string
  readonly id: Id | undefined
  readonly knownMethod: boolean
  readonly knownTarget: boolean
  readonly client: Address | undefined
  readonly #session: ObservedSession
  /** The revision of a stateless request, or of the result of `initialize`. */
  #own: string | undefined

  constructor(
    kind: 'received' | 'sent',
    { id, method, params }: ObservedMessage,
    session: ObservedSession,
    client?: Address,
  ) {
    this.kind = kind
    this.method = method
    this.id = id
    const { name, _meta: meta } = params ?? {}
    this.knownMethod = METHODS.has(method) || session.hasMethod(method)
    this.knownTarget = typeof name === 'string' && session.hasTarget(method, name)
    this.client = client
    this.#session = session
    if (isObject(meta)) this.#own = statelessRevision(meta[PROTOCOL_VERSION])?.id
  }

  /** A client knows the revision of its session after it has read the result of `initialize`. */
  ended({ result }: Outcome): void {
    if (this.kind === 'sent' && this.method === 'initialize' && isObject(result))
      this.#own = handshakeRevision(result['protocolVersion'])?.id
  }

  get revision(): string | undefined {
    return this.#own ?? this.#session.negotiated
  }

  get connection(): ConnectionFacts | undefined {
    return this.#session.connection
  }
}

/** The methods of all revisions, in both directions. */
const METHODS: ReadonlySet<string> = new Set(
  revisions.flatMap(({ methods }) => Object.values(methods).flat()),
)

/** Notifications of which a call may send thousands: they are not observed one by one. */
const FREQUENT: ReadonlySet<string> = new Set(['notifications/progress', 'notifications/message'])

export function isFrequent(method: string): boolean {
  return FREQUENT.has(method)
}
