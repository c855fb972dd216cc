import type { Fault } from '../framing/frame.js'
import { INVALID_REQUEST, PARSE_ERROR, RpcError } from '../jsonrpc/errors.js'

/** The JSON-RPC error for bytes that are not a message. */
export function faultToRpcError(fault: Fault): RpcError {
  switch (fault.kind) {
    case 'too-long': {
      const { size, limit } = fault
      return new RpcError(
        INVALID_REQUEST,
        `Invalid Request: the message has ${size} bytes; the limit is ${limit}`,
        { size, limit },
      )
    }
    case 'not-utf8':
      return new RpcError(
        PARSE_ERROR,
        `Parse error: byte ${fault.offset} of the message is not UTF-8`,
        { position: fault.offset },
      )
    case 'invalid-header':
      return new RpcError(
        PARSE_ERROR,
        `Parse error: ${fault.reason}; expected "Content-Length: <bytes>", an empty line and the message`,
      )
    case 'wrong-framing':
      return new RpcError(
        PARSE_ERROR,
        'Parse error: received Content-Length framing, expected one JSON message per line. Send lines, or set framing "auto" or "content-length"',
      )
    case 'truncated':
      return new RpcError(
        PARSE_ERROR,
        `Parse error: the input ended ${fault.missing} bytes before the end of the message`,
      )
  }
}
