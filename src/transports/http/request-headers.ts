import type { Address, HttpHeaders, HttpRequest } from '../../jsonrpc/channel.js'

/**
 * Credentials. Handlers do not get them, so that they can neither log them nor pass them on: a server must not use a
 * client's token for other services.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#token-handling
 */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'mcp-session-id',
])

/** An HTTP request as handlers see it. Its headers are copied on first access. */
export class HandlerRequest implements HttpRequest {
  readonly #entries: () => Iterable<[name: string, value: string | readonly string[] | undefined]>
  readonly #client: () => Address | undefined
  #headers: HttpHeaders | undefined

  constructor(
    entries: () => Iterable<[name: string, value: string | readonly string[] | undefined]>,
    client: () => Address | undefined = () => undefined,
  ) {
    this.#entries = entries
    this.#client = client
  }

  get client(): Address | undefined {
    return this.#client()
  }

  get headers(): HttpHeaders {
    this.#headers ??= withoutCredentials(this.#entries())
    return this.#headers
  }
}

function withoutCredentials(
  entries: Iterable<[name: string, value: string | readonly string[] | undefined]>,
): HttpHeaders {
  // Without a prototype: any name may be looked up.
  const headers = Object.create(null) as Record<string, string>
  for (const [name, value] of entries) {
    // Names with a colon are the pseudo-header fields of HTTP/2.
    if (value !== undefined && !name.startsWith(':') && !CREDENTIALS.has(name))
      headers[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return Object.freeze(headers)
}
