import { RequestFailed } from '../../../jsonrpc/errors.js'
import { UnexpectedResponse } from './http-request.js'
import { BodyTooLong } from './response-body.js'

/** What is shown of a body that is no JSON-RPC message. */
const SHOWN = 200

/** A response whose status refuses the request. */
export function refused(status: number, text: string): RequestFailed {
  const shown = text.trim().replaceAll(/\s+/g, ' ').slice(0, SHOWN)
  const said = shown === '' || shown.startsWith('<') ? '' : `: ${shown}`
  // A gateway may answer 5xx for a server that has taken the request.
  const executed = status >= 500 ? 'maybe' : 'no'
  return new RequestFailed('HTTP_STATUS', `The server answered HTTP ${status}${said}`, {
    status,
    executed,
  })
}

/** Why a request got no response. */
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

/** Errors of a connection that was never made: nothing was sent. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** `fetch` hides the reason in its cause. */
function reason(error: Error): string {
  const { cause } = error
  return cause instanceof Error && cause.message !== ''
    ? `${error.message} (${cause.message})`
    : error.message
}
