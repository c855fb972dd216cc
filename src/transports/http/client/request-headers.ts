import { RequestFailedError } from '../../../jsonrpc/errors.js'
import { type Message, type SentMessage, isObject } from '../../../jsonrpc/message.js'
import {
  handshakeRevisions,
  revisions,
  statelessRevisions,
} from '../../../protocol/revisions/index.js'
import type { HttpResponse } from './http-request.js'
import { encodeHeaderValue } from './parameter-headers.js'

export const JSON_TYPE = 'application/json'
export const EVENT_STREAM = 'text/event-stream'

/** The headers of a POST; a stateless request repeats parts of its body for proxies. */
export function requestHeaders(
  message: SentMessage | undefined,
  version: string | undefined,
  nameParam: (method: string) => string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': JSON_TYPE,
    accept: `${JSON_TYPE}, ${EVENT_STREAM}`,
  }
  if (!isStateless(version) || message === undefined || message.kind === 'response') return headers
  const { method, params } = message
  headers['mcp-method'] = method
  const param = (message.kind === 'request' ? message.nameParam : undefined) ?? nameParam(method)
  const name = param === undefined || !isObject(params) ? undefined : params[param]
  if (typeof name === 'string') headers['mcp-name'] = encodeHeaderValue(name)
  const mirrored = message.kind === 'request' ? message.headerParams : undefined
  for (const [header, value] of Object.entries(mirrored ?? {}))
    headers[`mcp-param-${header.toLowerCase()}`] = encodeHeaderValue(value)
  return headers
}

/** Whether requests of this version carry it in `_meta`, instead of one handshake. */
export function isStateless(version: string | undefined): boolean {
  return version !== undefined && statelessRevisions.some(({ id }) => id === version)
}

/** Whether a message may be an array of messages. */
export function hasBatches(version: string | undefined): boolean {
  return handshakeRevisions.some(({ id, batches }) => batches && id === version)
}

/** The version header of a message after the handshake, in the revisions that have it. */
export function versionHeader(version: string | undefined): Readonly<Record<string, string>> {
  const sent = revisions.some((each) => each.versionHeader && each.id === version)
  return sent && version !== undefined ? { 'mcp-protocol-version': version } : {}
}

/** The session id of an `initialize` response. */
export function sessionOf(response: HttpResponse): string | undefined {
  const id = response.header('mcp-session-id')
  if (id === undefined || /^[!-~]+$/.test(id)) return id
  throw new RequestFailedError(
    'INVALID_RESPONSE',
    'The server sent a Mcp-Session-Id with characters that are not visible ASCII',
    {
      executed: 'maybe',
    },
  )
}

/** The protocol version of an `initialize` result. */
export function agreedVersion(message: Message): string | undefined {
  const result =
    message.kind === 'response' && 'result' in message.outcome ? message.outcome.result : undefined
  const version = isObject(result) ? result['protocolVersion'] : undefined
  return typeof version === 'string' ? version : undefined
}
