import { Timeout } from '../jsonrpc/deadline.js'
import { ChannelClosed, RpcError } from '../jsonrpc/errors.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { truncate, truncateJson } from '../jsonrpc/truncate.js'
import { UNSUPPORTED_PROTOCOL_VERSION } from '../protocol/errors.js'
import { SERVER_INFO } from '../protocol/meta.js'
import type { Implementation } from '../protocol/model.js'
import { type Revision, byHandshake, bySelfDescription, newestHandshake } from '../protocol/revisions/index.js'
import { projectClientCapabilities, projectImplementation } from '../protocol/revisions/shapes.js'
import type { CallOptions, ClientSession, Reached, SessionOptions } from './session.js'
import { ConnectionError } from './target.js'

/** How a server wants to be opened. */
export type Verdict = Revision['opening']

/** What a probe shows: what was reached, or that the server is of the old kind, says nothing, or has ended of it. */
export type Probed = Reached | 'handshake' | 'silent' | 'ended'

/**
 * Asks with `server/discover` whether requests may describe themselves.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility
 */
export async function probe(session: ClientSession, revision: Revision, options: CallOptions): Promise<Probed> {
  session.describes = revision
  try {
    return discovered(session, await session.request('server/discover', undefined, options))
  } catch (error) {
    session.describes = undefined
    if (error instanceof ChannelClosed) return 'ended'
    if (error instanceof Timeout) return 'silent'
    if (error instanceof RpcError && error.code === UNSUPPORTED_PROTOCOL_VERSION) {
      const mutual = choose(error, revision)
      return mutual === undefined ? 'handshake' : await probe(session, mutual, options)
    }
    if (error instanceof RpcError || error instanceof TypeError) return 'handshake'
    throw error
  }
}

function discovered(session: ClientSession, result: Params): Reached {
  const { supportedVersions, capabilities, instructions, _meta: meta } = result
  const revision = bySelfDescription.findLast(({ id }) => Array.isArray(supportedVersions) && supportedVersions.includes(id))
  if (revision === undefined) throw new TypeError('server/discover lists no revision that this client knows')
  session.describes = revision
  return {
    revision,
    server: infoOf(isObject(meta) ? meta[SERVER_INFO] : undefined),
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

/** The server does know self-describing requests, but not of this revision; undefined: only handshakes are left. */
function choose({ data }: RpcError, refused: Revision): Revision | undefined {
  const supported: unknown[] = isObject(data) && Array.isArray(data['supported']) ? data['supported'] : []
  const mutual = bySelfDescription.findLast(({ id }) => supported.includes(id) && id !== refused.id)
  if (mutual !== undefined || byHandshake.some(({ id }) => supported.includes(id))) return mutual
  throw new ConnectionError(
    `The server and this client have no protocol revision in common: it serves ${truncate(supported.filter((each) => typeof each === 'string').join(', ')) || 'none'}`,
  )
}

/** The handshake. */
export async function shakeHands(
  session: ClientSession,
  proposed: Revision | undefined,
  { info, capabilities }: SessionOptions,
  options: CallOptions,
): Promise<Reached> {
  const revision = proposed ?? newestHandshake
  const params = {
    protocolVersion: revision.id,
    capabilities: projectClientCapabilities(revision, capabilities),
    clientInfo: projectImplementation(revision, info),
  }
  const result = await session.request('initialize', params, options)
  const { protocolVersion, capabilities: offered, serverInfo, instructions } = result
  const reached = byHandshake.find(({ id }) => id === protocolVersion)
  if (reached === undefined || (proposed !== undefined && reached !== proposed)) {
    throw new ConnectionError(
      `The server answered ${revision.id} with protocol revision ${truncateJson(protocolVersion)}, which ${proposed === undefined ? 'this client does not know' : 'is not the one that was asked for'}`,
    )
  }
  session.agreed = reached
  session.peer.notify('notifications/initialized')
  return {
    revision: reached,
    server: infoOf(serverInfo),
    capabilities: isObject(offered) ? offered : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

function infoOf(value: unknown): Implementation | undefined {
  return isObject(value) && typeof value['name'] === 'string' ? (value as unknown as Implementation) : undefined // shown, never relied upon
}
