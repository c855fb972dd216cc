// @ts-check
import { RpcError } from 'ccmcp'

/**
 * Refuses results that are larger than a client should be sent. A model is told
 * what to do about it. (To send the beginning of a result, and a link to the
 * whole of it, give the tool a `maxResult`.)
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
