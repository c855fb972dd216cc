import { KINDS, KIND_NAMES } from '../capture/definitions.js'
import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  PROTOCOL_VERSION,
  SERVER_INFO,
} from '../protocol/meta.js'
import { METHODS } from '../protocol/methods.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { isObject } from '../schema/issue.js'
import { VERSION } from '../version.js'
import type { Connection, Reply, RequestOptions } from './connection.js'

const CLIENT = { name: 'ccmcp check', version: VERSION } as const
/** Pages of a list that are read. */
const MAX_PAGES = 50

/** A connection on which requests can be made in one revision. */
export class Session {
  readonly connection: Connection
  readonly revision: Revision
  readonly capabilities: Readonly<Record<string, unknown>>
  /** Name and version of the server, if it says so. */
  readonly server: unknown

  constructor(connection: Connection, revision: Revision, result: unknown) {
    const { capabilities, serverInfo, _meta: meta } = isObject(result) ? result : {}
    this.connection = connection
    this.revision = revision
    this.capabilities = isObject(capabilities) ? capabilities : {}
    this.server = serverInfo ?? (isObject(meta) ? meta[SERVER_INFO] : undefined)
  }

  get isStateless(): boolean {
    return this.revision.lifecycle === 'stateless'
  }

  has(capability: string): boolean {
    return capability in this.capabilities
  }

  /** The parameters of a request, with the `_meta` that its revision requires. */
  params(params?: object): object | undefined {
    return this.isStateless ? { ...params, _meta: metaOf(this.revision) } : params
  }

  async request(method: string, params?: object, options?: RequestOptions): Promise<Reply> {
    return await this.connection.request(method, this.params(params), options)
  }

  /** Sends a request that every server of the revision answers: `ping`, or `server/discover` if it is stateless. */
  async ping(options?: RequestOptions): Promise<Reply> {
    return await this.request(this.isStateless ? 'server/discover' : 'ping', undefined, options)
  }

  /** Adds a finding at the bytes of a reply. */
  report(
    rule: Parameters<Connection['recording']['report']>[0],
    detail: string,
    reply?: Reply,
    method?: string,
  ): void {
    this.connection.recording.report(rule, detail, {
      revision: this.revision,
      ...(reply === undefined ? {} : { span: reply.span, dir: reply.dir }),
      ...(method === undefined ? {} : { method }),
    })
  }

  /** Requests the lists of everything that the server has declared. */
  async list(): Promise<void> {
    for (const kind of KIND_NAMES) {
      const { method } = KINDS[kind]
      if (this.has(METHODS.get(method)?.capability ?? '')) await this.#pages(method)
    }
  }

  async #pages(method: string): Promise<void> {
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const reply = await this.request(method, cursor === undefined ? undefined : { cursor })
      const { kind, value } = reply
      if (kind === 'none') return noResponse(this, method, reply)
      // A server need not have templates to have resources.
      if (kind === 'error' && !(isMissing(value) && method === KINDS.resourceTemplates.method))
        this.report('failed-list', `${method}: ${describeError(value)}`, reply, method)
      cursor = isObject(value) ? value['nextCursor'] : undefined
      if (kind === 'error' || typeof cursor !== 'string') return
    }
  }
}

/** A request without a response: the server has exited, has refused it in another way, or did not answer in time. */
export function noResponse(
  session: Pick<Session, 'connection' | 'report'>,
  what: string,
  reply: Reply,
): void {
  const { ended, timeout, refusal } = session.connection
  if (refusal !== undefined) session.report('http-status', `${what} got ${refusal}`, reply, what)
  else if (ended === undefined)
    session.report('no-response', `${what}, within ${timeout / 1000} s`, reply, what)
  else session.report('crash', `${ended}; it was sent: ${what}`, reply, what)
}

export function codeOf(value: unknown): unknown {
  return isObject(value) ? value['code'] : undefined
}

function isMissing(value: unknown): boolean {
  return codeOf(value) === -32601
}

export function describeError(value: unknown): string {
  const { code, message } = isObject(value) ? value : {}
  return `${String(code)} ${String(message)}`.slice(0, 200)
}

function metaOf({ id }: Revision): Record<string, unknown> {
  return { [PROTOCOL_VERSION]: id, [CLIENT_INFO]: CLIENT, [CLIENT_CAPABILITIES]: {} }
}

/** How an attempt to open a session ended. */
export interface Opening {
  session: Session | undefined
  reply: Reply
}

/** Opens a session in a revision. The server may choose another one of the same kind. */
export async function openSession(
  connection: Connection,
  revision: Revision,
  timeout: number,
): Promise<Opening> {
  if (revision.lifecycle === 'stateless') {
    const params = { _meta: metaOf(revision) }
    const reply = await connection.request('server/discover', params, { timeout })
    const versions = isObject(reply.value) ? reply.value['supportedVersions'] : undefined
    // A server may answer, only to say that it has other revisions.
    const isSupported = Array.isArray(versions) && versions.includes(revision.id)
    if (reply.kind !== 'result' || !isSupported) return { session: undefined, reply }
    return { session: new Session(connection, revision, reply.value), reply }
  }
  const params = { protocolVersion: revision.id, capabilities: {}, clientInfo: CLIENT }
  const reply = await connection.request('initialize', params, { timeout })
  const version = isObject(reply.value) ? reply.value['protocolVersion'] : undefined
  const chosen = revisions.find(({ id }) => id === version)
  if (reply.kind !== 'result' || chosen?.lifecycle !== 'handshake')
    return { session: undefined, reply }
  connection.notify('notifications/initialized')
  return { session: new Session(connection, chosen, reply.value), reply }
}
