import {
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  type RpcError,
} from '../../jsonrpc/errors.js'
import {
  HEADER_MISMATCH,
  INSUFFICIENT_SCOPE,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../../protocol/errors.js'

/** HTTP status by JSON-RPC error code; 200 for any other. */
const STATUS: ReadonlyMap<number, number> = new Map([
  [PARSE_ERROR, 400],
  [INVALID_REQUEST, 400],
  [HEADER_MISMATCH, 400],
  [MISSING_CLIENT_CAPABILITY, 400],
  [UNSUPPORTED_PROTOCOL_VERSION, 400],
  [METHOD_NOT_FOUND, 404],
  [INSUFFICIENT_SCOPE, 403],
])

/** Within a session, 404 means only that the session is unknown. */
export function statusInSession(error: RpcError): number {
  return error.code === METHOD_NOT_FOUND ? 200 : statusOf(error)
}

/** https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#protocol-version-header */
export function statusOf({ code }: RpcError): number {
  return STATUS.get(code) ?? 200
}
