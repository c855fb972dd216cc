// @ts-check
import { RpcError } from 'ccmcp'

/**
 * Lets a tool be called only by those who have the scope that it needs. (To
 * hide tools from others as well, give them `visible`.)
 * @param {Readonly<Record<string, string>>} scopes by the name of the tool
 * @returns {import('ccmcp').Middleware}
 */
export const authorisation = (scopes) => (call, next) => {
  const needed = call.method === 'tools/call' ? scopes[String(call.params['name'])] : undefined
  if (needed === undefined || call.client.principal?.scopes.includes(needed) === true) return next()
  throw new RpcError(403, `This tool needs the scope ${needed}`)
}
