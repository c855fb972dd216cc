import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import type { Implementation } from '../model.js'
import { newestHandshakeRevision } from './index.js'

/* What a client says of itself is kept as long as its session: only what is of use, and not more than a few kilobytes. */

/** The longest name, version and title of a client, and the longest name of a revision, in characters. */
const MAX_NAME = 256
/** The longest text of any other kind. */
const MAX_TEXT = 1024
/** How much of one capability is stored, in bytes of memory; more of `extensions`, which has one member for each. */
const MAX_CAPABILITY = 1024
const MAX_EXTENSIONS = 4096

/** Strings that `clientInfo` may have. Icons are not kept: a server does not show its clients to anybody. */
const INFO: Readonly<Record<string, number>> = {
  name: MAX_NAME,
  version: MAX_NAME,
  title: MAX_NAME,
  description: MAX_TEXT,
  websiteUrl: MAX_TEXT,
}
const CAPABILITIES = ['experimental', 'extensions', 'roots', 'sampling', 'elicitation', 'tasks']

/** What is kept of `initialize`. */
export interface ClientFacts {
  protocolVersion: string
  capabilities: Params
  clientInfo: Implementation | undefined
}

/** Throws where a client describes itself wrongly, or at too great length. */
export function clientFacts({
  protocolVersion,
  capabilities = {},
  clientInfo,
}: Params): ClientFacts {
  if (typeof protocolVersion !== 'string' || protocolVersion.length > MAX_NAME)
    throw wrong(`"protocolVersion" must be a string such as "${newestHandshakeRevision.id}"`)
  if (!isObject(capabilities)) throw wrong('"capabilities" must be an object')
  if (clientInfo !== undefined && !isObject(clientInfo))
    throw wrong('"clientInfo" must be an object')
  for (const member of ['name', 'version']) {
    const value = clientInfo?.[member]
    if (typeof value === 'string' && value.length > MAX_NAME)
      throw wrong(
        `"clientInfo.${member}" has ${value.length} characters; at most ${MAX_NAME} are allowed`,
      )
  }
  return {
    protocolVersion,
    capabilities: keptCapabilities(capabilities),
    clientInfo: keptInfo(clientInfo),
  }
}

/** The members that are known, as far as they are not too long. */
export function keptInfo(info: Params | undefined): Implementation | undefined {
  if (info === undefined) return undefined
  const kept: Record<string, string> = {}
  for (const [member, max] of Object.entries(INFO)) {
    const value = info[member]
    if (typeof value === 'string' && value.length <= max) kept[member] = value
  }
  return kept as unknown as Implementation // as the client describes itself; shown, never relied upon
}

/** The capabilities that are known. One that is described at too great length is kept without its description. */
export function keptCapabilities(capabilities: Params): Params {
  const kept: Record<string, unknown> = {}
  for (const name of CAPABILITIES) {
    const value = capabilities[name]
    const bytes = name === 'extensions' ? MAX_EXTENSIONS : MAX_CAPABILITY
    if (value !== undefined) kept[name] = copyWithin({ bytes }, value) ?? {}
  }
  return kept
}

/** A copy of a JSON value; undefined where it would take more bytes than there are. */
function copyWithin(room: { bytes: number }, value: unknown): unknown {
  room.bytes -= typeof value === 'string' ? 32 + 2 * value.length : 64
  if (room.bytes < 0) return undefined
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value as unknown[]) {
      items.push(copyWithin(room, item))
      if (room.bytes < 0) return undefined
    }
    return items
  }
  if (!isObject(value)) return value
  const members: [string, unknown][] = []
  for (const [key, member] of Object.entries(value)) {
    room.bytes -= 2 * key.length
    members.push([key, copyWithin(room, member)])
    if (room.bytes < 0) return undefined
  }
  return Object.fromEntries(members)
}

function wrong(problem: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Invalid params: ${problem}`)
}
