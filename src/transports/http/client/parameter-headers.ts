/* https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding */

const PLAIN = /^(?:[!-~](?:[ -~]*[!-~])?)?$/
const SENTINEL = /^=\?base64\?.*\?=$/

/** Encodes a value for `Mcp-Name` and `Mcp-Param-…`. */
export function encodeHeaderValue(value: string | number | boolean): string {
  const text = String(value)
  if (PLAIN.test(text) && !SENTINEL.test(text)) return text
  let binary = ''
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return `=?base64?${btoa(binary)}?=`
}
