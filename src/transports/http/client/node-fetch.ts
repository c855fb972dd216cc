import type { ReadableStream } from 'node:stream/web'
import { VERSION } from '../../../version.js'
import { nodeRequest } from './node-request.js'

/** A `fetch` that connects to some addresses of the host only, if they are given. */
export type AddressedFetch = (
  input: string | URL | Request,
  init?: RequestInit,
  addresses?: readonly string[] | Error,
) => Promise<Response>

/** The headers of a response that OAuth uses. */
const HEADERS = ['content-type', 'location', 'www-authenticate', 'dpop-nonce'] as const

/**
 * A `fetch` for OAuth that uses the proxies of the environment, as the requests of MCP do. Node's own may ignore them.
 * Only https goes through a proxy: OAuth has http on this computer only. Without a proxy, it connects to the given
 * addresses only, which were checked before.
 */
export function nodeFetch(
  env: Readonly<Record<string, string | undefined>> = process.env,
): AddressedFetch {
  const { Readable } = process.getBuiltinModule('node:stream')
  // A connection that is used again would be to an address of an earlier check.
  const options = { keepAlive: false }
  const [proxied, direct] = [nodeRequest(env, options), nodeRequest({}, options)]
  return async (input, init = {}, addresses) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const { body } = init
    const send = url.protocol === 'https:' ? proxied : direct
    const response = await send({
      method: init.method === 'POST' ? 'POST' : 'GET',
      url,
      // Firewalls refuse requests without one.
      headers: {
        'user-agent': `ccmcp/${VERSION}`,
        ...Object.fromEntries(new Headers(init.headers)),
      },
      signal: init.signal ?? new AbortController().signal,
      background: false,
      ...(addresses === undefined ? {} : { addresses }),
      // OAuth sends forms and JSON.
      ...(body instanceof URLSearchParams || typeof body === 'string'
        ? { body: body.toString() }
        : {}),
    })
    const headers = new Headers()
    for (const name of HEADERS) {
      const value = response.header(name)
      if (value !== undefined) headers.set(name, value)
    }
    const { status } = response
    if (status < 200 || status > 599) throw new Error(`HTTP ${status}`)
    const hasBody = status !== 204 && status !== 205 && status !== 304
    // The declarations of Node and of the web differ in what both have.
    const stream = Readable.toWeb(Readable.from(response.body)) as ReadableStream<Uint8Array>
    return new Response(hasBody ? stream : null, { status, headers })
  }
}
