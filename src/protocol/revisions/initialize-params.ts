import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import type { Implementation } from '../model.js'
import { newestHandshakeRevision } from './index.js'

/* What is stored of a client's description for the life of its session: known members only, a few kilobytes at most. */

/** Maximum length of a client's name, version and title, and of a revision, in characters. */
const MAX_NAME = 256
/** Maximum length of other strings. */
const MAX_TEXT = 1024
/** Maximum memory of one capability in bytes; more for `extensions`, which has a member for each extension. */
const MAX_CAPABILITY = 1024
const MAX_EXTENSIONS = 4096

/** The string members of `clientInfo`. Icons are not stored: no server shows them. */
const INFO: Readonly<Record<string, number>> = {
  name: MAX_NAME,
  version: MAX_NAME,
  title: MAX_NAME,
  description: MAX_TEXT,
  websiteUrl: MAX_TEXT,
}
const CAPABILITIES = ['experimental', 'extensions', 'roots', 'sampling', 'elicitation', 'tasks']

/** What is stored of `initialize`. */
export interface StoredInitializeParams {
  protocolVersion: string
  capabilities: Params
  clientInfo: Implementation | undefined
}

/** Throws if the parameters of `initialize` are invalid or too long. */
export function storedInitializeParams({
  protocolVersion,
  capabilities = {},
  clientInfo,
}: Params): StoredInitializeParams {
  if (typeof protocolVersion !== 'string' || protocolVersion.length > MAX_NAME)
    throw invalidParams(
      `"protocolVersion" must be a string such as "${newestHandshakeRevision.id}"`,
    )
  if (!isObject(capabilities)) throw invalidParams('"capabilities" must be an object')
  if (clientInfo !== undefined && !isObject(clientInfo))
    throw invalidParams('"clientInfo" must be an object')
  for (const member of ['name', 'version']) {
    const value = clientInfo?.[member]
    if (typeof value === 'string' && value.length > MAX_NAME)
      throw invalidParams(
        `"clientInfo.${member}" has ${value.length} characters; at most ${MAX_NAME} are allowed`,
      )
  }
  return {
    protocolVersion,
    capabilities: boundedCapabilities(capabilities),
    clientInfo: boundedInfo(clientInfo),
  }
}

/** The known members that are not too long. */
export function boundedInfo(info: Params | undefined): Implementation | undefined {
  if (info === undefined) return undefined
  const kept: Record<string, string> = {}
  for (const [member, max] of Object.entries(INFO)) {
    const value = info[member]
    if (typeof value === 'string' && value.length <= max) kept[member] = value
  }
  return kept as unknown as Implementation // as the client describes itself; shown, never relied upon
}

/** The known capabilities. Of one that is too long, only its presence is stored. */
export function boundedCapabilities(capabilities: Params): Params {
  const kept: Record<string, unknown> = {}
  for (const name of CAPABILITIES) {
    const value = capabilities[name]
    const bytes = name === 'extensions' ? MAX_EXTENSIONS : MAX_CAPABILITY
    if (value !== undefined) kept[name] = copyWithin({ bytes }, value) ?? {}
  }
  return kept
}

/** A copy of a JSON value; undefined if it exceeds the bytes. */
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
  // Not `entries`: there may be 200,000, of which few fit.
  for (const key of Object.keys(value)) {
    room.bytes -= 2 * key.length
    members.push([key, copyWithin(room, value[key])])
    if (room.bytes < 0) return undefined
  }
  return Object.fromEntries(members)
}

function invalidParams(problem: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Invalid params: ${problem}`)
}
