import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv'
import {
  type Revision,
  newestHandshakeRevision,
  revisions,
} from '../../src/protocol/revisions/index.js'
import { PROTOCOL_VERSION } from '../../src/protocol/meta.js'
import { officialSchemas } from './schemas.js'

/*
 * Validates every message of a conversation against the official schema of its
 * revision. It detects which side is the client and the revision of each response.
 */

/** Intended differences from the official schemas. */
export const EXEMPTIONS = {
  'id: null':
    'JSON-RPC requires it in an error response to an unreadable request; the schemas through 2025-06-18 do not allow it',
  'a short initialize':
    'handwritten clients omit capabilities and clientInfo; they are served anyway',
} as const

/** Requests, notifications and result types of extensions, which are not in the official schemas. Tests add theirs. */
export const extensionNames = new Set<string>()

/** The definition of each request's result. */
export const RESULTS: Readonly<Record<string, string>> = {
  initialize: 'InitializeResult',
  ping: 'EmptyResult',
  'server/discover': 'DiscoverResult',
  'tools/list': 'ListToolsResult',
  'tools/call': 'CallToolResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
  'resources/read': 'ReadResourceResult',
  'resources/subscribe': 'EmptyResult',
  'resources/unsubscribe': 'EmptyResult',
  'prompts/list': 'ListPromptsResult',
  'prompts/get': 'GetPromptResult',
  'completion/complete': 'CompleteResult',
  'logging/setLevel': 'EmptyResult',
  'subscriptions/listen': 'SubscriptionsListenResult',
  'sampling/createMessage': 'CreateMessageResult',
  'elicitation/create': 'ElicitResult',
  'roots/list': 'ListRootsResult',
}

const validators = new Map<string, ValidateFunction>()

/** The reason why a value does not match a definition in the schema of a revision. */
export function schemaError(
  revision: string,
  definition: string,
  value: unknown,
): string | undefined {
  const schema = officialSchemas[revision]
  if (schema === undefined) return `no schema of ${revision}`
  if (!(definition in schema.definitions)) return `the schema of ${revision} has no ${definition}`
  const key = `${revision} ${definition}`
  let validate = validators.get(key)
  if (validate === undefined) {
    const modern = schema.$schema.includes('2020-12')
    const ajv = modern
      ? new Ajv2020({ strict: false, validateFormats: false })
      : new Ajv({ strict: false, validateFormats: false })
    const root = modern ? '$defs' : 'definitions'
    validate = ajv.compile({
      $schema: schema.$schema,
      [root]: schema.definitions,
      $ref: `#/${root}/${definition}`,
    })
    validators.set(key, validate)
  }
  return validate(value)
    ? undefined
    : `${definition} of ${revision}: ${JSON.stringify(validate.errors?.slice(0, 3))}`
}

interface Message {
  jsonrpc?: unknown
  id?: string | number | null
  method?: string
  params?: { _meta?: Record<string, unknown>; protocolVersion?: string }
  result?: { protocolVersion?: string; resultType?: string }
  error?: unknown
}
type PeerPort = 'sent' | 'received'

export class SchemaValidator {
  readonly #report: (violation: string) => void
  readonly #clientOnly: boolean
  #client: PeerPort | undefined
  #handshake: Revision | undefined
  #described: Revision | undefined
  readonly #pending = new Map<unknown, { message: Message; revision: Revision | undefined }>()

  /** The methods of the server's requests, by id. */
  readonly #serverRequests = new Map<unknown, string>()

  constructor(report: (violation: string) => void, clientOnly = false) {
    this.#report = report
    this.#clientOnly = clientOnly
  }

  add(side: PeerPort, frame: string): void {
    let message: unknown
    try {
      message = JSON.parse(frame)
    } catch {
      return this.#unreadable(side, frame)
    }
    for (const each of Array.isArray(message) ? (message as unknown[]) : [message]) {
      if (typeof each === 'object' && each !== null) this.#message(side, each, frame)
    }
  }

  /** Tests let clients send anything; what a server sends must be JSON. */
  #unreadable(side: PeerPort, frame: string): void {
    if (this.#client !== undefined && side !== this.#client && !this.#clientOnly)
      this.#report(`not JSON: ${frame}`)
  }

  #message(side: PeerPort, message: Message, frame: string): void {
    const described = revisions.find(({ id }) => id === message.params?._meta?.[PROTOCOL_VERSION])
    if (message.method === 'initialize' || described !== undefined) this.#client ??= side
    if (this.#client === undefined) return
    if (side === this.#client) {
      if (message.method !== undefined && message.id !== undefined)
        this.#pending.set(message.id, {
          message,
          revision: this.#isEarlyPing(message)
            ? newestHandshakeRevision
            : (described ?? this.#handshake),
        })
      if (described !== undefined) this.#described = described
      if (this.#clientOnly) this.#clientMessage(message, frame)
      return
    }
    if (this.#clientOnly) {
      if (message.method !== undefined && message.id !== undefined)
        this.#serverRequests.set(message.id, message.method)
      if (message.result?.protocolVersion !== undefined)
        this.#handshake = revisions.find(({ id }) => id === message.result?.protocolVersion)
      return
    }
    if (message.method === undefined) this.#response(message, frame)
    else if (message.id === undefined && extensionNames.has(message.method))
      this.#check((this.#handshake ?? this.#described)?.id, 'JSONRPCNotification', message, frame)
    else
      this.#check(
        (this.#handshake ?? this.#described)?.id,
        message.id === undefined ? 'ServerNotification' : 'ServerRequest',
        message,
        frame,
      )
  }

  /** A message of the client. */
  #clientMessage(message: Message, frame: string): void {
    if (message.method === undefined) {
      const result = RESULTS[this.#serverRequests.get(message.id) ?? '']
      if (result !== undefined && message.result !== undefined)
        this.#check(this.#handshake?.id, result, message.result, frame)
      return
    }
    const spoken = this.#isEarlyPing(message)
      ? newestHandshakeRevision
      : (this.#handshake ?? this.#described)
    const revision = message.method === 'initialize' ? message.params?.protocolVersion : spoken?.id
    const known = message.id === undefined ? 'ClientNotification' : 'ClientRequest'
    const definition = extensionNames.has(message.method ?? '') ? 'JSONRPCRequest' : known
    this.#check(revision, definition, message, frame)
  }

  /** Before the response to `initialize`, a client may send pings, also after a `server/discover` that is late. */
  #isEarlyPing({ method, params }: Message): boolean {
    return method === 'ping' && params === undefined && this.#handshake === undefined
  }

  #response(message: Message, frame: string): void {
    const asked = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (asked?.message.method === 'initialize' && message.result !== undefined) {
      this.#handshake = revisions.find(({ id }) => id === message.result?.protocolVersion)
      asked.revision = this.#handshake
    }
    const revision = asked?.revision ?? this.#handshake ?? this.#described
    if (revision === undefined) return
    if (message.error !== undefined) return this.#error(revision, message, frame)
    this.#check(
      revision.id,
      'JSONRPCResultResponse' in (officialSchemas[revision.id]?.definitions ?? {})
        ? 'JSONRPCResultResponse'
        : 'JSONRPCResponse',
      message,
      frame,
    )
    const method = asked?.message.method ?? ''
    // Tests send invalid answers, which the server requests again.
    if (message.result?.resultType === 'input_required')
      return this.#check(revision.id, 'InputRequiredResult', message.result, frame)
    const { resultType = '' } = message.result ?? {}
    if (revision.typedResults && extensionNames.has(resultType))
      return this.#check(revision.id, 'Result', message.result, frame)
    const result = RESULTS[method]
    if (result !== undefined) this.#check(revision.id, result, message.result, frame)
    if (asked !== undefined && result !== undefined) this.#servedRequest(revision.id, asked.message)
  }

  #error(revision: Revision, message: Message, frame: string): void {
    const definition =
      'JSONRPCErrorResponse' in (officialSchemas[revision.id]?.definitions ?? {})
        ? 'JSONRPCErrorResponse'
        : 'JSONRPCError'
    const exempt = message.id === null && revision.unreadableId === 'null'
    this.#check(revision.id, definition, exempt ? { ...message, id: 0 } : message, frame)
  }

  /** A request that got a result must be valid. */
  #servedRequest(revision: string, message: Message): void {
    const { params } = message
    const short =
      message.method === 'initialize' &&
      (params === undefined || !('capabilities' in params && 'clientInfo' in params))
    if (!short) this.#check(revision, 'ClientRequest', message, JSON.stringify(message))
  }

  #check(revision: string | undefined, definition: string, value: unknown, frame: string): void {
    const problem = revision === undefined ? undefined : schemaError(revision, definition, value)
    if (problem !== undefined) this.#report(`${problem}\n  in ${frame.slice(0, 500)}`)
  }
}
