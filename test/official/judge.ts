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
 * Listens to a conversation and validates every message in it against the
 * official schema of the revision that is spoken. It finds out by itself who is
 * the client, and which revision each answer belongs to.
 */

/** Where we and the official schemas differ on purpose. */
export const EXEMPTIONS = {
  'id: null':
    'JSON-RPC wants it in an error whose request cannot be read; the schemas through 2025-06-18 do not allow it',
  'a short initialize':
    'clients by hand leave out capabilities and clientInfo; they are served all the same',
} as const

/** Notifications and result types of extensions, which no official schema has. Tests add theirs. */
export const extensionNames = new Set<string>()

const RESULTS: Readonly<Record<string, string>> = {
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

/** What is wrong with a value as a definition of a revision's schema, or undefined. */
export function fault(revision: string, definition: string, value: unknown): string | undefined {
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

export class Judge {
  readonly #found: (violation: string) => void
  readonly #clientOnly: boolean
  #client: PeerPort | undefined
  #handshake: Revision | undefined
  #described: Revision | undefined
  readonly #pending = new Map<unknown, { message: Message; revision: Revision | undefined }>()

  /** What the server has asked the client. */
  readonly #asked = new Map<unknown, string>()

  constructor(found: (violation: string) => void, clientOnly = false) {
    this.#found = found
    this.#clientOnly = clientOnly
  }

  hear(side: PeerPort, frame: string): void {
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

  /** A client may say anything, and tests let it; what a server says must be JSON. */
  #unreadable(side: PeerPort, frame: string): void {
    if (this.#client !== undefined && side !== this.#client && !this.#clientOnly)
      this.#found(`not JSON: ${frame}`)
  }

  #message(side: PeerPort, message: Message, frame: string): void {
    const described = revisions.find(({ id }) => id === message.params?._meta?.[PROTOCOL_VERSION])
    if (message.method === 'initialize' || described !== undefined) this.#client ??= side
    if (this.#client === undefined) return
    if (side === this.#client) {
      if (message.method !== undefined && message.id !== undefined)
        this.#pending.set(message.id, { message, revision: described ?? this.#handshake })
      if (described !== undefined) this.#described = described
      if (this.#clientOnly) this.#said(message, frame)
      return
    }
    if (this.#clientOnly) {
      if (message.method !== undefined && message.id !== undefined)
        this.#asked.set(message.id, message.method)
      if (message.result?.protocolVersion !== undefined)
        this.#handshake = revisions.find(({ id }) => id === message.result?.protocolVersion)
      return
    }
    if (message.method === undefined) this.#answer(message, frame)
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

  /** What a client says, whoever listens. */
  #said(message: Message, frame: string): void {
    if (message.method === undefined) {
      const result = RESULTS[this.#asked.get(message.id) ?? '']
      if (result !== undefined && message.result !== undefined)
        this.#check(this.#handshake?.id, result, message.result, frame)
      return
    }
    // Before `initialize` is answered, a client may send pings.
    const early =
      message.method === 'ping' && message.params === undefined && this.#handshake === undefined
    const spoken = early ? newestHandshakeRevision : (this.#handshake ?? this.#described)
    const revision = message.method === 'initialize' ? message.params?.protocolVersion : spoken?.id
    this.#check(
      revision,
      message.id === undefined ? 'ClientNotification' : 'ClientRequest',
      message,
      frame,
    )
  }

  #answer(message: Message, frame: string): void {
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
    // Answers that cannot be read are asked for again, and tests send such answers.
    if (message.result?.resultType === 'input_required')
      return this.#check(revision.id, 'InputRequiredResult', message.result, frame)
    const { resultType = '' } = message.result ?? {}
    if (revision.results === 'described' && extensionNames.has(resultType))
      return this.#check(revision.id, 'Result', message.result, frame)
    const result = RESULTS[method]
    if (result !== undefined) this.#check(revision.id, result, message.result, frame)
    if (asked !== undefined && result !== undefined) this.#question(revision.id, asked.message)
  }

  #error(revision: Revision, message: Message, frame: string): void {
    const definition =
      'JSONRPCErrorResponse' in (officialSchemas[revision.id]?.definitions ?? {})
        ? 'JSONRPCErrorResponse'
        : 'JSONRPCError'
    const exempt = message.id === null && revision.unreadableId === 'null'
    this.#check(revision.id, definition, exempt ? { ...message, id: 0 } : message, frame)
  }

  /** A request that was served must have been one. */
  #question(revision: string, message: Message): void {
    const { params } = message
    const short =
      message.method === 'initialize' &&
      (params === undefined || !('capabilities' in params && 'clientInfo' in params))
    if (!short) this.#check(revision, 'ClientRequest', message, JSON.stringify(message))
  }

  #check(revision: string | undefined, definition: string, value: unknown, frame: string): void {
    const problem = revision === undefined ? undefined : fault(revision, definition, value)
    if (problem !== undefined) this.#found(`${problem}\n  in ${frame.slice(0, 500)}`)
  }
}
