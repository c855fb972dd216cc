import { addressesOf, corsHint, parseUrl } from '../../runtime.js'
import { untilAborted } from '../until-aborted.js'
import { isPrivateHost, isSecure } from './addresses.js'
import { AuthorizationError, shown } from './errors.js'

/** The addresses of a host, or why there are none. */
type Addresses = readonly string[] | Error

/** A `fetch` that may know to which addresses of the host alone it connects. */
export type Fetch = (input: string, init: RequestInit, addresses?: Addresses) => Promise<Response>

export interface OAuthHttpOptions {
  readonly fetch: Fetch
  /** Milliseconds for a request, including its body. */
  readonly timeout: number
  /** Whether a public server may name private addresses. */
  readonly privateAddresses: boolean
  /** Ends all requests. */
  readonly signal?: AbortSignal | undefined
}

type Failure = 'DISCOVERY_FAILED' | 'REGISTRATION_FAILED' | 'TOKEN_REQUEST_FAILED'

/** Maximum bytes of a response. */
const MAX_BODY = 256 * 1024
const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** A JSON document, or why there is none. */
export type Fetched =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'missing'; readonly why: string }

/**
 * The requests of OAuth. Their URLs come from documents of others, so each is checked: https, except within the computer;
 * no private address if the MCP server has a public one. In Node, names are resolved for this check, and the request goes
 * to the addresses that were checked.
 */
export class OAuthHttp {
  readonly #options: OAuthHttpOptions
  readonly #server: URL
  /** Whether the MCP server has private addresses only. */
  #serverIsPrivate: boolean | undefined
  /** Whether that is known of a connection with it. */
  #isConnected = false

  constructor(options: OAuthHttpOptions, server: URL) {
    this.#options = options
    this.#server = server
  }

  /** The address at which the MCP server has responded: its name may have others, or soon other ones. */
  connectedTo(address: string | undefined): void {
    if (address === undefined) return
    this.#isConnected = true
    this.#serverIsPrivate = isPrivateHost(address)
  }

  /** Rejects if a URL of a metadata document must not be used; `what` names it. */
  async check(url: URL, what: string): Promise<void> {
    await this.#inTime(url, what, 'DISCOVERY_FAILED', (signal) => this.#checked(url, what, signal))
  }

  /** Resolves to the addresses that may be connected to; undefined: to any. */
  async #checked(url: URL, what: string, signal: AbortSignal): Promise<Addresses | undefined> {
    checkUrl(url, what)
    if (this.#options.privateAddresses) return undefined
    const { hostname } = this.#server
    const addresses = await untilAborted(addressesOf(url.hostname), signal)
    // A public server could add a private address to its name, in order to be allowed to name others.
    if (!this.#isConnected && url.hostname === hostname)
      this.#serverIsPrivate = areAllPrivate(hostname, addresses)
    this.#serverIsPrivate ??= areAllPrivate(
      hostname,
      await untilAborted(addressesOf(hostname), signal),
    )
    const isPrivate = isPrivateHost(url.hostname) || known(addresses).some(isPrivateHost)
    if (!this.#serverIsPrivate && isPrivate)
      throw new AuthorizationError(
        'UNSAFE_URL',
        `${what} is at the private address of ${shown(url.hostname)}, but the MCP server is public. If both are yours, set "privateAddresses: true"`,
      )
    return addresses
  }

  /** A metadata document. Redirects are followed within the origin. */
  async json(url: URL, what: string): Promise<Fetched> {
    let at = url
    for (let hops = 0; ; hops++) {
      const response = await this.#request(at, { headers: { accept: 'application/json' } }, what)
      const { status } = response
      if (!REDIRECTS.has(status)) return await jsonOf(response, at)
      const location = response.headers.get('location')
      const next = location === null ? undefined : parseUrl(location, at)
      if (next === undefined)
        return { kind: 'missing', why: `${at.href} redirects without a valid Location` }
      if (next.origin !== at.origin)
        return {
          kind: 'missing',
          why: `${at.href} redirects to another origin, ${shown(next.origin)}, which is not followed`,
        }
      if (hops >= MAX_REDIRECTS)
        throw new AuthorizationError(
          'DISCOVERY_FAILED',
          `${what}: ${url.href} redirects more than ${MAX_REDIRECTS} times`,
        )
      at = next
    }
  }

  /** For requests with credentials: redirects are refused. `code` is that of a failure. */
  async fetch(
    input: string,
    init: RequestInit,
    what: string,
    code: Failure = 'TOKEN_REQUEST_FAILED',
  ): Promise<Response> {
    const response = await this.#request(new URL(input), init, what, code)
    if (!REDIRECTS.has(response.status)) return response
    throw new AuthorizationError(
      code,
      `${what} redirects, which is not followed with credentials. The metadata must name the final URL`,
    )
  }

  async #request(
    url: URL,
    init: RequestInit,
    what: string,
    code: Failure = 'DISCOVERY_FAILED',
  ): Promise<Response> {
    return await this.#inTime(url, what, code, async (signal) => {
      const addresses = await this.#checked(url, what, signal)
      const request: RequestInit = { ...init, redirect: 'manual', credentials: 'omit', signal }
      const response = await this.#options.fetch(url.href, request, addresses)
      if (response.type === 'opaqueredirect')
        throw new Error('it redirects, and a browser hides the target')
      const { status, headers } = response
      const body = await bytesOf(response)
      // Some statuses must not have a body.
      return new Response(body.length === 0 ? null : body, { status, headers: decoded(headers) })
    })
  }

  /** Runs what ends with the timeout and the signal of the options; `code` is that of a failure. */
  async #inTime<Result>(
    url: URL,
    what: string,
    code: Failure,
    run: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { timeout, signal } = this.#options
    const late = AbortSignal.timeout(timeout)
    try {
      return await run(signal === undefined ? late : AbortSignal.any([signal, late]))
    } catch (error) {
      if (error instanceof AuthorizationError) throw error
      signal?.throwIfAborted()
      const why = late.aborted ? `no response within ${timeout} ms` : reason(error)
      throw new AuthorizationError(
        code,
        `${what} at ${url.origin}${url.pathname} could not be read: ${why}`,
        UNREACHABLE,
      )
    }
  }
}

/** The `error` of failures that may be temporary. */
export const UNREACHABLE = 'temporarily_unavailable'

/** Refuses a URL that is not https, except within the computer, and one with credentials. */
export function checkUrl(url: URL, what: string): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new AuthorizationError(
      'UNSAFE_URL',
      `${what} must be an https URL, not one of the scheme ${shown(url.protocol)}`,
    )
  if (!isSecure(url))
    throw new AuthorizationError(
      'UNSAFE_URL',
      `${what} must use https, except on localhost: ${shown(url.origin)}`,
    )
  if (url.username !== '' || url.password !== '')
    throw new AuthorizationError('UNSAFE_URL', `${what} must not contain credentials`)
}

/** A URL of a metadata document. */
export function urlOf(text: unknown, what: string): URL {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  if (url !== undefined) return url
  throw new AuthorizationError('DISCOVERY_FAILED', `${what} is not a URL: ${shown(text)}`)
}

function areAllPrivate(hostname: string, found: Addresses): boolean {
  const addresses = known(found)
  return isPrivateHost(hostname) || (addresses.length > 0 && addresses.every(isPrivateHost))
}

function known(addresses: Addresses): readonly string[] {
  return addresses instanceof Error ? [] : addresses
}

async function jsonOf(response: Response, url: URL): Promise<Fetched> {
  const { status } = response
  if (status >= 500)
    throw new AuthorizationError(
      'DISCOVERY_FAILED',
      `${url.href} responded with HTTP ${status}; try again later`,
      UNREACHABLE,
    )
  if (status !== 200) return { kind: 'missing', why: `${url.href} responded with HTTP ${status}` }
  try {
    return { kind: 'json', value: await response.json() }
  } catch {
    return { kind: 'missing', why: `${url.href} is not JSON` }
  }
}

async function bytesOf(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const reader = response.body?.getReader()
  if (reader === undefined) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    length += value.length
    if (length > MAX_BODY) {
      reader.cancel().catch(() => {})
      throw new Error(`the response exceeds ${MAX_BODY} bytes`)
    }
    chunks.push(value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

/** The body is decoded already. */
function decoded(headers: Headers): Headers {
  const copy = new Headers(headers)
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) copy.delete(name)
  return copy
}

/** `fetch` has the reason in `cause`; that of a browser has none. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return shown(error)
  const { cause } = error
  if (cause instanceof Error && cause.message !== '') return shown(cause.message)
  return `${shown(error.message)}${corsHint(error)}`
}
