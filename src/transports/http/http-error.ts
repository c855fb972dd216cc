import { INTERNAL_ERROR, INVALID_REQUEST, RpcError } from '../../jsonrpc/errors.js'
import { type Id, type UnreadableId, encodeError } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { HeaderList, HttpContext } from './http-context.js'

export const JSON_TYPE: HeaderList = ['Content-Type', 'application/json']

/** An HTTP request that is not served: the status says it to proxies, the body says what to do. */
export class HttpError {
  readonly status: number
  readonly error: RpcError
  readonly headers: HeaderList

  constructor(status: number, error: RpcError | string, headers: HeaderList = []) {
    this.status = status
    this.error =
      typeof error === 'string'
        ? new RpcError(status < 500 ? INVALID_REQUEST : INTERNAL_ERROR, error)
        : error
    this.headers = headers
  }
}

/** Answers with an error message of JSON-RPC, and the id of the request where it could be read. */
export function refuse(
  visit: HttpContext,
  { status, error, headers }: HttpError,
  id?: Id,
  unreadable: UnreadableId = 'omitted',
): void {
  visit.answer(status, [...JSON_TYPE, ...headers], encodeError(id, error, unreadable))
}

export function gone(headers: HeaderList): HttpError {
  return new HttpError(
    404,
    'Not Found: this session has ended or never was. Send "initialize" to open a new one',
    headers,
  )
}

export function unavailable(why: string, headers: HeaderList): HttpError {
  return new HttpError(503, `Service Unavailable: ${why}. Try again later`, [
    'Retry-After',
    '5',
    ...headers,
  ])
}

export function notAllowed(allowed: string, headers: HeaderList): HttpError {
  return new HttpError(405, `Method Not Allowed: use ${allowed}; GET and DELETE need a session`, [
    'Allow',
    allowed,
    ...headers,
  ])
}

export function unsupportedVersion(agreed: string | undefined, headers: HeaderList): HttpError {
  return new HttpError(
    400,
    `Bad Request: unsupported MCP-Protocol-Version; this session has agreed on ${truncate(agreed ?? 'none')}`,
    headers,
  )
}
