import { toBase64 } from '../../../jsonrpc/base64.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding */

const PLAIN = /^(?:[!-~](?:[ -~]*[!-~])?)?$/
const SENTINEL = /^=\?base64\?.*\?=$/

/** Encodes a value for `Mcp-Name` and `Mcp-Param-…`. */
export function encodeHeaderValue(value: string | number | boolean): string {
  const text = String(value)
  if (PLAIN.test(text) && !SENTINEL.test(text)) return text
  return `=?base64?${toBase64(new TextEncoder().encode(text))}?=`
}
