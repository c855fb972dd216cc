export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603

// A registered symbol: two copies of this package in one program understand each other.
const branded = Symbol.for('ccmcp.RpcError')

/*
 * Errors that are not sent to the other side have a string as their `code`. Programs compare codes, never messages:
 * the wording of a message may change. docs/errors.md lists the codes, and a test compares it with these types.
 */

/** Why a request got no response, though its channel is still open. */
export type RequestFailure =
  | 'AUTHORIZATION_DENIED'
  | 'AUTHORIZATION_FAILED'
  | 'AUTHORIZATION_REQUIRED'
  | 'DISCOVERY_FAILED'
  | 'HTTP_STATUS'
  | 'NETWORK'
  | 'REGISTRATION_FAILED'
  | 'TOKEN_REQUEST_FAILED'
  | 'TOO_LARGE'
  | 'UNSAFE_URL'
  | 'STREAM_ENDED'
  | 'SESSION_EXPIRED'
  | 'INVALID_RESPONSE'

export type ErrorCode =
  | RequestFailure
  | 'CALL_ENDED'
  | 'CANCELLED'
  | 'CHANNEL_CLOSED'
  | 'CONNECTION_FAILED'
  | 'EADDRINUSE'
  | 'INVALID_APP'
  | 'INVALID_RESULT'
  | 'INVALID_SKILL'
  | 'NOT_SUPPORTED'
  | 'JOURNAL_CORRUPT'
  | 'JOURNAL_LOCKED'
  | 'JOURNAL_LOST'
  | 'REDIS_UNAVAILABLE'
  | 'SERVER_EXITED'
  | 'SKILL_MISMATCH'
  | 'SKILL_REFUSED'
  | 'TASK_EXPIRED'
  | 'TIMEOUT'
  | 'UNAUTHENTICATED_BIND'
  | 'UNKNOWN_OPTION'

/** Adds a code to an error that has no class of its own. */
export function withCode<Failure extends Error>(
  code: ErrorCode,
  error: Failure,
): Failure & { readonly code: ErrorCode } {
  return Object.assign(error, { code })
}

/** An error that is sent to the other side as the `error` of a JSON-RPC response, or was received as one. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly [branded] = true
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && branded in value
  }
}

/** Rejects the requests of a connection that has ended. Its `cause` is the error that broke the connection. */
export class ChannelClosedError extends Error {
  override readonly name = 'ChannelClosedError'
  readonly code: ErrorCode = 'CHANNEL_CLOSED'
  /** Whether the other side may have executed the request: `no` if the connection had ended before it was sent. */
  readonly executed: 'no' | 'maybe'

  constructor(message: string, facts: { executed?: 'no' | 'maybe'; cause?: unknown } = {}) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause })
    this.executed = facts.executed ?? 'no'
  }
}

/** The reason of an aborted signal as an error. */
export function abortError(reason: unknown): Error {
  return reason instanceof Error
    ? reason
    : new Error(typeof reason === 'string' ? reason : 'The request was aborted')
}

/** Rejects a request that gets no response, though the channel is still open. */
export class RequestFailedError extends Error {
  override readonly name: string = 'RequestFailedError'
  readonly code: RequestFailure
  /** Whether the server may have executed it. Only a request that was not executed is safe to repeat. */
  readonly executed: 'no' | 'maybe'
  /** The HTTP status, if there was a response. */
  readonly status: number | undefined

  constructor(
    code: RequestFailure,
    message: string,
    facts: { executed: 'no' | 'maybe'; status?: number; cause?: unknown },
  ) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause })
    this.code = code
    this.executed = facts.executed
    this.status = facts.status
  }
}
