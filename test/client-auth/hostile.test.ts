import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { AuthorizationError, type OAuthOptions } from '../../src/oauth.js'
import {
  ISSUER,
  type Json,
  REDIRECT,
  RESOURCE_METADATA,
  SECRET,
  SERVER,
  SERVER_METADATA,
  World,
  endless,
  huge,
  json,
} from './world.js'
import { resolveOnly } from './names.js'

/* What an MCP server, an authorization server or a web page may do to a client. Every row ends with a clear error. */

const ADDRESSES: Readonly<Record<string, string[]>> = {
  'mcp.example': ['203.0.113.7'],
  'as.example': ['203.0.113.8'],
  'inside.example': ['203.0.113.9', '10.0.0.5'],
  'both.example': ['203.0.113.9', '127.0.0.1'],
  'inside6.example': ['fd00::1'],
}
resolveOnly(ADDRESSES)

interface Row {
  title: string
  arrange(world: World): OAuthOptions | void
  code: AuthorizationError['code']
  message: RegExp
  /** URLs that must not be requested. */
  never?: RegExp
}

const row = (
  title: string,
  code: Row['code'],
  message: RegExp,
  arrange: Row['arrange'],
  never?: RegExp,
): Row => ({ title, code, message, arrange, ...(never === undefined ? {} : { never }) })

const resource = (changes: Json) => (world: World) => void Object.assign(world.resource, changes)
const metadata = (changes: Json) => (world: World) => void Object.assign(world.metadata, changes)
const tokens = (changes: Json) => (world: World) => void Object.assign(world.tokens, changes)
const route = (name: string, response: () => Response) => (world: World) =>
  void world.routes.set(name, response)
const server = (url: string) => resource({ authorization_servers: [url] })
const challenge = (text: string) => (world: World) => {
  world.challenge = text
}
/** Changes the callback. */
const callback = (change: (params: URLSearchParams) => void) => (world: World) => {
  const before = world.callback
  world.callback = (asked) => {
    const url = new URL(before(asked))
    change(url.searchParams)
    return url.href
  }
}
const redirect =
  (location: string, status = 307) =>
  () =>
    new Response(null, { status, headers: { location } })

const OAUTH_ENDPOINTS = /\/(?:authorize|token|register)\b/

const RESOURCES: Row[] = [
  ...[
    ['another origin', 'https://evil.example/mcp'],
    ['a sibling path', 'https://mcp.example/mcpx'],
    ['a longer path', 'https://mcp.example/mcp/other'],
    ['another port', 'https://mcp.example:8443/mcp'],
    ['http', 'http://mcp.example/mcp'],
    ['a fragment', `${SERVER}#part`],
    ['a user name', 'https://user@mcp.example/mcp'],
    ['another query', `${SERVER}?tenant=other`],
  ].map(([title, value]) =>
    row(
      `resource: ${title}`,
      'DISCOVERY_FAILED',
      /is for .* not for https:\/\/mcp\.example\/mcp/,
      resource({ resource: value }),
      OAUTH_ENDPOINTS,
    ),
  ),
  row(
    'resource: not a URL',
    'DISCOVERY_FAILED',
    /"resource".* is not a URL/,
    resource({ resource: 'mcp' }),
    OAUTH_ENDPOINTS,
  ),
  row(
    'resource: missing',
    'DISCOVERY_FAILED',
    /"resource".* is not a URL/,
    resource({ resource: undefined }),
  ),
  row(
    'resource metadata: a list',
    'DISCOVERY_FAILED',
    /not a JSON object/,
    route(`GET ${RESOURCE_METADATA}`, () => json([])),
  ),
  row(
    'resource metadata: null',
    'DISCOVERY_FAILED',
    /not a JSON object/,
    route(`GET ${RESOURCE_METADATA}`, () => json(null)),
  ),
  row(
    'resource metadata: HTTP 500',
    'DISCOVERY_FAILED',
    /HTTP 500; try again later/,
    route(`GET ${RESOURCE_METADATA}`, () => json({}, 500)),
  ),
  row(
    'resource metadata: too long',
    'DISCOVERY_FAILED',
    /exceeds 262144 bytes/,
    route(`GET ${RESOURCE_METADATA}`, huge),
  ),
  row(
    'resource metadata: redirects to itself',
    'DISCOVERY_FAILED',
    /redirects more than 3 times/,
    route(`GET ${RESOURCE_METADATA}`, redirect(RESOURCE_METADATA)),
  ),
  row('resource metadata: no response', 'DISCOVERY_FAILED', /no response within 20 ms/, (world) => {
    world.routes.set(`GET ${RESOURCE_METADATA}`, () => new Promise<Response>(() => {}))
    return { timeout: 20 }
  }),
  row(
    'resource metadata: a body without an end',
    'DISCOVERY_FAILED',
    /no response within 20 ms/,
    (world) => {
      world.routes.set(`GET ${RESOURCE_METADATA}`, endless)
      return { timeout: 20 }
    },
  ),
  row(
    'challenge: metadata of a cloud provider',
    'UNSAFE_URL',
    /must use https/,
    challenge('Bearer resource_metadata="http://169.254.169.254/latest"'),
    /169\.254/,
  ),
  row(
    'challenge: metadata at a private address',
    'UNSAFE_URL',
    /private address/,
    challenge('Bearer resource_metadata="https://192.168.0.1/x"'),
    /192\.168/,
  ),
  row(
    'challenge: metadata with another scheme',
    'UNSAFE_URL',
    /not one of the scheme file:/,
    challenge('Bearer resource_metadata="file:///etc/passwd"'),
  ),
  row(
    'challenge: metadata is not a URL',
    'DISCOVERY_FAILED',
    /not a URL/,
    challenge('Bearer resource_metadata="//"'),
  ),
]

const ISSUERS: Row[] = [
  row(
    'no authorization_servers',
    'DISCOVERY_FAILED',
    /no "authorization_servers"/,
    resource({ authorization_servers: undefined }),
  ),
  row(
    'empty authorization_servers',
    'DISCOVERY_FAILED',
    /no "authorization_servers"/,
    resource({ authorization_servers: [] }),
  ),
  row(
    'authorization_servers without strings',
    'DISCOVERY_FAILED',
    /no "authorization_servers"/,
    resource({ authorization_servers: [1, {}] }),
  ),
  row('issuer: http', 'UNSAFE_URL', /must use https/, server('http://as.example'), /as\.example/),
  row('issuer: javascript', 'UNSAFE_URL', /.*/, server('javascript:alert(1)')),
  ...[
    'https://127.0.0.1',
    'https://10.1.2.3',
    'https://172.31.0.1',
    'https://100.64.0.1',
    'https://169.254.169.254',
    'https://0.0.0.0',
    'https://2130706433',
    'https://0x7f.1',
    'https://[::1]',
    'https://[::]',
    'https://[fe80::1]',
    'https://[fd12::1]',
    'https://[::ffff:169.254.169.254]',
    'https://[64:ff9b::a00:1]',
    'https://[2002:a00:1::]',
    'https://localhost',
    'https://localhost.',
    'https://x.localhost',
    'https://inside.example',
    'https://inside6.example',
  ].map((url) =>
    row(
      `issuer: ${url} of a public server`,
      'UNSAFE_URL',
      /private address/,
      server(url),
      /as\.example|inside|:\/\/[\d[]/,
    ),
  ),
  row(
    'issuer: http on localhost, of a public server',
    'UNSAFE_URL',
    /private address/,
    server('http://localhost:1234'),
  ),
  row(
    'issuer: credentials',
    'UNSAFE_URL',
    /must not contain credentials/,
    server('https://user:pw@as.example/x'),
  ),
  row('issuer: query', 'DISCOVERY_FAILED', /query or a fragment/, server(`${ISSUER}?x=1`)),
  row('issuer: fragment', 'DISCOVERY_FAILED', /query or a fragment/, server(`${ISSUER}#x`)),
  row(
    'metadata: missing',
    'DISCOVERY_FAILED',
    /has no metadata: (?:https:\/\/as\.example\S* responded with HTTP 404(?:; |$)){2}/,
    (world) => void world.routes.delete(`GET ${SERVER_METADATA}`),
  ),
  row(
    'metadata: not JSON',
    'DISCOVERY_FAILED',
    /has no metadata: https:\/\/as\.example\S* is not JSON; https:\/\/as\.example\S* responded with HTTP 404/,
    route(`GET ${SERVER_METADATA}`, () => new Response('<html>')),
  ),
  row(
    'metadata: redirects to another origin',
    'DISCOVERY_FAILED',
    /has no metadata: \S* redirects to another origin, https:\/\/evil\.example, which is not followed; /,
    route(`GET ${SERVER_METADATA}`, redirect('https://evil.example/')),
    /evil/,
  ),
  row(
    'metadata: of another issuer',
    'DISCOVERY_FAILED',
    /another issuer, https:\/\/honest\.example/,
    metadata({ issuer: 'https://honest.example' }),
    OAUTH_ENDPOINTS,
  ),
  row(
    'metadata: issuer with a trailing slash',
    'DISCOVERY_FAILED',
    /"issuerTrailingSlash: true"/,
    metadata({ issuer: `${ISSUER}/` }),
    OAUTH_ENDPOINTS,
  ),
  row(
    'metadata: two trailing slashes, with one allowed',
    'DISCOVERY_FAILED',
    /another issuer/,
    (world) => {
      world.metadata['issuer'] = `${ISSUER}//`
      return { issuerTrailingSlash: true }
    },
  ),
  row(
    'metadata: issuer in another case',
    'DISCOVERY_FAILED',
    /another issuer/,
    metadata({ issuer: 'https://AS.example' }),
  ),
  row(
    'metadata: no issuer',
    'DISCOVERY_FAILED',
    /another issuer, undefined/,
    metadata({ issuer: undefined }),
  ),
  row(
    'metadata: too long',
    'DISCOVERY_FAILED',
    /exceeds 262144 bytes/,
    route(`GET ${SERVER_METADATA}`, huge),
  ),
  row(
    'metadata: no token_endpoint',
    'DISCOVERY_FAILED',
    /no token_endpoint/,
    metadata({ token_endpoint: undefined }),
  ),
  row(
    'metadata: token_endpoint with http',
    'UNSAFE_URL',
    /token_endpoint .* must use https/,
    metadata({ token_endpoint: 'http://as.example/token' }),
  ),
  row(
    'metadata: token_endpoint at a private address',
    'UNSAFE_URL',
    /private address/,
    metadata({ token_endpoint: 'https://10.0.0.1/token' }),
    /10\.0/,
  ),
  row(
    'metadata: no authorization_endpoint',
    'DISCOVERY_FAILED',
    /no authorization_endpoint/,
    metadata({ authorization_endpoint: undefined }),
  ),
  ...['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'vscode://x'].map((url) =>
    row(
      `metadata: authorization_endpoint ${url}`,
      'UNSAFE_URL',
      /must be an https URL/,
      metadata({ authorization_endpoint: url }),
    ),
  ),
  row(
    'metadata: no PKCE',
    'DISCOVERY_FAILED',
    /"assumePkce: true"/,
    metadata({ code_challenge_methods_supported: undefined }),
    /register/,
  ),
  row('metadata: PKCE without S256', 'DISCOVERY_FAILED', /S256, which is required/, (world) => {
    world.metadata['code_challenge_methods_supported'] = ['plain']
    return { assumePkce: true }
  }),
]

const REGISTRATIONS: Row[] = [
  row(
    'registration: not offered',
    'REGISTRATION_FAILED',
    /Register a client there with the redirect URI .* "client: \{ id, secret \}"/,
    metadata({ registration_endpoint: undefined }),
  ),
  row(
    'registration: refused',
    'REGISTRATION_FAILED',
    /HTTP 400: invalid_redirect_uri: no loopback/,
    route(`POST ${ISSUER}/register`, () =>
      json({ error: 'invalid_redirect_uri', error_description: 'no loopback' }, 400),
    ),
  ),
  row(
    'registration: HTTP 503',
    'REGISTRATION_FAILED',
    /HTTP 503/,
    route(`POST ${ISSUER}/register`, () => json({}, 503)),
  ),
  row(
    'registration: no client_id',
    'REGISTRATION_FAILED',
    /returned no client_id/,
    route(`POST ${ISSUER}/register`, () => json({ client_secret: SECRET }, 201)),
  ),
  row(
    'registration: not JSON',
    'REGISTRATION_FAILED',
    /returned no client_id/,
    route(`POST ${ISSUER}/register`, () => new Response(SECRET)),
  ),
  row(
    'registration: redirects',
    'REGISTRATION_FAILED',
    /redirects, which is not followed/,
    route(`POST ${ISSUER}/register`, redirect('https://evil.example/')),
    /evil/,
  ),
  row(
    'client of another issuer',
    'REGISTRATION_FAILED',
    /is registered at https:\/\/old\.example/,
    () => ({ client: { id: 'mine', secret: SECRET, issuer: 'https://old.example' } }),
    OAUTH_ENDPOINTS,
  ),
]

const TOKEN = new RegExp(`^${ISSUER}/token`)
const CALLBACKS: Row[] = [
  row(
    'callback: another state',
    'AUTHORIZATION_FAILED',
    /unexpected "state"/,
    callback((it) => it.set('state', 'x')),
    TOKEN,
  ),
  row(
    'callback: no state',
    'AUTHORIZATION_FAILED',
    /"state" missing/,
    callback((it) => it.delete('state')),
    TOKEN,
  ),
  row(
    'callback: two states',
    'AUTHORIZATION_FAILED',
    /not a response/,
    callback((it) => it.append('state', 'x')),
    TOKEN,
  ),
  row(
    'callback: two codes',
    'AUTHORIZATION_FAILED',
    /code/,
    (world) => {
      callback((it) => it.append('code', 'injected'))(world)
    },
    TOKEN,
  ),
  row(
    'callback: another issuer',
    'AUTHORIZATION_FAILED',
    /unexpected "iss"/,
    callback((it) => it.set('iss', 'https://evil.example')),
    TOKEN,
  ),
  row(
    'callback: issuer with a trailing slash',
    'AUTHORIZATION_FAILED',
    /unexpected "iss"/,
    callback((it) => it.set('iss', `${ISSUER}/`)),
    TOKEN,
  ),
  row(
    'callback: no issuer, though announced',
    'AUTHORIZATION_FAILED',
    /"iss" \(issuer\) missing/,
    (world) => {
      world.metadata['authorization_response_iss_parameter_supported'] = true
      callback((it) => it.delete('iss'))(world)
    },
    TOKEN,
  ),
  row(
    'callback: refused by the user',
    'AUTHORIZATION_DENIED',
    /The user denied access \(access_denied: no\)/,
    callback((it) => {
      it.delete('code')
      it.set('error', 'access_denied')
      it.set('error_description', 'no')
    }),
    TOKEN,
  ),
  row(
    'callback: an error',
    'AUTHORIZATION_FAILED',
    /returned server_error/,
    callback((it) => it.set('error', 'server_error')),
    TOKEN,
  ),
  row(
    'callback: an error of another issuer is not shown',
    'AUTHORIZATION_FAILED',
    /^(?!.*phishing)/,
    callback((it) => {
      it.set('iss', 'https://evil.example')
      it.set('error', 'phishing')
      it.set('error_description', 'call phishing')
    }),
    TOKEN,
  ),
  row(
    'callback: no code',
    'AUTHORIZATION_FAILED',
    /neither a code nor an error/,
    callback((it) => it.delete('code')),
    TOKEN,
  ),
  row(
    'callback: an implicit token',
    'AUTHORIZATION_FAILED',
    /implicit/,
    callback((it) => it.set('id_token', SECRET)),
    TOKEN,
  ),
  row(
    'callback: a JWT response',
    'AUTHORIZATION_FAILED',
    /JARM/,
    callback((it) => it.set('response', SECRET)),
    TOKEN,
  ),
  row(
    'callback: at another path',
    'AUTHORIZATION_FAILED',
    /not at the redirect URI/,
    (world) => {
      const before = world.callback
      world.callback = (asked) => before(asked).replace('/callback', '/other')
    },
    TOKEN,
  ),
  row(
    'callback: at another origin',
    'AUTHORIZATION_FAILED',
    /not at the redirect URI/,
    (world) => {
      const before = world.callback
      world.callback = (asked) => before(asked).replace('127.0.0.1', 'evil.example')
    },
    TOKEN,
  ),
  row(
    'callback: not a URL',
    'AUTHORIZATION_FAILED',
    /not a URL/,
    (world) => {
      world.callback = () => SECRET
    },
    TOKEN,
  ),
  row(
    'the user closes the window',
    'AUTHORIZATION_FAILED',
    /was not completed: closed/,
    () => ({
      redirectUri: REDIRECT,
      authorize: () => Promise.reject(new Error('closed')),
    }),
    TOKEN,
  ),
]

const TOKENS: Row[] = [
  row(
    'token: another type',
    'TOKEN_REQUEST_FAILED',
    /unsupported `token_type`/,
    tokens({ token_type: 'mac' }),
  ),
  row(
    'token: no type',
    'TOKEN_REQUEST_FAILED',
    /"token_type" property/,
    tokens({ token_type: undefined }),
  ),
  row(
    'token: DPoP, which was not requested',
    'TOKEN_REQUEST_FAILED',
    /DPoP token, which was not requested/,
    tokens({ token_type: 'DPoP' }),
  ),
  row(
    'token: missing',
    'TOKEN_REQUEST_FAILED',
    /"access_token" property/,
    tokens({ access_token: undefined }),
  ),
  row(
    'token: a number',
    'TOKEN_REQUEST_FAILED',
    /"access_token" property/,
    tokens({ access_token: 7 }),
  ),
  row(
    'token: with a line break',
    'TOKEN_REQUEST_FAILED',
    /cannot be sent in a header/,
    tokens({ access_token: `${SECRET}\r\nX-Evil: 1` }),
  ),
  row(
    'token: too long',
    'TOKEN_REQUEST_FAILED',
    /cannot be sent in a header/,
    tokens({ access_token: SECRET.repeat(20_000) }),
  ),
  row(
    'token: expires_in is text',
    'TOKEN_REQUEST_FAILED',
    /"expires_in" property/,
    tokens({ expires_in: 'soon' }),
  ),
  row(
    'token: expires_in is negative',
    'TOKEN_REQUEST_FAILED',
    /"expires_in" property/,
    tokens({ expires_in: -1 }),
  ),
  row(
    'token: scope is a list',
    'TOKEN_REQUEST_FAILED',
    /"scope" property/,
    tokens({ scope: ['a'] }),
  ),
  row(
    'token: refresh_token is an object',
    'TOKEN_REQUEST_FAILED',
    /"refresh_token" property/,
    tokens({ refresh_token: {} }),
  ),
  row(
    'token endpoint: invalid_grant',
    'TOKEN_REQUEST_FAILED',
    /HTTP 400: invalid_grant: used/,
    route(`POST ${ISSUER}/token`, () =>
      json({ error: 'invalid_grant', error_description: 'used' }, 400),
    ),
  ),
  row(
    'token endpoint: invalid_client with a challenge',
    'TOKEN_REQUEST_FAILED',
    /HTTP 401: invalid_client/,
    route(
      `POST ${ISSUER}/token`,
      () =>
        new Response('{"error":"invalid_client"}', {
          status: 401,
          headers: { 'www-authenticate': 'Basic realm=x' },
        }),
    ),
  ),
  row(
    'token endpoint: a web page',
    'TOKEN_REQUEST_FAILED',
    /HTTP 502/,
    route(`POST ${ISSUER}/token`, () => new Response('<html>', { status: 502 })),
  ),
  row(
    'token endpoint: not JSON',
    'TOKEN_REQUEST_FAILED',
    /not a JSON object/,
    route(`POST ${ISSUER}/token`, () => new Response(`access_token=${SECRET}`)),
  ),
  row(
    'token endpoint: redirects to another origin',
    'TOKEN_REQUEST_FAILED',
    /redirects, which is not followed/,
    route(`POST ${ISSUER}/token`, redirect('https://evil.example/token')),
    /evil/,
  ),
  row(
    'token endpoint: redirects within the origin',
    'TOKEN_REQUEST_FAILED',
    /redirects, which is not followed/,
    route(`POST ${ISSUER}/token`, redirect('/other', 302)),
    /other/,
  ),
  row(
    'token endpoint: too long',
    'TOKEN_REQUEST_FAILED',
    /exceeds 262144 bytes/,
    route(`POST ${ISSUER}/token`, huge),
  ),
  row('token endpoint: no end', 'TOKEN_REQUEST_FAILED', /no response within 500 ms/, (world) => {
    world.routes.set(`POST ${ISSUER}/token`, endless)
    return { timeout: 500 }
  }),
  row(
    'token endpoint: control characters in the error',
    'TOKEN_REQUEST_FAILED',
    /HTTP 400: x y/,
    route(`POST ${ISSUER}/token`, () => json({ error: 'x\u001b\u0007y' }, 400)),
  ),
  row(
    'token endpoint: repeats the code',
    'TOKEN_REQUEST_FAILED',
    /HTTP 400: invalid_grant: bad code \[secret\]/,
    (world) => {
      world.routes.set(`POST ${ISSUER}/token`, ({ body }) =>
        json(
          {
            error: 'invalid_grant',
            error_description: `bad code ${new URLSearchParams(body).get('code')}`,
          },
          400,
        ),
      )
    },
  ),
  row(
    'the server refuses every token',
    'AUTHORIZATION_FAILED',
    /refuses the token that https:\/\/as\.example has just issued/,
    (world) => {
      world.mcp = () => world.accept(new Headers())
    },
  ),
  row(
    'the server requires the same scope for ever',
    'AUTHORIZATION_FAILED',
    /requires the scopes notes:write, which were already requested/,
    (world) => {
      world.mcp = forbidden(world, () => 'notes:write')
    },
  ),
]

/** 403 with a scope for every token. */
function forbidden(world: World, scope: () => string): World['mcp'] {
  return ({ headers }) => {
    const response = world.accept(headers)
    if (response.status !== 200) return response
    const text = `Bearer error="insufficient_scope", scope="${scope()}"`
    return new Response('', { status: 403, headers: { 'www-authenticate': text } })
  }
}

const REPEATED: Row[] = [
  ...['client_secret_basic', 'client_secret_post'].map((method) =>
    row(
      `the token endpoint repeats the client secret of ${method}`,
      'TOKEN_REQUEST_FAILED',
      /HTTP 401: invalid_client: \[secret\] \[secret\] \[secret\]/,
      (world) => {
        world.metadata['token_endpoint_auth_methods_supported'] = [method]
        const secret = `${SECRET}/é`
        const encoded = `${SECRET}%2F%C3%A9`
        const description = `${secret} ${encoded} ${btoa(`mine:${encoded}`)}`
        const refusal = { error: 'invalid_client', error_description: description }
        world.routes.set(`POST ${ISSUER}/token`, () => json(refusal, 401))
        return { client: { id: 'mine', secret } }
      },
    ),
  ),
  row(
    'the token endpoint has an error of many lines',
    'TOKEN_REQUEST_FAILED',
    /HTTP 400: x x/,
    (world) =>
      void world.routes.set(`POST ${ISSUER}/token`, () =>
        json({ error: 'x\n'.repeat(50_000), error_description: 'y' }, 400),
      ),
  ),
]

const ROWS = [...REPEATED, ...RESOURCES, ...ISSUERS, ...REGISTRATIONS, ...CALLBACKS, ...TOKENS]

describe('hostile servers and callbacks', () => {
  it('are at least 60', () => expect(ROWS.length).toBeGreaterThan(60))

  it.each(ROWS)('$title', async ({ arrange, code, message, never }) => {
    const world = new World()
    const options = arrange(world) ?? {}
    const error: unknown = await world
      .request(world.authorizer(options))
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AuthorizationError)
    const failure = error as AuthorizationError
    expect(failure.code).toBe(code)
    expect(failure.message).toMatch(message)
    expect(failure.executed).toBe('no')
    // Nothing secret in the message, nor in anything that a log would show of the error.
    expect(inspect(failure, { depth: 20, showHidden: true })).not.toContain(SECRET)
    // oxlint-disable-next-line no-control-regex -- these are what is looked for
    expect(failure.message + (failure.error ?? '')).not.toMatch(/[\u0000-\u001f]/)
    expect(failure.message.length + (failure.error ?? '').length).toBeLessThan(2000)
    if (never !== undefined)
      expect(world.seen.map(({ url }) => url).filter((url) => never.test(url))).toEqual([])
    expect(world.authorizations.length).toBeLessThanOrEqual(3)
  })

  it('scopes that grow without end lead to three authorizations', async () => {
    const world = new World()
    let count = 0
    world.mcp = forbidden(world, () => `scope:${count++}`)
    expect(await world.request()).toBe(403)
    expect(world.authorizations.length).toBe(3)
  })

  it('a 403 without insufficient_scope leads to no authorization', async () => {
    const world = new World()
    world.mcp = () =>
      new Response('', {
        status: 403,
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      })
    expect(await world.request()).toBe(403)
    expect(world.authorizations).toEqual([])
  })

  it('a token never goes to another origin', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    expect(await world.request(authorizer)).toBe(200)
    await expect(world.request(authorizer, 'https://evil.example/mcp')).rejects.toThrow(
      /is for https:\/\/mcp\.example/,
    )
    expect(world.to('https://evil.example/mcp')).toEqual([])
  })

  it('a public MCP server with a private address besides may not name private ones', async () => {
    const world = new World()
    const url = 'https://both.example/mcp'
    world.challenge = 'Bearer resource_metadata="https://127.0.0.1/admin"'
    world.routes.set(`POST ${url}`, (seen) => world.accept(seen.headers))
    await expect(world.request(world.authorizer(), url)).rejects.toMatchObject({
      code: 'UNSAFE_URL',
    })
    expect(world.seen.length).toBe(1)
  })

  it('no token is requested for an MCP server without https', async () => {
    const world = new World()
    world.routes.set('POST http://mcp.example/mcp', () => new Response('', { status: 401 }))
    await expect(world.request(world.authorizer(), 'http://mcp.example/mcp')).rejects.toThrow(
      /MCP server must use https/,
    )
    expect(world.seen.length).toBe(1)
  })
})

describe('unusual, but valid', () => {
  const VALID: [title: string, arrange: (world: World) => OAuthOptions | void][] = [
    ['401 without a challenge', (world) => void (world.challenge = undefined)],
    ['a challenge of a megabyte', challenge(`Bearer realm="${'x'.repeat(1_000_000)}"`)],
    ['an unfinished quoted string', challenge('Bearer realm="')],
    [
      'several challenges',
      challenge(`Basic realm="a, b", Negotiate abc==, bearer error="x", DIGEST qop=auth`),
    ],
    [
      'the metadata of the challenge does not exist',
      challenge('Bearer resource_metadata="https://mcp.example/none"'),
    ],
    [
      'a web page instead of metadata',
      (world) => {
        world.routes.set(`GET ${RESOURCE_METADATA}`, () => new Response('<html>'))
        world.routes.set('GET https://mcp.example/.well-known/oauth-protected-resource', () =>
          json(world.resource),
        )
      },
    ],
    [
      'ten thousand scopes',
      challenge(`Bearer scope="${Array.from({ length: 10_000 }, (_, i) => `s${i}`).join(' ')}"`),
    ],
    ['a broken ID token', tokens({ id_token: 'x.y.z' })],
    ['null instead of nothing', tokens({ refresh_token: null, scope: null, expires_in: null })],
    ['expires_in as text', tokens({ expires_in: '3600' })],
    ['expires_in of a million years', tokens({ expires_in: 1e300 })],
    ['token_type in another case', tokens({ token_type: 'BEARER' })],
    [
      'registration with HTTP 200 and a secret without an end',
      route(`POST ${ISSUER}/register`, () => json({ client_id: 'a', client_secret: SECRET })),
    ],
    ['no issuer in the callback, and none announced', callback((it) => it.delete('iss'))],
    [
      'an issuer with a trailing slash, if allowed',
      (world) => {
        world.metadata['issuer'] = `${ISSUER}/`
        callback((it) => it.set('iss', `${ISSUER}/`))(world)
        return { issuerTrailingSlash: true }
      },
    ],
    [
      'no statement about PKCE, if assumed',
      (world) => {
        world.metadata['code_challenge_methods_supported'] = undefined
        return { assumePkce: true }
      },
    ],
    [
      'a redirect within the origin',
      (world) => {
        world.routes.set(`GET ${SERVER_METADATA}`, redirect('/moved'))
        world.routes.set(`GET ${ISSUER}/moved`, () => json(world.metadata))
      },
    ],
    [
      'a private authorization server, if allowed',
      (world) => {
        const issuer = 'https://10.0.0.1'
        world.resource['authorization_servers'] = [issuer]
        Object.assign(world.metadata, { issuer })
        world.routes.set(`GET ${issuer}/.well-known/openid-configuration`, () =>
          json(world.metadata),
        )
        callback((it) => it.set('iss', issuer))(world)
        return { privateAddresses: true }
      },
    ],
    [
      'a store with garbage',
      () => ({
        store: { get: () => '{"issuer":', set: () => {}, delete: () => {} },
      }),
    ],
    [
      'a store with values of another shape',
      () => ({
        store: {
          get: () => '{"issuer":"a","resource":"b","clientId":"c","accessToken":1}',
          set: () => {},
          delete: () => {},
        },
      }),
    ],
  ]
  it.each(VALID)('%s', async (_title, arrange) => {
    const world = new World()
    expect(await world.request(world.authorizer(arrange(world) ?? {}))).toBe(200)
  })
})
