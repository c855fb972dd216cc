import type { HeaderList } from './http-context.js'

/* For web pages of the allowed origins. */

/** https://fetch.spec.whatwg.org/#http-cors-protocol */
export function corsHeaders(origin: string): HeaderList {
  return [
    'Access-Control-Allow-Origin',
    origin,
    'Vary',
    'Origin',
    'Access-Control-Expose-Headers',
    'Mcp-Session-Id, WWW-Authenticate',
  ]
}

export const PREFLIGHT: HeaderList = [
  'Access-Control-Allow-Methods',
  'POST, GET, DELETE',
  'Access-Control-Allow-Headers',
  // The wildcard covers Mcp-Param-… headers, but never Authorization.
  '*, Authorization',
  'Access-Control-Max-Age',
  '600',
]
