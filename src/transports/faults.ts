import type { Fault } from '../framing/frame.js'
import { INVALID_REQUEST, PARSE_ERROR, RpcError } from '../jsonrpc/errors.js'

/** What a peer is told whose bytes were no message. */
export function errorOf(fault: Fault): RpcError {
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
    case 'bad-header':
      return new RpcError(
        PARSE_ERROR,
        `Parse error: ${fault.reason}; expected "Content-Length: <bytes>", an empty line and the message`,
      )
    case 'wrong-framing':
      return new RpcError(
        PARSE_ERROR,
        'Parse error: this is Content-Length framing, but one JSON message a line is expected. Send lines, or let the server read the other (framing "auto" or "content-length")',
      )
    case 'truncated':
      return new RpcError(
        PARSE_ERROR,
        `Parse error: the input ended ${fault.missing} bytes before the end of the message`,
      )
  }
}
