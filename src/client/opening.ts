import { RequestFailedError, RpcError } from '../jsonrpc/errors.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { truncate, truncateJson } from '../jsonrpc/truncate.js'
import {
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/errors.js'
import { SERVER_INFO } from '../protocol/meta.js'
import type { Implementation } from '../protocol/model.js'
import {
  type Revision,
  handshakeRevisions,
  statelessRevisions,
  newestHandshakeRevision,
} from '../protocol/revisions/index.js'
import { projectClientCapabilities, projectImplementation } from '../protocol/revisions/project.js'
import type { CallOptions } from './call-options.js'
import type { ClientSession, ServerDetails, ClientSessionOptions } from './session.js'
import { ConnectionError } from './target.js'

const MODERN_ERRORS: ReadonlySet<number> = new Set([
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
])
/** HTTP statuses that do not say which protocol a server speaks. */
const INCONCLUSIVE: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
/** Maximum characters of a server's error in an error message. */
const MAX_SHOWN = 1000

/** How a connection to a server is opened. */
export type Lifecycle = Revision['lifecycle']

/**
 * What the response to `server/discover` says about a server: it is modern; it is
 * legacy, since it responded with something else; or there is no usable response.
 */
export type ProbeOutcome =
  | { kind: 'modern'; details: ServerDetails }
  | { kind: 'legacy'; answer: Error }
  | { kind: 'failed'; error: unknown }

/**
 * Asks with `server/discover` whether the server is modern. Never rejects.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility
 */
export async function probe(
  session: ClientSession,
  revision: Revision,
  options: CallOptions,
  retryListed = false,
): Promise<ProbeOutcome> {
  try {
    return {
      kind: 'modern',
      details: discoveredDetails(
        await session.request('server/discover', undefined, options, revision),
      ),
    }
  } catch (error) {
    if (error instanceof RpcError && error.code === UNSUPPORTED_PROTOCOL_VERSION) {
      const supported = isObject(error.data) ? error.data['supported'] : undefined
      const mutual = newestMutual(supported, retryListed ? undefined : revision)
      if (mutual !== undefined) return await probe(session, mutual, options)
      return hasHandshake(supported)
        ? { kind: 'legacy', answer: error }
        : { kind: 'failed', error: noCommonRevision(supported) }
    }
    if (isModern(error))
      return {
        kind: 'failed',
        error: new ConnectionError(describeRpcError('server/discover', error), { cause: error }),
      }
    const legacy = error instanceof RpcError || error instanceof TypeError || isLegacyFailure(error)
    return legacy ? { kind: 'legacy', answer: error } : { kind: 'failed', error }
  }
}

/**
 * Whether the failure of an HTTP request leads to `initialize`: a client error that says something of the request, or a
 * body that is no response. In a browser, also a network error without a reason: CORS may not allow the headers.
 */
export function isLegacyFailure(error: unknown): error is RequestFailedError {
  if (!(error instanceof RequestFailedError)) return false
  const { code, status = 0, cause } = error
  if (code === 'INVALID_RESPONSE') return true
  if (code === 'HTTP_STATUS') return status >= 400 && !isInconclusive(error)
  return code === 'NETWORK' && cause instanceof TypeError && cause.cause === undefined
}

/** Whether the HTTP status does not say which protocol the server speaks. */
export function isInconclusive({ status = 0 }: RequestFailedError): boolean {
  return status >= 500 || INCONCLUSIVE.has(status)
}

/** Whether `initialize` was refused as by a server that has no Streamable HTTP at this URL. */
export function lacksStreamableHttp(error: unknown): boolean {
  return (
    error instanceof RequestFailedError &&
    (error.status === 400 || error.status === 404 || error.status === 405) &&
    !isModern(error.cause)
  )
}

/** Whether only modern servers respond with this error. */
export function isModern(error: unknown): error is RpcError {
  return error instanceof RpcError && MODERN_ERRORS.has(error.code)
}

/** The message for a server's error. */
export function describeRpcError(method: string, { code, message, data }: RpcError): string {
  const detail = data === undefined ? '' : ` ${JSON.stringify(data)}`
  return `The server responded to ${method} with error ${code}: ${truncate(`${message}${detail}`, MAX_SHOWN)}`
}

/** What the result of `server/discover` says. */
export function discoveredDetails(result: Params): ServerDetails {
  const { supportedVersions, capabilities, instructions, _meta: meta } = result
  const revision = newestMutual(supportedVersions)
  if (revision === undefined) {
    const legacy = !Array.isArray(supportedVersions) || hasHandshake(supportedVersions)
    throw legacy
      ? new TypeError('The response to server/discover lists no stateless protocol revision')
      : noCommonRevision(supportedVersions)
  }
  return {
    revision,
    server: infoOf(isObject(meta) ? meta[SERVER_INFO] : undefined),
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
    discoverResult: result,
  }
}

/** The newest stateless revision that the server supports as well, except one that it has refused. */
function newestMutual(supported: unknown, refused?: Revision): Revision | undefined {
  return statelessRevisions.findLast(
    (each) => each !== refused && Array.isArray(supported) && supported.includes(each.id),
  )
}

function hasHandshake(supported: unknown): boolean {
  return handshakeRevisions.some(({ id }) => Array.isArray(supported) && supported.includes(id))
}

function noCommonRevision(supported: unknown): ConnectionError {
  const listed = Array.isArray(supported)
    ? truncate(supported.filter((each) => typeof each === 'string').join(', '), MAX_SHOWN)
    : ''
  return new ConnectionError(
    `The server and this client have no protocol revision in common: it serves ${listed || 'none'}`,
  )
}

/** The `initialize` handshake. */
export async function initialize(
  session: ClientSession,
  proposed: Revision | undefined,
  { info, capabilities, extensions }: ClientSessionOptions,
  options: CallOptions,
): Promise<ServerDetails> {
  const revision = proposed ?? newestHandshakeRevision
  const params = {
    protocolVersion: revision.id,
    capabilities: projectClientCapabilities(revision, extensions.declare(revision, capabilities)),
    clientInfo: projectImplementation(revision, info),
  }
  const result = await session.request('initialize', params, options)
  const { protocolVersion, capabilities: offered, serverInfo, instructions } = result
  const negotiated = handshakeRevisions.find(({ id }) => id === protocolVersion)
  if (negotiated === undefined || (proposed !== undefined && negotiated !== proposed)) {
    throw new ConnectionError(
      `The client proposed ${revision.id} and the server responded with protocol revision ${truncateJson(protocolVersion)}, which ${proposed === undefined ? 'this client does not support' : 'is not the requested one'}`,
    )
  }
  session.revision = negotiated
  session.capabilities = isObject(offered) ? offered : {}
  session.telemetry?.opened()
  session.peer.notify('notifications/initialized')
  return {
    revision: negotiated,
    server: infoOf(serverInfo),
    capabilities: session.capabilities,
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

function infoOf(value: unknown): Implementation | undefined {
  return isObject(value) && typeof value['name'] === 'string'
    ? (value as unknown as Implementation) // only displayed: other members are not checked
    : undefined
}
