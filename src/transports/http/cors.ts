import type { HeaderList } from './visit.js'

/* For web pages of other origins, where they are allowed at all. */

/** https://fetch.spec.whatwg.org/#http-cors-protocol */
export function corsHeaders(origin: string): HeaderList {
  return ['Access-Control-Allow-Origin', origin, 'Vary', 'Origin', 'Access-Control-Expose-Headers', 'Mcp-Session-Id, WWW-Authenticate']
}

export const PREFLIGHT: HeaderList = [
  'Access-Control-Allow-Methods',
  'POST, GET, DELETE',
  'Access-Control-Allow-Headers',
  'Content-Type, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID',
  'Access-Control-Max-Age',
  '600',
]
