import { describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import { type OAuthOptions, memoryTokenStore, oauth } from '../../src/oauth.js'
import {
  ISSUER,
  REDIRECT,
  RESOURCE_METADATA,
  SECRET,
  SERVER,
  SERVER_METADATA,
  World,
  json,
} from '../client-auth/world.js'
import { proves } from './proves.js'
import { resolveOnly } from '../client-auth/names.js'

/* What the pages on authorization require of clients. */

resolveOnly()

const TOKEN = `${ISSUER}/token`
const REGISTER = `${ISSUER}/register`
const urls = (world: World) => world.seen.map(({ url }) => url)
const tokenRequest = (world: World) => new URLSearchParams(world.to(TOKEN)[0]?.body)

/** Changes the parameters of the callback. */
function changeCallback(world: World, change: (params: URLSearchParams) => void): void {
  const before = world.callback
  world.callback = (asked) => {
    const url = new URL(before(asked))
    change(url.searchParams)
    return url.href
  }
}

describe('discovery', () => {
  const ROOT = 'https://mcp.example/.well-known/oauth-protected-resource'

  it('takes the metadata of the challenge, else by path, else at the root', async () => {
    proves('auth.parse-challenge', 'auth.metadata-locations', 'auth.resource-metadata')
    const named = 'https://mcp.example/metadata'
    const world = new World()
    world.challenge = `Basic realm="a, b", Bearer realm="\\"x\\"", resource_metadata="${named}"`
    world.routes.set(`GET ${named}`, () => json(world.resource))
    expect(await world.request()).toBe(200)
    expect(urls(world).slice(0, 3)).toEqual([SERVER, named, SERVER_METADATA])

    const plain = new World()
    plain.challenge = 'Bearer'
    plain.routes.delete(`GET ${RESOURCE_METADATA}`)
    plain.routes.set(`GET ${ROOT}`, () => json(plain.resource))
    expect(await plain.request()).toBe(200)
    expect(urls(plain).slice(0, 4)).toEqual([SERVER, RESOURCE_METADATA, ROOT, SERVER_METADATA])
  })

  it.each([
    ['', ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']],
    [
      '/tenant',
      [
        '/.well-known/oauth-authorization-server/tenant',
        '/.well-known/openid-configuration/tenant',
        '/tenant/.well-known/openid-configuration',
      ],
    ],
  ])('tries the URLs of an issuer with the path "%s" in order', async (path, paths) => {
    proves('auth.discovery', 'auth.server-metadata', 'auth.server-metadata-order')
    const world = new World()
    const issuer = `${ISSUER}${path}`
    world.resource['authorization_servers'] = [issuer]
    world.metadata['issuer'] = issuer
    world.routes.delete(`GET ${SERVER_METADATA}`)
    world.routes.set(`GET ${ISSUER}${paths.at(-1)}`, () => json(world.metadata))
    changeCallback(world, (params) => params.set('iss', issuer))
    expect(await world.request()).toBe(200)
    const tried = urls(world).filter((url) => url.startsWith(ISSUER))
    expect(tried.slice(0, paths.length)).toEqual(paths.map((each) => `${ISSUER}${each}`))
  })

  it.each(['https://honest.example', `${ISSUER}/`, 'HTTPS://as.example', `${ISSUER}:443`])(
    'does not use metadata of the issuer %s',
    async (issuer) => {
      proves('auth.issuer-identical')
      const world = new World()
      world.metadata['issuer'] = issuer
      await expect(world.request()).rejects.toThrow(/has another issuer/)
      expect(world.to(REGISTER)).toEqual([])
      expect(world.authorizations).toEqual([])
    },
  )

  it('of 2025-03-26: metadata at the root of the server, else the default endpoints', async () => {
    proves('auth.base-url', 'auth.default-endpoints', 'auth.resource-specific')
    const origin = 'https://mcp.example'
    const world = new World()
    world.challenge = undefined
    world.routes.delete(`GET ${RESOURCE_METADATA}`)
    world.routes.set(`POST ${origin}/register`, () => json({ client_id: 'registered' }, 201))
    world.routes.set(`POST ${origin}/token`, (seen) => world.issue(seen))
    const shown: string[] = []
    const authorize = (url: string) => {
      shown.push(url)
      const asked = new URL(url).searchParams
      world.authorizations.push(asked)
      return Promise.resolve(`${REDIRECT}?code=1&state=${asked.get('state')}`)
    }
    expect(await world.request(world.authorizer({ authorize }))).toBe(200)
    expect(shown[0]).toMatch(/^https:\/\/mcp\.example\/authorize\?/)
    expect(world.authorizations[0]?.get('resource')).toBe(SERVER)
    const tried = urls(world)
    expect(tried.indexOf(`${origin}/.well-known/oauth-authorization-server`)).toBeLessThan(
      tried.indexOf(`${origin}/register`),
    )

    const login = `${origin}/login`
    const metadata = { ...world.metadata, issuer: origin, authorization_endpoint: login }
    world.routes.set(`GET ${origin}/.well-known/oauth-authorization-server`, () => json(metadata))
    world.routes.set(`POST ${TOKEN}`, (seen) => world.issue(seen))
    expect(await world.request(world.authorizer({ authorize }))).toBe(200)
    expect(shown[1]).toMatch(/^https:\/\/mcp\.example\/login\?/)
  })
})

describe('registration', () => {
  it('prefers a configured client to a metadata document, and that to registering', async () => {
    proves('auth.registration-order', 'auth.preregistration', 'auth.dynamic-registration')
    proves('auth.metadata-document', 'auth.metadata-document-support', 'auth.client-id')
    const metadataUrl = 'https://app.example/client.json'
    const used = async (supported: boolean, client: OAuthOptions['client']) => {
      const world = new World()
      world.metadata['client_id_metadata_document_supported'] = supported
      await world.request(world.authorizer(client === undefined ? {} : { client }))
      expect(tokenRequest(world).get('client_id')).toBe(world.authorizations[0]?.get('client_id'))
      return [tokenRequest(world).get('client_id'), world.to(REGISTER).length]
    }
    expect(await used(true, { id: 'mine', metadataUrl })).toEqual(['mine', 0])
    expect(await used(true, { metadataUrl })).toEqual([metadataUrl, 0])
    expect(await used(false, { metadataUrl })).toEqual(['registered', 1])
    expect(await used(true, undefined)).toEqual(['registered', 1])
  })

  it.each(['http://app.example/client.json', 'https://app.example', 'https://app.example/', 'x'])(
    'refuses %s as the URL of a metadata document',
    (metadataUrl) => {
      proves('auth.metadata-document-url')
      expect(() => oauth({ client: { metadataUrl } })).toThrow(/https URL with a path/)
    },
  )

  it.each([
    [REDIRECT, 'native'],
    ['http://localhost:7777/callback', 'native'],
    ['https://app.example/callback', 'web'],
  ])('with %s is for the application type %s', async (redirectUri, type) => {
    proves('auth.application-type', 'auth.redirects-registered', 'auth.refresh-grant')
    const world = new World()
    await world.request(world.authorizer({ redirectUri }))
    expect(JSON.parse(world.to(REGISTER)[0]?.body ?? '')).toMatchObject({
      application_type: type,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
    })
    expect(world.authorizations[0]?.get('redirect_uri')).toBe(redirectUri)
  })

  it('says why it failed and what to do', async () => {
    proves('auth.registration-failure')
    const world = new World()
    const refusal = { error: 'invalid_redirect_uri', error_description: 'no localhost' }
    world.routes.set(`POST ${REGISTER}`, () => json(refusal, 400))
    await expect(world.request()).rejects.toThrow(
      /HTTP 400: invalid_redirect_uri: no localhost\. Register a client with the redirect URI/,
    )
  })

  it('belongs to one authorization server', async () => {
    proves('auth.separate-state', 'auth.binding', 'auth.other-issuers')
    const other = 'https://other.example'
    const world = new World()
    world.tokens = { refresh_token: `${SECRET}-refresh` }
    const authorizer = world.authorizer()
    expect(await world.request(authorizer)).toBe(200)
    const old = world.seen.at(-1)?.headers.get('authorization')
    world.valid.clear()
    world.resource['authorization_servers'] = [other]
    const text = JSON.stringify(world.metadata).replaceAll(ISSUER, other)
    world.routes.set(`GET ${other}/.well-known/oauth-authorization-server`, () =>
      json(JSON.parse(text)),
    )
    world.routes.set(`POST ${other}/register`, () => json({ client_id: 'new' }, 201))
    world.routes.set(`POST ${other}/token`, (seen) => world.issue(seen))
    changeCallback(world, (params) => params.set('iss', other))
    expect(await world.request(authorizer)).toBe(200)
    const sent = world.seen.filter(({ url }) => url.startsWith(other)).map(({ body }) => body)
    expect(sent.join('\n')).not.toMatch(/registered|refresh_token=/)
    expect(world.authorizations[1]?.get('client_id')).toBe('new')
    expect(world.seen.at(-1)?.headers.get('authorization')).not.toBe(old)
  })

  it('of another authorization server than the configured one is an error', async () => {
    proves('auth.binding-preregistered')
    const world = new World()
    const client = { id: 'mine', secret: SECRET, issuer: 'https://other.example' }
    await expect(world.request(world.authorizer({ client }))).rejects.toThrow(/is registered at/)
    expect(world.authorizations).toEqual([])
    expect(world.to(TOKEN)).toEqual([])
  })
})

describe('an authorization', () => {
  it('uses PKCE with S256, an exact redirect URI and the resource', async () => {
    proves('auth.best-practices', 'auth.pkce', 'auth.pkce-required', 'auth.pkce-s256')
    proves('auth.resource', 'auth.resource-parameter')
    const world = new World()
    world.resource['resource'] = 'https://mcp.example'
    // This authorization server compares the verifier with the challenge.
    expect(await world.request()).toBe(200)
    const asked = world.authorizations[0]
    expect(asked?.get('response_type')).toBe('code')
    expect(asked?.get('code_challenge_method')).toBe('S256')
    expect(asked?.get('code_challenge')).toMatch(/^[\w-]{43}$/)
    expect(tokenRequest(world).get('code_verifier')).toMatch(/^[\w.~-]{43,128}$/)
    expect(tokenRequest(world).get('redirect_uri')).toBe(REDIRECT)
    expect([asked?.get('resource'), tokenRequest(world).get('resource')]).toEqual([
      'https://mcp.example',
      'https://mcp.example',
    ])
  })

  it.each(['oauth-authorization-server', 'openid-configuration'])(
    'is refused if PKCE is not listed in %s',
    async (name) => {
      proves('auth.pkce-metadata')
      for (const methods of [undefined, [], ['plain']]) {
        const world = new World()
        world.metadata['code_challenge_methods_supported'] = methods
        world.routes.delete(`GET ${SERVER_METADATA}`)
        world.routes.set(`GET ${ISSUER}/.well-known/${name}`, () => json(world.metadata))
        await expect(world.request()).rejects.toThrow(/PKCE/)
        expect(world.to(REGISTER)).toEqual([])
        expect(world.authorizations).toEqual([])
      }
    },
  )

  it.each([null, '', 'other'])('discards a response with the state %j', async (state) => {
    proves('auth.state')
    const world = new World()
    changeCallback(world, (params) => {
      params.delete('state')
      if (state !== null) params.set('state', state)
    })
    await expect(world.request()).rejects.toThrow(/not a response of/)
    expect(world.to(TOKEN)).toEqual([])
  })

  it.each([
    'https://evil.example',
    `${ISSUER}/`,
    `${ISSUER}:443`,
    'https://AS.example',
    'https://as%2Eexample',
  ])('sends no code after a response of the issuer %s', async (issuer) => {
    proves('auth.iss', 'auth.iss-exact', 'auth.expected-issuer')
    const world = new World()
    changeCallback(world, (params) => params.set('iss', issuer))
    await expect(world.request()).rejects.toThrow(/not a response of https:\/\/as\.example/)
    expect(world.to(TOKEN)).toEqual([])
  })

  it('needs the issuer in the response if the metadata announces it', async () => {
    proves('auth.iss')
    const world = new World()
    world.metadata['authorization_response_iss_parameter_supported'] = true
    changeCallback(world, (params) => params.delete('iss'))
    await expect(world.request()).rejects.toThrow(/not a response of/)
    expect(world.to(TOKEN)).toEqual([])
  })

  it('compares the issuer with the one that was recorded, whatever the metadata says later', async () => {
    proves('auth.expected-issuer')
    const world = new World()
    const store = memoryTokenStore()
    const url = await world.authorizer({ store }).begin(SERVER)
    world.metadata['issuer'] = 'https://evil.example'
    const asked = new URL(url).searchParams
    world.authorizations.push(asked)
    await world.authorizer({ store }).finish(world.callback(asked))
    expect(world.to(TOKEN).length).toBe(1)
  })

  it('does not show an error of another issuer', async () => {
    proves('auth.iss-errors')
    const world = new World()
    world.callback = (asked) =>
      `${REDIRECT}?error=evil_error&error_description=evil_text&error_uri=https://evil.example&state=${asked.get('state')}&iss=https://evil.example`
    const failure: unknown = await world.request().catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'AUTHORIZATION_FAILED', error: undefined })
    expect(String(failure)).not.toMatch(/evil_/)
  })

  it('accepts a resource in upper case, and writes none with a trailing slash', async () => {
    proves('auth.resource-case', 'auth.resource-slash')
    const world = new World()
    world.resource['resource'] = 'HTTPS://MCP.EXAMPLE/mcp'
    expect(await world.request()).toBe(200)

    // Without metadata the resource is the URL of the server.
    const root = new World()
    root.routes.set('GET https://mcp.example/.well-known/oauth-authorization-server', () =>
      json({ ...root.metadata, issuer: 'https://mcp.example' }),
    )
    const url = await root.authorizer().begin('https://mcp.example/')
    expect(new URL(url).searchParams.get('resource')).toBe('https://mcp.example')
  })

  it.each(['http://app.example/callback', 'app:/callback', 'https://app.example/#x'])(
    'refuses the redirect URI %s',
    async (redirectUri) => {
      proves('auth.redirect-https')
      expect(() => oauth({ redirectUri })).toThrow(/must be an https URL/)
      const world = new World()
      const authorizer = world.authorizer({ redirectUri: () => redirectUri })
      await expect(world.request(authorizer)).rejects.toThrow(/must be an https URL/)
    },
  )

  it.each(['authorization_endpoint', 'token_endpoint', 'registration_endpoint'])(
    'refuses the %s without https',
    async (name) => {
      proves('auth.https', 'auth.communication')
      const world = new World()
      world.metadata[name] = 'http://as.example/x'
      await expect(world.request()).rejects.toMatchObject({ code: 'UNSAFE_URL' })
      expect(urls(world).filter((url) => url.startsWith('http:'))).toEqual([])
      expect(world.authorizations).toEqual([])
    },
  )
})

describe('scopes', () => {
  const asked = async (challenge: string, supported: string[] | undefined) => {
    const world = new World()
    world.challenge = challenge
    world.resource['scopes_supported'] = supported
    await world.request()
    return world.authorizations[0]?.get('scope')
  }

  it('are those of the challenge, else those of the metadata, else none', async () => {
    proves('auth.scope-order', 'auth.scope-fallback', 'auth.scope-challenge')
    expect(await asked('Bearer scope="a b"', ['b', 'c'])).toBe('a b')
    expect(await asked('Bearer scope="z"', ['b', 'c'])).toBe('z')
    expect(await asked('Bearer', ['b', 'c'])).toBe('b c')
    expect(await asked('Bearer', undefined)).toBeNull()
  })

  it('grow after insufficient_scope, but not without end', async () => {
    proves('auth.step-up', 'auth.step-up-limits', 'auth.scope-union')
    const refusing = (scope: () => string) => {
      const world = new World()
      world.mcp = ({ headers }) => {
        const response = world.accept(headers)
        if (response.status !== 200) return response
        const text = `Bearer error="insufficient_scope", scope="${scope()}"`
        return new Response('', { status: 403, headers: { 'www-authenticate': text } })
      }
      return world
    }
    let count = 0
    const growing = refusing(() => `s${count++}`)
    expect(await growing.request()).toBe(403)
    const scopes = growing.authorizations.map((each) => each.get('scope'))
    expect(scopes).toEqual(['notes:read', 'notes:read s0', 'notes:read s0 s1'])

    const same = refusing(() => 'notes:write')
    await expect(same.request()).rejects.toThrow(/already requested/)
    expect(same.authorizations.length).toBe(2)
  })
})

describe('tokens', () => {
  it('are in the Authorization header of every request, and in no URL', async () => {
    proves('auth.token-header', 'auth.every-request', 'auth.no-query', 'auth.refresh-optional')
    const world = new World()
    const sessions = { 'content-type': 'application/json', 'mcp-session-id': 's' }
    world.mcp = ({ headers, body }) => {
      const refused = world.accept(headers)
      if (refused.status !== 200) return refused
      const { id, method } = JSON.parse(body) as { id?: number; method: string }
      if (id === undefined) return new Response(null, { status: 202 })
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'x', version: '1' },
        },
        'tools/list': { tools: [] },
      }
      const result = results[method]
      const message =
        result === undefined ? { error: { code: -32601, message: 'Unknown' } } : { result }
      return new Response(JSON.stringify({ jsonrpc: '2.0', id, ...message }), { headers: sessions })
    }
    const transport = http(SERVER, { authorizer: world.authorizer(), fetch: world.fetch })
    const client = await connect(transport, { info: { name: 'x', version: '1' } })
    await client.request('tools/list', {})
    await client.close()
    const sent = world.seen.filter(({ url }) => url === SERVER)
    const later = sent.slice(sent.findIndex(({ headers }) => headers.has('authorization')))
    expect(new Set(later.map(({ method }) => method))).toEqual(new Set(['POST', 'GET', 'DELETE']))
    expect(later.map(({ headers }) => headers.get('authorization'))).toEqual(
      later.map(() => `Bearer ${SECRET}-token-1`),
    )
    expect(urls(world).join('\n')).not.toContain(SECRET)
  })
})
