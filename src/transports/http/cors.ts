import type { HeaderList } from './http-context.js'

/* For web pages of other origins, where they are allowed at all. */

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
  // A star stands for all others, of which tools may name their own, but not for this one.
  '*, Authorization',
  'Access-Control-Max-Age',
  '600',
]
