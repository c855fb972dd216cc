import { PARSE_ERROR, RpcError } from '../../jsonrpc/errors.js'
import { type Message, read } from '../../jsonrpc/message.js'

const utf8 = new TextDecoder('utf-8', { fatal: true })
const NOT_UTF8 = new RpcError(PARSE_ERROR, 'Parse error: the body is not valid UTF-8')

/** Decodes and parses a request body. */
export function readBody(
  body: Uint8Array,
  maxDepth: number | undefined,
): { text: string; message: Message } {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return { text: '', message: { kind: 'invalid', id: undefined, error: NOT_UTF8, mute: false } }
  }
  return { text, message: read(text, maxDepth) }
}
