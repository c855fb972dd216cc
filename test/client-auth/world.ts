import { createHash } from 'node:crypto'
import { type OAuth, type OAuthOptions, oauth } from '../../src/oauth.js'
import { withAuthorization } from '../../src/transports/http/client/authorizer.js'
import { webRequest } from '../../src/transports/http/client/http-request.js'

/* An MCP server and its authorization server, without a network: every request goes through `World.fetch`. */

export type Json = Record<string, unknown>

export interface Seen {
  method: string
  url: string
  headers: Headers
  body: string
}

type Route = (seen: Seen) => Response | Promise<Response>

/** Values that must never appear in an error begin with this. */
export const SECRET = 'SECRET'

export const SERVER = 'https://mcp.example/mcp'
export const ISSUER = 'https://as.example'
export const REDIRECT = 'http://127.0.0.1:7777/callback'
export const RESOURCE_METADATA = 'https://mcp.example/.well-known/oauth-protected-resource/mcp'
export const SERVER_METADATA = 'https://as.example/.well-known/oauth-authorization-server'

export const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } })

/** A body that never ends. */
export const endless = (): Response =>
  new Response(new ReadableStream({ start: (it) => it.enqueue(new Uint8Array(10)) }))

export const huge = (): Response => new Response(`{"x":"${'y'.repeat(300 * 1024)}"}`)

export class World {
  readonly seen: Seen[] = []
  readonly routes = new Map<string, Route>()
  resource: Json = {
    resource: SERVER,
    authorization_servers: [ISSUER],
    scopes_supported: ['notes:read'],
  }
  metadata: Json = {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
    registration_endpoint: `${ISSUER}/register`,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
  }
  /** Added to the response of the token endpoint. */
  tokens: Json = {}
  /** The status and challenge of a request without a valid token. */
  challenge: string | undefined = `Bearer resource_metadata="${RESOURCE_METADATA}"`
  /** What the MCP server says to a request; by default 401 without a token of this authorization server. */
  mcp: Route = ({ headers }) => this.accept(headers)
  /** The parameters of the callback, from those of the authorization URL. */
  callback = (asked: URLSearchParams): string => {
    const answer = { code: `${SECRET}-code`, state: asked.get('state') ?? '', iss: ISSUER }
    return `${asked.get('redirect_uri')}?${new URLSearchParams(answer).toString()}`
  }
  readonly authorizations: URLSearchParams[] = []
  readonly valid = new Set<string>()
  #issued = 0

  constructor() {
    this.routes.set(`GET ${RESOURCE_METADATA}`, () => json(this.resource))
    this.routes.set(`GET ${SERVER_METADATA}`, () => json(this.metadata))
    this.routes.set(`POST ${ISSUER}/register`, () => json({ client_id: 'registered' }, 201))
    this.routes.set(`POST ${ISSUER}/token`, (seen) => this.issue(seen))
    this.routes.set(`POST ${SERVER}`, (seen) => this.mcp(seen))
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const { href } = new URL(input instanceof Request ? input.url : input)
    const method = init?.method ?? 'GET'
    const body = init?.body instanceof URLSearchParams ? init.body.toString() : init?.body
    const seen = {
      method,
      url: href,
      headers: new Headers(init?.headers),
      body: typeof body === 'string' ? body : '',
    }
    this.seen.push(seen)
    const route = this.routes.get(`${method} ${href}`)
    const response = Promise.resolve(route?.(seen) ?? new Response('', { status: 404 }))
    const { signal } = init ?? {}
    if (signal === undefined || signal === null) return await response
    const aborted = new Promise<never>((_resolve, reject) => {
      const abort = () => reject(signal.reason as Error)
      if (signal.aborted) abort()
      signal.addEventListener('abort', abort, { once: true })
    })
    const answered = await Promise.race([response, aborted])
    return new Response(withAbort(answered.body, aborted), answered)
  }

  issue({ body }: Seen): Response {
    const asked = new URLSearchParams(body)
    const code = this.authorizations.at(-1)
    const verifier = asked.get('code_verifier')
    const hash = createHash('sha256')
      .update(verifier ?? '')
      .digest('base64url')
    if (verifier !== null && code?.get('code_challenge') !== hash)
      return json({ error: 'invalid_grant', error_description: 'PKCE' }, 400)
    const token = `${SECRET}-token-${++this.#issued}`
    this.valid.add(token)
    return json({ access_token: token, token_type: 'Bearer', ...this.tokens })
  }

  accept(headers: Headers): Response {
    const token = headers.get('authorization')?.replace('Bearer ', '')
    if (token !== undefined && this.valid.has(token)) return json({ ok: true })
    const challenge = this.challenge === undefined ? {} : { 'www-authenticate': this.challenge }
    return new Response('', { status: 401, headers: challenge })
  }

  authorizer(options: OAuthOptions = {}): OAuth {
    const user: OAuthOptions =
      options.grant === undefined
        ? {
            redirectUri: REDIRECT,
            authorize: (url) => {
              const asked = new URL(url).searchParams
              this.authorizations.push(asked)
              return Promise.resolve(this.callback(asked))
            },
          }
        : {}
    return oauth({ fetch: this.fetch, ...user, ...options })
  }

  /** Sends a request to the MCP server. Resolves to its status. */
  async request(
    authorizer = this.authorizer(),
    url = SERVER,
    { background = false } = {},
  ): Promise<number> {
    const send = withAuthorization(webRequest(this.fetch), authorizer)
    const { signal } = new AbortController()
    const response = await send({
      method: 'POST',
      url: new URL(url),
      headers: {},
      body: '',
      signal,
      background,
    })
    response.cancel()
    return response.status
  }

  /** The requests to a URL. */
  to(url: string): Seen[] {
    return this.seen.filter((each) => each.url === url)
  }
}

/** Ends a body with a rejection. */
function withAbort(
  body: ReadableStream<Uint8Array> | null,
  aborted: Promise<never>,
): ReadableStream<Uint8Array> | null {
  aborted.catch(() => {})
  if (body === null) return null
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await Promise.race([reader.read(), aborted])
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
