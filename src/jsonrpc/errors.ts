export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603

// A registered symbol: two copies of this package in one program understand each other.
const branded = Symbol.for('ccmcp.RpcError')

/** The one error that crosses the wire. */
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

/** What a call ends with whose connection is gone. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed'
}

/** The reason of an aborted signal, as an error. */
export function asError(reason: unknown): Error {
  return reason instanceof Error
    ? reason
    : new Error(typeof reason === 'string' ? reason : 'The request was aborted')
}

/** A request that was sent and gets no response, though the channel goes on. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
  /** `HTTP_STATUS`, `NETWORK`, `TOO_LARGE`, `STREAM_ENDED`, `SESSION_EXPIRED` or `INVALID_RESPONSE`. */
  readonly code: string
  /** Whether the server may have executed it. Only a request that was not executed is safe to repeat. */
  readonly executed: 'no' | 'maybe'
  /** The HTTP status, where there was one. */
  readonly status: number | undefined

  constructor(
    code: string,
    message: string,
    facts: { executed: 'no' | 'maybe'; status?: number; cause?: unknown },
  ) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause })
    this.code = code
    this.executed = facts.executed
    this.status = facts.status
  }
}
