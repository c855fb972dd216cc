import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  type RpcError,
} from '../../jsonrpc/errors.js'
import {
  INSUFFICIENT_SCOPE,
  MISSING_CLIENT_CAPABILITY,
  RESOURCE_NOT_FOUND,
  UNAUTHORIZED,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../../protocol/errors.js'

/** Codes of HTTP that middleware may use: Not Found and Gone. */
const NOT_FOUND = 404
const GONE = 410

const REFUSALS: ReadonlySet<number> = new Set([
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  INVALID_PARAMS,
  RESOURCE_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
  UNAUTHORIZED,
  INSUFFICIENT_SCOPE,
  NOT_FOUND,
  GONE,
])

/** Whether an error refuses the request as such. All others, such as an internal error or 429, may be gone at the next attempt. */
export function isRefusal({ code }: RpcError): boolean {
  return REFUSALS.has(code)
}
