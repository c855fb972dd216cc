// @ts-check
import { RpcError } from 'ccmcp'

/**
 * Replaces results that are too large with an error that tells the model what to
 * do. (To send a truncated result with a link to all of it, use the tool's
 * `maxResult` option.)
 * @param {number} maxBytes
 * @returns {import('ccmcp').Middleware}
 */
export const resultSize = (maxBytes) => async (call, next) => {
  const result = await next()
  const bytes = new TextEncoder().encode(JSON.stringify(result)).length
  if (bytes <= maxBytes) return result
  const text = `The result has ${bytes} bytes; at most ${maxBytes} are sent. Ask for less.`
  if (call.method === 'tools/call') return { content: [{ type: 'text', text }], isError: true }
  throw new RpcError(-32603, text)
}
