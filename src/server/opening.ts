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
import type { InternalServer } from './context.js'

export interface Opened {
  revision: Revision
  caller: Caller
  result: object
}

/** Serves `initialize`: negotiates the revision and declares the capabilities. */
export function open(
  server: InternalServer,
  params: Params,
  principal: Principal | undefined,
): Opened {
  const { protocolVersion, capabilities, clientInfo: info } = clientFacts(params)
  const { revision, answer } = negotiate(server, protocolVersion)
  const result: Record<string, unknown> = {
    protocolVersion: answer,
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
      return completes(server)
    default:
      return true
  }
}

/** Whether any argument or variable can be completed. */
function completes(server: InternalServer): boolean {
  for (const { definition } of server.prompts.values()) {
    if (
      Object.values(definition.arguments ?? {}).some(
        ({ values, complete }) => values !== undefined || complete !== undefined,
      )
    )
      return true
  }
  for (const { definition } of server.resources.values())
    if (definition.complete !== undefined) return true
  return false
}

function capabilitiesOf(server: InternalServer, revision: Revision): object {
  const offered = Object.entries(CAPABILITIES).filter(([name]) => offers(server, name))
  const core = projectCapabilities(revision, Object.fromEntries(offered))
  return { ...core, ...server.extensions?.capabilities(revision) }
}
