// @ts-check
import { RpcError } from 'ccmcp'

/**
 * Requires a scope for calling a tool. (To also hide a tool from other callers,
 * use its `visible` option.)
 * @param {Readonly<Record<string, string>>} scopes required scope by tool name
 * @returns {import('ccmcp').Middleware}
 */
export const authorization = (scopes) => (call, next) => {
  const needed = call.method === 'tools/call' ? scopes[String(call.params['name'])] : undefined
  if (needed === undefined || call.client.principal?.scopes.includes(needed) === true) return next()
  throw new RpcError(403, `This tool requires the scope ${needed}`)
}
