import { RequestFailedError, RpcError } from '../../../jsonrpc/errors.js'
import { truncate } from '../../../jsonrpc/truncate.js'
import { corsHint } from '../../../runtime.js'
import { UnexpectedResponseError } from './http-request.js'
import { JSON_TYPE } from './request-headers.js'
import { BodyTooLongError, InvalidBodyError } from './response-body.js'

/** Maximum characters of a body in an error message. */
const SHOWN = 200

/** The error for a response whose status refuses the request: its JSON-RPC error, or what the status says. */
export function refusal(
  status: number,
  text: string,
  method: string,
): RpcError | RequestFailedError {
  const error = parseErrorBody(text)
  if (error === undefined) return statusError(status, text)
  // These say something of the connection, of the caller or of the endpoint, not of the request itself.
  const isAboutConnection =
    isInconclusive(status) || (method === 'initialize' && mayBeOtherTransport(status))
  return isAboutConnection
    ? httpStatusError(status, `: ${truncate(error.message, SHOWN)}`, error)
    : error
}

/** The error for a response whose status refuses the request, without a JSON-RPC error. */
export function statusError(status: number, text: string): RequestFailedError {
  const shown = text
    .slice(0, 2 * SHOWN)
    .trim()
    .replaceAll(/\s+/g, ' ')
    .slice(0, SHOWN)
  return httpStatusError(status, shown === '' || shown.startsWith('<') ? '' : `: ${shown}`)
}

function httpStatusError(status: number, said: string, cause?: RpcError): RequestFailedError {
  return new RequestFailedError('HTTP_STATUS', `The server responded with HTTP ${status}${said}`, {
    status,
    // A gateway may respond with 5xx for a server that has accepted the request.
    executed: status >= 500 ? 'maybe' : 'no',
    cause,
  })
}

/** The error for a successful response that does not have the response to the request. */
export function unexpectedBody(status: number, type: string): RequestFailedError {
  const what =
    type === JSON_TYPE
      ? 'a body that is not its response'
      : `HTTP ${status} and Content-Type "${truncate(type, SHOWN)}"`
  return new RequestFailedError(
    'INVALID_RESPONSE',
    `The server responded to the request with ${what}`,
    {
      status,
      executed: 'maybe',
    },
  )
}

/** The error for a request without a response; `sent`: whether the server may have received it. */
export function toRequestFailed(error: unknown, sent: boolean): RequestFailedError {
  try {
    return convert(error, sent)
  } catch {
    // A `fetch` of the user may reject with anything.
    const message = 'The request failed: "fetch" rejected with a value that cannot be read'
    return new RequestFailedError('NETWORK', message, { executed: sent ? 'maybe' : 'no' })
  }
}

function convert(error: unknown, sent: boolean): RequestFailedError {
  if (error instanceof RequestFailedError) return error
  const cause = error instanceof Error ? error : new Error(String(error))
  if (cause instanceof UnexpectedResponseError)
    return new RequestFailedError('HTTP_STATUS', cause.message, {
      status: cause.status,
      executed: 'no',
      cause,
    })
  if (cause instanceof BodyTooLongError || cause.name === 'EventTooLongError')
    return new RequestFailedError('TOO_LARGE', cause.message, { executed: 'maybe', cause })
  if (cause instanceof InvalidBodyError)
    return new RequestFailedError('INVALID_RESPONSE', cause.message, { executed: 'maybe', cause })
  const { code } = (cause.cause ?? cause) as { code?: unknown }
  const unreachable = typeof code === 'string' && UNREACHABLE.has(code)
  return new RequestFailedError('NETWORK', `The request failed: ${reason(cause)}`, {
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

/** `fetch` has the reason in `cause`; that of a browser has none. */
function reason(error: Error): string {
  const { cause } = error
  return cause instanceof Error && cause.message !== ''
    ? `${error.message} (${cause.message})`
    : `${error.message}${corsHint(error)}`
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
function mayBeOtherTransport(status: number): boolean {
  return status === 400 || status === 404 || status === 405
}

/** For a request that was refused, or was not sent. */
export function sessionExpired(): RequestFailedError {
  return new RequestFailedError('SESSION_EXPIRED', 'The server has ended the session', {
    status: 404,
    executed: 'no',
  })
}

/** The error of a JSON-RPC error response; over HTTP it may have no id. */
function parseErrorBody(text: string): RpcError | undefined {
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
