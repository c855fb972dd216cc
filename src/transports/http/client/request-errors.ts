import { RequestFailed, RpcError } from '../../../jsonrpc/errors.js'
import { truncate } from '../../../jsonrpc/truncate.js'
import { UnexpectedResponse } from './http-request.js'
import { JSON_TYPE } from './request-headers.js'
import { BodyTooLong, InvalidBody } from './response-body.js'

/** Maximum characters of a body in an error message. */
const SHOWN = 200

/** The error for a response whose status refuses the request: its JSON-RPC error, or what the status says. */
export function refusal(status: number, text: string, method: string): RpcError | RequestFailed {
  const error = errorOf(text)
  if (error === undefined) return refused(status, text)
  // These say something of the connection, of the caller or of the endpoint, not of the request itself.
  const aside = isInconclusive(status) || (method === 'initialize' && isMissing(status))
  return aside ? statusError(status, `: ${truncate(error.message, SHOWN)}`, error) : error
}

/** The error for a response whose status refuses the request, without a JSON-RPC error. */
export function refused(status: number, text: string): RequestFailed {
  const shown = text
    .slice(0, 2 * SHOWN)
    .trim()
    .replaceAll(/\s+/g, ' ')
    .slice(0, SHOWN)
  return statusError(status, shown === '' || shown.startsWith('<') ? '' : `: ${shown}`)
}

function statusError(status: number, said: string, cause?: RpcError): RequestFailed {
  return new RequestFailed('HTTP_STATUS', `The server answered HTTP ${status}${said}`, {
    status,
    // A gateway may respond with 5xx for a server that has accepted the request.
    executed: status >= 500 ? 'maybe' : 'no',
    cause,
  })
}

/** The error for a successful response that does not have the response to the request. */
export function notItsResponse(status: number, type: string): RequestFailed {
  const what =
    type === JSON_TYPE
      ? 'a body that is not its response'
      : `HTTP ${status} and Content-Type "${truncate(type, SHOWN)}"`
  return new RequestFailed('INVALID_RESPONSE', `The server answered the request with ${what}`, {
    status,
    executed: 'maybe',
  })
}

/** The error for a request without a response; `sent`: whether the server may have received it. */
export function failure(error: unknown, sent: boolean): RequestFailed {
  if (error instanceof RequestFailed) return error
  const cause = error instanceof Error ? error : new Error(String(error))
  if (cause instanceof UnexpectedResponse)
    return new RequestFailed('HTTP_STATUS', cause.message, {
      status: cause.status,
      executed: 'no',
      cause,
    })
  if (cause instanceof BodyTooLong || cause.name === 'EventTooLong')
    return new RequestFailed('TOO_LARGE', cause.message, { executed: 'maybe', cause })
  if (cause instanceof InvalidBody)
    return new RequestFailed('INVALID_RESPONSE', cause.message, { executed: 'maybe', cause })
  const { code } = (cause.cause ?? cause) as { code?: unknown }
  const unreachable = typeof code === 'string' && UNREACHABLE.has(code)
  return new RequestFailed('NETWORK', `The request failed: ${reason(cause)}`, {
    executed: unreachable || !sent ? 'no' : 'maybe',
    cause,
  })
}

/** Errors of `fetch` before the connection was established: nothing was sent. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** `fetch` has the reason in `cause`. */
function reason(error: Error): string {
  const { cause } = error
  return cause instanceof Error && cause.message !== ''
    ? `${error.message} (${cause.message})`
    : error.message
}

/** Statuses that do not say which protocol a server speaks, nor whether it would serve the request. */
function isInconclusive(status: number): boolean {
  return (
    status === 401 ||
    status === 403 ||
    status === 407 ||
    status === 408 ||
    status === 429 ||
    status >= 500
  )
}

/** Statuses of `initialize` at a URL that may have another transport. */
function isMissing(status: number): boolean {
  return status === 400 || status === 404 || status === 405
}

/** For a request that was refused, or was not sent. */
export function sessionExpired(): RequestFailed {
  return new RequestFailed('SESSION_EXPIRED', 'The server has ended the session', {
    status: 404,
    executed: 'no',
  })
}

/** The error of a JSON-RPC error response; over HTTP it may have no id. */
function errorOf(text: string): RpcError | undefined {
  try {
    const { error } = JSON.parse(text) as {
      error?: { code?: unknown; message?: unknown; data?: unknown }
    }
    return typeof error?.code === 'number' && typeof error.message === 'string'
      ? new RpcError(error.code, error.message, error.data)
      : undefined
  } catch {
    return undefined
  }
}
