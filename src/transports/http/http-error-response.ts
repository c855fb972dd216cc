import { INTERNAL_ERROR, INVALID_REQUEST, RpcError } from '../../jsonrpc/errors.js'
import { type Id, type UnreadableId, encodeError } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import { FORWARDED } from './forwarding.js'
import type { HeaderList, HttpContext } from './http-context.js'

/** 421 Misdirected Request: the process that a request was passed on to does not serve it. */
export const MISDIRECTED = 421
export const JSON_TYPE: HeaderList = ['Content-Type', 'application/json']

/** An HTTP error response, whose body is a JSON-RPC error. */
export class HttpErrorResponse {
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

  /** The same error with more headers. */
  with(headers: HeaderList): HttpErrorResponse {
    return new HttpErrorResponse(this.status, this.error, [...this.headers, ...headers])
  }
}

/** Responds with a JSON-RPC error, and the id of the request if it could be read. */
export function refuse(
  context: HttpContext,
  { status, error, headers }: HttpErrorResponse,
  id?: Id,
  unreadable: UnreadableId = 'omitted',
): void {
  context.respond(status, [...JSON_TYPE, ...headers], encodeError(id, error, unreadable))
}

export function unknownSession(headers: HeaderList): HttpErrorResponse {
  return new HttpErrorResponse(
    404,
    'Not Found: unknown or expired session. Send "initialize" to start a new one',
    headers,
  )
}

export function unavailable(reason: string, headers: HeaderList): HttpErrorResponse {
  return new HttpErrorResponse(503, `Service Unavailable: ${reason}. Try again later`, [
    'Retry-After',
    '5',
    ...headers,
  ])
}

/** To another process, which has passed on a request: nothing of it was served. */
export function misdirected(headers: HeaderList): HttpErrorResponse {
  return new HttpErrorResponse(
    MISDIRECTED,
    'Misdirected Request: this process does not have the session, or does not share the key of the sender',
    headers,
  )
}

/** To a request that is not served because this process is shutting down. */
export function shuttingDown(context: HttpContext, headers: HeaderList): HttpErrorResponse {
  // The process that has passed it on finds the one that takes over the session.
  const isForwarded = context.header(FORWARDED) !== undefined
  return isForwarded ? misdirected(headers) : unavailable('the server is shutting down', headers)
}

export function methodNotAllowed(
  allowed: string,
  headers: HeaderList,
  advice = '',
): HttpErrorResponse {
  return new HttpErrorResponse(405, `Method Not Allowed: use ${allowed}${advice}`, [
    'Allow',
    allowed,
    ...headers,
  ])
}

export function notAcceptable(types: string, headers: HeaderList = []): HttpErrorResponse {
  return new HttpErrorResponse(406, `Not Acceptable: send the header "Accept: ${types}"`, headers)
}

export function unsupportedVersion(
  negotiated: string | undefined,
  headers: HeaderList,
): HttpErrorResponse {
  return new HttpErrorResponse(
    400,
    `Bad Request: unsupported MCP-Protocol-Version; this session has negotiated ${truncate(negotiated ?? 'none')}`,
    headers,
  )
}
