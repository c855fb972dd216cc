import { RequestFailed, RpcError } from '../../../jsonrpc/errors.js'
import { UnexpectedResponse } from './http-request.js'
import { BodyTooLong } from './response-body.js'

/** Maximum characters of a body in an error message. */
const SHOWN = 200

/** A response whose status refuses the request. */
export function refused(status: number, text: string): RequestFailed {
  const shown = text.trim().replaceAll(/\s+/g, ' ').slice(0, SHOWN)
  const said = shown === '' || shown.startsWith('<') ? '' : `: ${shown}`
  // A gateway may respond with 5xx for a server that has accepted the request.
  const executed = status >= 500 ? 'maybe' : 'no'
  return new RequestFailed('HTTP_STATUS', `The server answered HTTP ${status}${said}`, {
    status,
    executed,
  })
}

/** The error for a request without a response. */
export function failure(error: unknown): RequestFailed {
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
  const { code } = (cause.cause ?? cause) as { code?: unknown }
  const unreachable = typeof code === 'string' && UNREACHABLE.has(code)
  return new RequestFailed('NETWORK', `The request failed: ${reason(cause)}`, {
    executed: unreachable ? 'no' : 'maybe',
    cause,
  })
}

/** Errors before the connection was established: nothing was sent. */
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
export function isInconclusive(status: number): boolean {
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
export function isMissing(status: number): boolean {
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
export function errorOf(text: string): RpcError | undefined {
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
