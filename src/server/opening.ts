import { INVALID_PARAMS, RpcError } from '../jsonrpc/errors.js'
import type { Principal } from '../jsonrpc/channel.js'
import type { Params } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import { clientFacts } from '../protocol/revisions/client-facts.js'
import {
  type Revision,
  handshakeRevisions,
  statelessRevisions,
  newestHandshakeRevision,
} from '../protocol/revisions/index.js'
import { projectCapabilities, projectImplementation } from '../protocol/revisions/project.js'
import type { Caller } from './call.js'
import { completes } from './features/completion.js'
import type { Server } from './server.js'

export interface Opened {
  revision: Revision
  caller: Caller
  result: object
}

/** Answers `initialize`: picks the revision and says what the server offers. */
export function open(server: Server, params: Params, principal: Principal | undefined): Opened {
  const { protocolVersion, capabilities, clientInfo: info } = clientFacts(params)
  const { revision, answer } = negotiate(server, protocolVersion)
  const result: Record<string, unknown> = {
    protocolVersion: answer,
    capabilities: projectCapabilities(revision, capabilitiesOf(server)),
    serverInfo: projectImplementation(revision, server.info),
  }
  if (server.instructions !== undefined) result['instructions'] = server.instructions
  return { revision, caller: { info, capabilities, revision: revision.id, principal }, result }
}

/** https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation */
function negotiate(
  { unsupportedRevision }: Server,
  proposed: string,
): { revision: Revision; answer: string } {
  const revision = handshakeRevisions.find(({ id }) => id === proposed)
  if (revision !== undefined) return { revision, answer: revision.id }
  if (unsupportedRevision === 'reject') {
    const supported = handshakeRevisions.map(({ id }) => id)
    throw new RpcError(
      INVALID_PARAMS,
      `Unsupported protocol version: ${truncate(proposed)}; supported are ${supported.join(', ')}`,
      {
        supported,
        requested: truncate(proposed),
      },
    )
  }
  return {
    revision: newestHandshakeRevision,
    answer: unsupportedRevision === 'echo' ? proposed : newestHandshakeRevision.id,
  }
}

/** Answers `server/discover`. Only revisions that a request may name for itself are listed. */
export function discover(server: Server): object {
  const result: Record<string, unknown> = {
    supportedVersions: statelessRevisions.map(({ id }) => id),
    capabilities: capabilitiesOf(server),
  }
  if (server.instructions !== undefined) result['instructions'] = server.instructions
  return result
}

/** Capabilities follow from what is defined. */
function capabilitiesOf(server: Server): object {
  const { tools, resources, prompts } = server
  const capabilities: Record<string, object> = { logging: {} }
  if (tools.offered) capabilities['tools'] = { listChanged: true }
  if (resources.offered) capabilities['resources'] = { subscribe: true, listChanged: true }
  if (prompts.offered) capabilities['prompts'] = { listChanged: true }
  if (completes(server)) capabilities['completions'] = {}
  return capabilities
}
