import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Message, type Params, type Request, isObject } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import { UNSUPPORTED_PROTOCOL_VERSION } from '../errors.js'
import { CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION } from '../meta.js'
import { LOG_LEVELS, type LogLevel } from '../model.js'
import { statelessRevision, statelessRevisions } from './index.js'
import type { Revision } from './revision.js'

/** What the `_meta` of a stateless request says about it and its sender. */
export interface RequestMeta {
  revision: Revision
  capabilities: Params
  info: Params | undefined
  /** The lowest level of log messages that the request asks for. */
  logLevel: LogLevel | undefined
}

/** Whether a message has any `_meta` key of a stateless request, even if others are missing. */
export function hasRequestMeta(message: Message): boolean {
  if (message.kind !== 'request' && message.kind !== 'notification') return false
  const meta = message.params?.['_meta']
  return isObject(meta) && (PROTOCOL_VERSION in meta || CLIENT_CAPABILITIES in meta)
}

/**
 * What a stateless request says in its `_meta`; undefined if it is not one.
 * It is read once and stored with the request. Throws if it cannot be
 * served: first incomplete (−32602), then a revision without stateless
 * requests (−32022).
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
 */
export function readRequestMeta(request: Request): RequestMeta | undefined {
  if (request.meta !== undefined) return request.meta as RequestMeta // written below only
  const meta = parseMeta(request.params)
  if (meta !== undefined) request.meta = meta
  return meta
}

function parseMeta(params: Params | undefined): RequestMeta | undefined {
  const meta = params?.['_meta']
  if (!isObject(meta)) return undefined
  const {
    [PROTOCOL_VERSION]: version,
    [CLIENT_CAPABILITIES]: capabilities,
    [CLIENT_INFO]: info,
    [LOG_LEVEL]: level,
  } = meta
  if (version === undefined && capabilities === undefined) return undefined
  if (typeof version !== 'string')
    throw invalidMeta(PROTOCOL_VERSION, 'the protocol revision of this request')
  if (!isObject(capabilities))
    throw invalidMeta(CLIENT_CAPABILITIES, 'an object, also when it is empty')
  if (info !== undefined && !isObject(info))
    throw invalidMeta(CLIENT_INFO, 'an object with name and version')
  const revision = statelessRevision(version)
  if (revision === undefined) throw unsupportedVersion(version)
  const logLevel = LOG_LEVELS.find((each) => each === level)
  if (level !== undefined && logLevel === undefined)
    throw invalidMeta(LOG_LEVEL, `one of ${LOG_LEVELS.join(', ')}`)
  return { revision, capabilities, info, logLevel }
}

/** A method that exists for stateless requests only, sent without their `_meta`. */
export function missingRequestMeta(method: string): RpcError {
  return new RpcError(
    INVALID_PARAMS,
    `Invalid params: ${truncate(method)} needs "${PROTOCOL_VERSION}" and "${CLIENT_CAPABILITIES}" in _meta`,
  )
}

function invalidMeta(key: string, what: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Invalid params: _meta must have "${key}": ${what}`)
}

function unsupportedVersion(requested: string): RpcError {
  const supported = statelessRevisions.map(({ id }) => id)
  return new RpcError(
    UNSUPPORTED_PROTOCOL_VERSION,
    `Unsupported protocol version: ${truncate(requested)}; supported: ${supported.join(', ')}`,
    { supported, requested: truncate(requested) },
  )
}
