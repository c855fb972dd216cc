import type { Principal } from '../jsonrpc/channel.js'
import { INVALID_PARAMS, INVALID_REQUEST, RpcError } from '../jsonrpc/errors.js'
import { callHook } from '../jsonrpc/hook.js'
import type { IncomingRequest } from '../jsonrpc/incoming.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { type Id, type Params, isThenable } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import type { Implementation, LogLevel } from '../protocol/model.js'
import {
  storedInitializeParams,
  boundedCapabilities,
  boundedInfo,
} from '../protocol/revisions/initialize-params.js'
import {
  type Revision,
  handshakeRevisions,
  newestHandshakeRevision,
  statelessRevisions,
} from '../protocol/revisions/index.js'
import { projectCapabilities, projectImplementation } from '../protocol/revisions/project.js'
import type { RequestMeta } from '../protocol/revisions/request-meta.js'
import { type Caller, type ClientContext, ServedCall } from './call.js'
import type { InternalServer } from './context.js'
import { RequestEnvironment } from './request-environment.js'
import { logEntryOf, makeLog } from './log.js'
import { runMiddleware } from './middleware.js'
import type { LogMessage } from './registry.js'

/* What a client says of itself, by `initialize` or in the `_meta` of a stateless request, and what the server declares. */

/** A class, because each object literal with a getter gets a hidden class of its own, which is slow. */
export class SessionClientContext implements ClientContext {
  readonly revision: Revision
  readonly caller: Caller
  readonly report: (report: LogEntry) => void
  readonly #level: () => LogLevel | undefined

  constructor(
    revision: Revision,
    caller: Caller,
    level: () => LogLevel | undefined,
    report: (report: LogEntry) => void,
  ) {
    this.revision = revision
    this.caller = caller
    this.report = report
    this.#level = level
  }

  get logLevel(): LogLevel | undefined {
    return this.#level()
  }
}

/** Up to this length of a request, its client description is not copied. */
const SHORT = 4096

/** The caller of a stateless request of `length` characters. A call may last for hours, so that of a long one only a bounded copy is stored. */
export function callerOf(
  { revision, capabilities, info }: RequestMeta,
  principal: Principal | undefined,
  length = 0,
): Caller {
  const short = length <= SHORT
  return {
    info: short ? (info as Implementation | undefined) : boundedInfo(info), // as the client describes itself
    capabilities: short ? capabilities : boundedCapabilities(capabilities),
    revision: revision.id,
    principal,
  }
}

/** What a handshake needs of its session. */
interface Session {
  readonly report: (report: LogEntry) => void
  /** Sends a log message to the client. */
  sendLog(message: LogMessage): void
  /** `initialize` has succeeded. */
  onNegotiated(): void
}

/** The initialize handshake of one session: what it has agreed on, and how far it is. */
export class Handshake {
  readonly #server: InternalServer
  readonly #session: Session
  #connection: ClientContext | undefined
  #ready = false
  /** While a middleware of `initialize` is pending: later messages wait for it. */
  #pending: Promise<void> | undefined
  #pendingId: Id | undefined
  #onInitializedCalled = false
  #warned = false
  #logLevel: LogLevel
  // A closure of `initialize` would hold the whole request.
  readonly #level = () => (this.#ready ? this.#logLevel : undefined)

  constructor(server: InternalServer, session: Session) {
    this.#server = server
    this.#session = session
    this.#logLevel = server.logLevel
  }

  /** What `initialize` has agreed on. */
  get connection(): ClientContext | undefined {
    return this.#connection
  }

  get pending(): Promise<void> | undefined {
    return this.#pending
  }

  /** The lowest level of log messages that the client wants; undefined before `notifications/initialized`. */
  get logLevel(): LogLevel | undefined {
    return this.#level()
  }

  readonly setLogLevel = (level: LogLevel): void => void (this.#logLevel = level)

  /** Whether this is the id of a pending `initialize`, which cannot be cancelled. */
  isPending(id: Id): boolean {
    return id === this.#pendingId
  }

  initialize(call: IncomingRequest): object {
    const { params = {} } = call.request
    const { revision, caller, result } = initialize(this.#server, params, call.principal)
    const connection = new SessionClientContext(revision, caller, this.#level, this.#session.report)
    const commit = () => {
      this.#connection = connection
      const message = `Initialized by ${nameOf(caller)}, protocol ${revision.id}`
      this.#session.report({ level: 'info', message, id: call.id })
      this.#session.onNegotiated()
      return result
    }
    const { middleware } = this.#server
    if (middleware.length === 0) return commit()
    const opened = runMiddleware(
      middleware,
      new ServedCall(new RequestEnvironment(this.#server, call, connection)),
      commit,
    )
    if (isThenable(opened)) {
      this.#pendingId = call.id
      this.#pending = this.#settled(opened)
    }
    return opened
  }

  async #settled(opened: unknown): Promise<void> {
    await Promise.allSettled([opened])
    this.#pending = undefined
    this.#pendingId = undefined
  }

  /** On `notifications/initialized`; false if there was no `initialize`. */
  confirm(): boolean {
    this.#ready = this.#connection !== undefined
    return this.#ready
  }

  /** On each request after `initialize`. */
  received(call: IncomingRequest): void {
    if (call.request.method === 'initialize')
      throw new RpcError(INVALID_REQUEST, 'Invalid Request: already initialized')
    if (!this.#ready) this.#warnEarly(call)
    // After a response: a client that waits for one must not receive a log message first.
    else if (
      this.#server.onInitialized !== undefined &&
      !this.#onInitializedCalled &&
      !call.inBatch
    )
      call.afterResponse(() => this.#callOnInitialized())
  }

  #callOnInitialized(): void {
    if (this.#onInitializedCalled || this.#connection === undefined) return
    this.#onInitializedCalled = true
    const log = makeLog((message) => {
      this.#session.report(logEntryOf(message))
      this.#session.sendLog(message)
    })
    const { caller } = this.#connection
    callHook(
      () => this.#server.onInitialized?.({ caller, log }),
      (error) => this.#session.report({ level: 'error', message: 'onInitialized failed', error }),
    )
  }

  #warnEarly(call: IncomingRequest): void {
    if (this.#warned) return
    this.#warned = true
    const message = `${truncate(call.request.method)} was received before notifications/initialized; it is served anyway`
    this.#session.report({ level: 'warning', message, id: call.id })
  }
}

/** The name of the client, if it has one. */
function nameOf({ info }: Caller): string {
  const name: unknown = info?.name
  return typeof name === 'string' ? truncate(name) : 'an unnamed client'
}

interface Initialized {
  revision: Revision
  caller: Caller
  result: object
}

/** Serves `initialize`: negotiates the revision and declares the capabilities. */
function initialize(
  server: InternalServer,
  params: Params,
  principal: Principal | undefined,
): Initialized {
  const {
    protocolVersion: proposed,
    capabilities,
    clientInfo: info,
  } = storedInitializeParams(params)
  const { revision, protocolVersion } = negotiate(server, proposed)
  const result: Record<string, unknown> = {
    protocolVersion,
    capabilities: capabilitiesOf(server, revision),
    serverInfo: projectImplementation(revision, server.info),
  }
  if (server.instructions !== undefined) result['instructions'] = server.instructions
  return { revision, caller: { info, capabilities, revision: revision.id, principal }, result }
}

/** https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation */
function negotiate(
  { unsupportedRevision }: InternalServer,
  proposed: string,
): { revision: Revision; protocolVersion: string } {
  const revision = handshakeRevisions.find(({ id }) => id === proposed)
  if (revision !== undefined) return { revision, protocolVersion: revision.id }
  if (unsupportedRevision === 'reject') {
    const supported = handshakeRevisions.map(({ id }) => id)
    throw new RpcError(
      INVALID_PARAMS,
      `Unsupported protocol version: ${truncate(proposed)}; supported: ${supported.join(', ')}`,
      {
        supported,
        requested: truncate(proposed),
      },
    )
  }
  return {
    revision: newestHandshakeRevision,
    protocolVersion: unsupportedRevision === 'echo' ? proposed : newestHandshakeRevision.id,
  }
}

/** Serves `server/discover`. Only revisions with stateless requests are listed. */
export function discover(server: InternalServer, revision: Revision): object {
  const result: Record<string, unknown> = {
    supportedVersions: statelessRevisions.map(({ id }) => id),
    capabilities: capabilitiesOf(server, revision),
  }
  if (server.instructions !== undefined) result['instructions'] = server.instructions
  return result
}

const CAPABILITIES: Readonly<Record<string, object>> = {
  logging: {},
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
}

/** Whether a server has a capability, which follows from what is defined. */
export function offers(server: InternalServer, capability: string | undefined): boolean {
  switch (capability) {
    case 'tools':
    case 'resources':
    case 'prompts':
      return server[capability].offered
    case 'completions':
      return server.prompts.completes || server.resources.completes
    default:
      return true
  }
}

function capabilitiesOf(server: InternalServer, revision: Revision): object {
  const offered = Object.entries(CAPABILITIES).filter(([name]) => offers(server, name))
  const core = projectCapabilities(revision, Object.fromEntries(offered))
  return { ...core, ...server.extensions?.capabilities(revision) }
}
