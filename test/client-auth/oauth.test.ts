import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  AuthorizationError,
  AuthorizationRequiredError,
  type TokenStore,
  clientCredentials,
  jwtBearer,
  memoryTokenStore,
  oauth,
} from '../../src/oauth.js'
import { withAuthorization } from '../../src/transports/http/client/authorizer.js'
import { webRequest } from '../../src/transports/http/client/http-request.js'
import { ISSUER, REDIRECT, SECRET, SERVER, World, json } from './world.js'
import { resolveOnly } from './names.js'

resolveOnly()

/** Moves the clock, until the end of the test. */
function pass(milliseconds: number): void {
  vi.useFakeTimers({ now: Date.now() + milliseconds, toFake: ['Date'] })
}
afterEach(() => void vi.useRealTimers())

const TOKEN = `${ISSUER}/token`
const grants = (world: World) =>
  world.to(TOKEN).map(({ body }) => new URLSearchParams(body).get('grant_type'))

/** A store that several authorizers share, as processes do, whose values can be seen. */
function sharedStore(): TokenStore & { values: Map<string, string> } {
  const store = memoryTokenStore()
  const values = new Map<string, string>()
  return {
    ...store,
    values,
    get: (key) => values.get(key),
    set: (key, value) => void values.set(key, value),
    delete: (key) => void values.delete(key),
  }
}

describe('authorization code', () => {
  it('sends PKCE, state, resource and scope, and the verifier with the code', async () => {
    const world = new World()
    world.challenge = 'Bearer scope="notes:read notes:write"'
    expect(await world.request()).toBe(200)
    const [asked] = world.authorizations
    expect(Object.fromEntries(asked ?? [])).toMatchObject({
      response_type: 'code',
      client_id: 'registered',
      redirect_uri: REDIRECT,
      code_challenge_method: 'S256',
      resource: SERVER,
      scope: 'notes:read notes:write',
    })
    expect(asked?.get('state')?.length).toBeGreaterThan(20)
    const sent = Object.fromEntries(new URLSearchParams(world.to(TOKEN)[0]?.body))
    expect(sent).toMatchObject({
      resource: SERVER,
      redirect_uri: REDIRECT,
      client_id: 'registered',
    })
  })

  it('uses the scopes of the metadata, then none', async () => {
    const world = new World()
    await world.request()
    expect(world.authorizations[0]?.get('scope')).toBe('notes:read')
    const other = new World()
    delete other.resource['scopes_supported']
    await other.request()
    expect(other.authorizations[0]?.has('scope')).toBe(false)
  })

  it('requests offline_access only if the authorization server lists it', async () => {
    const world = new World()
    world.metadata['scopes_supported'] = ['notes:read', 'offline_access']
    await world.request()
    expect(world.authorizations[0]?.get('scope')).toBe('notes:read offline_access')
    expect(world.authorizations[0]?.get('prompt')).toBe('consent')
    const other = new World()
    other.challenge = 'Bearer scope="a offline_access"'
    await other.request()
    expect(other.authorizations[0]?.get('scope')).toBe('a')
  })

  it('sends the resource as the metadata writes it', async () => {
    const world = new World()
    world.resource['resource'] = 'https://mcp.example'
    await world.request()
    expect(world.authorizations[0]?.get('resource')).toBe('https://mcp.example')
  })

  it('step-up: requests the union of scopes', async () => {
    const world = new World()
    let writable = ''
    world.mcp = ({ headers }) => {
      const response = world.accept(headers)
      const token = headers.get('authorization') ?? ''
      if (response.status !== 200 || world.authorizations.length > 1) return response
      writable = token
      return new Response('', {
        status: 403,
        headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="notes:write"' },
      })
    }
    expect(await world.request()).toBe(200)
    expect(writable).not.toBe('')
    expect(world.authorizations[1]?.get('scope')).toBe('notes:read notes:write')
  })

  it('many requests at once lead to one authorization, also without exclusive access to the store', async () => {
    const world = new World()
    const { get, set, delete: remove } = memoryTokenStore()
    const authorizer = world.authorizer({ store: { get, set, delete: remove } })
    const statuses = await Promise.all(Array.from({ length: 20 }, () => world.request(authorizer)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(world.authorizations.length).toBe(1)
  })

  it('a late 401 of an old token leads to no second authorization', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    await world.request(authorizer)
    const challenge = { status: 401, url: new URL(SERVER), header: undefined, nonce: undefined }
    const sent = { authorization: 'Bearer old' }
    const { signal } = new AbortController()
    expect(await authorizer.challenged({ ...challenge, sent }, signal)).toBe(true)
    expect(world.authorizations.length).toBe(1)
  })

  it('several processes lead to one authorization', async () => {
    const world = new World()
    const store = sharedStore()
    const processes = [1, 2, 3].map(() => world.request(world.authorizer({ store })))
    expect(await Promise.all(processes)).toEqual([200, 200, 200])
    expect(world.authorizations.length).toBe(1)
  })

  it('an aborted request leaves the authorization to the others', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    const controller = new AbortController()
    const challenge = { status: 401, url: new URL(SERVER), header: undefined, nonce: undefined }
    const aborted = authorizer.challenged({ ...challenge, sent: {} }, controller.signal)
    controller.abort(new Error('enough'))
    await expect(aborted).rejects.toThrow('enough')
    expect(await world.request(authorizer)).toBe(200)
    expect(world.authorizations.length).toBe(1)
  })
})

describe('registration', () => {
  const REGISTER = `${ISSUER}/register`

  it('registers a native client with refresh tokens', async () => {
    const world = new World()
    await world.request()
    expect(JSON.parse(world.to(REGISTER)[0]?.body ?? '')).toMatchObject({
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
    })
  })

  it('is kept for a redirect URI, and dropped when that changes', async () => {
    const world = new World()
    const store = memoryTokenStore()
    const logIn = async (redirectUri: string) => {
      world.valid.clear()
      const authorizer = world.authorizer({ store, redirectUri })
      await authorizer.finish(await callbackFor(world, await authorizer.begin(SERVER)))
    }
    await logIn(REDIRECT)
    await logIn(REDIRECT)
    expect(world.to(REGISTER).length).toBe(1)
    await logIn('https://app.example/callback')
    expect(world.to(REGISTER).length).toBe(2)
    expect(JSON.parse(world.to(REGISTER)[1]?.body ?? '')).toMatchObject({ application_type: 'web' })
  })

  it('uses a configured client first, then a metadata document if the server supports them', async () => {
    const world = new World()
    const metadataUrl = 'https://app.example/client.json'
    world.metadata['client_id_metadata_document_supported'] = true
    await world.request(world.authorizer({ client: { id: 'mine', metadataUrl } }))
    await world.request(world.authorizer({ client: { metadataUrl } }))
    world.metadata['client_id_metadata_document_supported'] = false
    await world.request(world.authorizer({ client: { metadataUrl } }))
    const ids = world.authorizations.map((asked) => asked.get('client_id'))
    expect(ids).toEqual(['mine', metadataUrl, 'registered'])
  })

  it.each([
    [['client_secret_basic'], 'Basic', false],
    [['client_secret_post'], '', true],
  ])('authenticates by %s', async (methods, header, inBody) => {
    const world = new World()
    world.metadata['token_endpoint_auth_methods_supported'] = methods
    const id = 'a-b c'
    await world.request(world.authorizer({ client: { id, secret: 's:%/é' } }))
    const { headers, body } = world.to(TOKEN)[0] ?? { headers: new Headers(), body: '' }
    const basic = `Basic ${btoa('a-b+c:s%3A%25%2F%C3%A9')}`
    expect(headers.get('authorization') ?? '').toBe(header === '' ? '' : basic)
    expect(new URLSearchParams(body).get('client_secret')).toBe(inBody ? 's:%/é' : null)
  })
})

/** What a browser would be redirected to. */
async function callbackFor(world: World, url: string): Promise<string> {
  const asked = new URL(url).searchParams
  world.authorizations.push(asked)
  return await Promise.resolve(world.callback(asked))
}

describe('begin and finish', () => {
  it('without a way to authorize, a request is rejected with the URL', async () => {
    const world = new World()
    const store = memoryTokenStore()
    const options = { fetch: world.fetch, store, redirectUri: REDIRECT }
    const error: unknown = await world.request(oauth(options)).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AuthorizationRequiredError)
    const { url = '', code } = error as AuthorizationRequiredError
    expect(code).toBe('AUTHORIZATION_REQUIRED')
    // The page was reloaded: only the store is left.
    const later = oauth(options)
    await later.finish(await callbackFor(world, url))
    expect(await world.request(later)).toBe(200)
  })

  it('a callback is accepted once', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    const callback = await callbackFor(world, await authorizer.begin(SERVER))
    await authorizer.finish(callback)
    await expect(authorizer.finish(callback)).rejects.toThrow(/already used/)
    await expect(authorizer.finish(`${REDIRECT}?code=x&state=unknown`)).rejects.toThrow(
      /No pending authorization/,
    )
  })

  it('a callback is accepted once, also by two pages at the same time', async () => {
    const world = new World()
    const values = new Map<string, string>()
    // As asynchronous as IndexedDB, and without exclusive access.
    const later = () => new Promise((resolve) => setImmediate(resolve))
    const store: TokenStore = {
      get: (key) => later().then(() => values.get(key)),
      set: (key, value) => later().then(() => void values.set(key, value)),
      delete: (key) => later().then(() => void values.delete(key)),
    }
    const authorizer = world.authorizer({ store })
    const callback = await callbackFor(world, await authorizer.begin(SERVER))
    const outcomes = await Promise.allSettled([1, 2].map(() => authorizer.finish(callback)))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect(world.to(TOKEN).length).toBe(1)
  })

  it.each([
    ['before a request of the other one', false],
    ['after a request of the other one', true],
  ])('stores the tokens for the server of the callback, %s', async (_case, isBound) => {
    const world = new World()
    const store = sharedStore()
    const other = 'https://mcp.example/other'
    const metadata = 'https://mcp.example/.well-known/oauth-protected-resource/other'
    world.routes.set(`GET ${metadata}`, () => json({ ...world.resource, resource: other }))
    world.routes.set(`POST ${other}`, ({ headers }) => world.accept(headers))
    // One page receives the callbacks of all servers.
    const page = oauth({ fetch: world.fetch, store, redirectUri: REDIRECT })
    if (isBound) await expect(world.request(page)).rejects.toThrow(AuthorizationRequiredError)
    await page.finish(await callbackFor(world, await page.begin(other)))
    expect([...store.values.keys()].filter((key) => key.startsWith('server '))).toEqual([
      `server ${other}`,
    ])
    await expect(world.request(page)).rejects.toThrow(AuthorizationRequiredError)
    expect(world.to(SERVER).every(({ headers }) => !headers.has('authorization'))).toBe(true)
    // Nor does a logout of one server log out of the other.
    await page.logout(SERVER)
    const another = oauth({ fetch: world.fetch, store, redirectUri: REDIRECT })
    expect(await world.request(another, other)).toBe(200)
  })

  it('a callback of a second authorization ends the first', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    const first = await callbackFor(world, await authorizer.begin(SERVER))
    await authorizer.begin(SERVER)
    await expect(authorizer.finish(first)).rejects.toThrow(/No pending authorization/)
  })

  it('a callback after more than an hour is refused', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    const callback = await callbackFor(world, await authorizer.begin(SERVER))
    pass(3_700_000)
    await expect(authorizer.finish(callback)).rejects.toThrow(/more than an hour ago/)
  })

  it('without a redirect URI, the error has no URL', async () => {
    const world = new World()
    const request = world.request(oauth({ fetch: world.fetch }))
    await expect(request).rejects.toMatchObject({
      name: 'AuthorizationRequiredError',
      url: undefined,
    })
  })
})

describe('refreshing', () => {
  /** A world with a token that has expired. */
  async function expired(store: TokenStore = memoryTokenStore()) {
    const world = new World()
    world.tokens = { refresh_token: `${SECRET}-refresh-1`, expires_in: 60 }
    const authorizer = world.authorizer({ store })
    await world.request(authorizer)
    pass(61_000)
    world.tokens = { expires_in: 3600 }
    return { world, authorizer, store }
  }
  const refreshes = (world: World) =>
    grants(world).filter((grant) => grant === 'refresh_token').length

  it('happens before the token expires, once for many requests', async () => {
    const { world, authorizer } = await expired()
    await Promise.all(Array.from({ length: 10 }, () => world.request(authorizer)))
    expect(refreshes(world)).toBe(1)
    expect(world.authorizations.length).toBe(1)
  })

  it('a token with a short life is used before it is renewed', async () => {
    const world = new World()
    world.tokens = { refresh_token: 'r', expires_in: 10 }
    const authorizer = world.authorizer()
    await world.request(authorizer)
    await world.request(authorizer)
    expect(refreshes(world)).toBe(0)
  })

  it('a token that still works is used if the authorization server does not', async () => {
    const { world, authorizer } = await expired()
    await world.request(authorizer)
    pass(3_580_000)
    world.routes.set(`POST ${TOKEN}`, () => json({}, 503))
    expect(await world.request(authorizer)).toBe(200)
  })

  it('happens once for several processes', async () => {
    const store = sharedStore()
    const { world } = await expired(store)
    const processes = [1, 2, 3].map(() => world.request(world.authorizer({ store })))
    expect(await Promise.all(processes)).toEqual([200, 200, 200])
    expect(refreshes(world)).toBe(1)
  })

  it('happens after 401', async () => {
    const world = new World()
    world.tokens = { refresh_token: `${SECRET}-refresh` }
    const store = memoryTokenStore()
    await world.request(world.authorizer({ store }))
    world.valid.clear()
    expect(await world.request(world.authorizer({ store }))).toBe(200)
    expect(refreshes(world)).toBe(1)
    expect(world.authorizations.length).toBe(1)
  })

  it('uses new tokens that could not be stored', async () => {
    const store = sharedStore()
    const { world, authorizer } = await expired(store)
    world.tokens = { refresh_token: `${SECRET}-refresh-2`, expires_in: 3600 }
    const { set } = store
    store.set = () => {
      throw new Error('the disk is full')
    }
    await expect(world.request(authorizer)).rejects.toThrow('the disk is full')
    store.set = set
    expect(await world.request(authorizer)).toBe(200)
    expect(refreshes(world)).toBe(1)
  })

  it('keeps the old refresh token if there is no new one', async () => {
    const { world, authorizer, store } = await expired()
    await world.request(authorizer)
    pass(3_600_000)
    await world.request(world.authorizer({ store }))
    const sent = world.to(TOKEN).map(({ body }) => new URLSearchParams(body).get('refresh_token'))
    expect(sent.slice(1)).toEqual([`${SECRET}-refresh-1`, `${SECRET}-refresh-1`])
  })

  it('invalid_grant leads to a new authorization', async () => {
    const { world, authorizer } = await expired()
    world.valid.clear()
    const issue = world.routes.get(`POST ${TOKEN}`)
    world.routes.set(`POST ${TOKEN}`, (seen) =>
      seen.body.includes('refresh_token=')
        ? json({ error: 'invalid_grant' }, 400)
        : (issue?.(seen) ?? json({})),
    )
    expect(await world.request(authorizer)).toBe(200)
    expect(world.authorizations.length).toBe(2)
  })

  it('invalid_grant: uses what another process has stored in the meantime', async () => {
    const store = sharedStore()
    const { world, authorizer } = await expired(store)
    world.routes.set(`POST ${TOKEN}`, () => {
      // Another process, which has no lock, was faster.
      const key = [...store.values.keys()].find((name) => name.startsWith('tokens ')) ?? ''
      const record = JSON.parse(store.values.get(key) ?? '{}') as object
      world.valid.add('theirs')
      store.values.set(
        key,
        JSON.stringify({ ...record, accessToken: 'theirs', expires: undefined }),
      )
      return json({ error: 'invalid_grant' }, 400)
    })
    expect(await world.request(authorizer)).toBe(200)
    expect(world.authorizations.length).toBe(1)
  })

  it.each([500, 502, 429])('HTTP %s discards nothing', async (status) => {
    const store = sharedStore()
    const { world, authorizer } = await expired(store)
    const before = [...store.values.values()]
    world.valid.clear()
    world.routes.set(`POST ${TOKEN}`, () => json({ error: 'invalid_grant' }, status))
    await expect(world.request(authorizer)).rejects.toThrow(`HTTP ${status}`)
    expect([...store.values.values()]).toEqual(before)
    expect(world.authorizations.length).toBe(1)
  })

  it('invalid_client drops the registration too', async () => {
    const { world, authorizer } = await expired()
    world.valid.clear()
    const issue = world.routes.get(`POST ${TOKEN}`)
    world.routes.set(`POST ${TOKEN}`, (seen) =>
      seen.body.includes('refresh_token=')
        ? json({ error: 'invalid_client' }, 401)
        : (issue?.(seen) ?? json({})),
    )
    expect(await world.request(authorizer)).toBe(200)
    expect(world.to(`${ISSUER}/register`).length).toBe(2)
  })
})

describe('another authorization server', () => {
  function move(world: World): void {
    const issuer = 'https://new.example'
    world.valid.clear()
    world.resource['authorization_servers'] = [issuer]
    const metadata = Object.fromEntries(
      Object.entries(world.metadata).map(([name, value]) => [
        name,
        typeof value === 'string' ? value.replace(ISSUER, issuer) : value,
      ]),
    )
    world.routes.set(`GET ${issuer}/.well-known/oauth-authorization-server`, () => json(metadata))
    world.routes.set(`POST ${issuer}/register`, () => json({ client_id: 'new' }, 201))
    world.routes.set(`POST ${issuer}/token`, (seen) => world.issue(seen))
    const before = world.callback
    world.callback = (asked) =>
      before(asked).replace(encodeURIComponent(ISSUER), encodeURIComponent(issuer))
  }

  it('gets a new registration, and nothing of the old one', async () => {
    const world = new World()
    world.tokens = { refresh_token: `${SECRET}-refresh` }
    const store = sharedStore()
    const authorizer = world.authorizer({ store })
    await world.request(authorizer)
    move(world)
    expect(await world.request(authorizer)).toBe(200)
    expect(world.authorizations[1]?.get('client_id')).toBe('new')
    const sent = world.seen
      .filter(({ url }) => url.startsWith('https://new.example'))
      .map(({ body }) => body)
    expect(sent.join('\n')).not.toContain('registered')
    expect(sent.join('\n')).not.toContain('refresh_token=')
    expect([...store.values.keys()].filter((key) => key.includes(ISSUER))).toEqual([])
  })

  it('does not get the credentials of a configured client', async () => {
    const world = new World()
    const authorizer = world.authorizer({ client: { id: 'mine', secret: SECRET } })
    await world.request(authorizer)
    move(world)
    await expect(world.request(authorizer)).rejects.toThrow(
      /has moved from .* Register the client there/,
    )
    expect(world.to('https://new.example/token')).toEqual([])
  })

  it('does not get them after the tokens became invalid, nor by begin and finish', async () => {
    const world = new World()
    world.tokens = { refresh_token: `${SECRET}-refresh`, expires_in: 60 }
    const store = sharedStore()
    const options = { client: { id: 'mine', secret: SECRET }, store }
    await world.request(world.authorizer(options))
    pass(61_000)
    world.valid.clear()
    world.routes.set(`POST ${TOKEN}`, () => json({ error: 'invalid_grant' }, 400))
    const reader = oauth({ fetch: world.fetch, ...options })
    await expect(world.request(reader)).rejects.toBeInstanceOf(AuthorizationRequiredError)
    expect([...store.values.keys()].filter((key) => key.startsWith('tokens'))).toEqual([])
    move(world)
    await expect(world.request(world.authorizer(options))).rejects.toThrow(/has moved from/)
    await expect(world.authorizer(options).begin(SERVER)).rejects.toThrow(/has moved from/)
    expect(world.seen.map(({ url }) => url)).not.toContain('https://new.example/token')
  })
})

describe('grants without a user', () => {
  it('client credentials: gets a new token when the old one expires', async () => {
    const world = new World()
    world.tokens = { expires_in: 60 }
    const authorizer = world.authorizer({
      client: { id: 'service', secret: 's' },
      grant: clientCredentials(),
    })
    await world.request(authorizer)
    await world.request(authorizer)
    pass(57_000)
    await world.request(authorizer)
    expect(grants(world)).toEqual(['client_credentials', 'client_credentials'])
    expect(new URLSearchParams(world.to(TOKEN)[0]?.body).get('resource')).toBe(SERVER)
  })

  it('JWT bearer: no second attempt after a failure', async () => {
    const world = new World()
    world.routes.set(`POST ${TOKEN}`, () => json({ error: 'invalid_grant' }, 400))
    const asked: unknown[] = []
    const grant = jwtBearer((request) => {
      asked.push(request)
      return 'a.b.c'
    })
    const authorizer = world.authorizer({ client: { id: 'workload' }, grant })
    await expect(world.request(authorizer)).rejects.toBeInstanceOf(AuthorizationError)
    expect(asked).toEqual([{ issuer: ISSUER, resource: SERVER, scopes: ['notes:read'] }])
    expect(grants(world).length).toBe(1)
  })

  it('a key that is not PKCS #8 is not repeated in the error', async () => {
    const world = new World()
    const key = { key: `-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----` }
    const authorizer = world.authorizer({ client: { id: 'a', key }, grant: clientCredentials() })
    await expect(world.request(authorizer)).rejects.toThrow(
      /^"client.key" is not a PKCS #8 private key/,
    )
  })
})

describe('logout', () => {
  it('revokes the refresh token and forgets everything', async () => {
    const world = new World()
    world.metadata['revocation_endpoint'] = `${ISSUER}/revoke`
    world.tokens = { refresh_token: `${SECRET}-refresh` }
    world.routes.set(`POST ${ISSUER}/revoke`, () => new Response(null, { status: 200 }))
    const store = sharedStore()
    const authorizer = world.authorizer({ store })
    await world.request(authorizer)
    await authorizer.logout(SERVER)
    expect(store.values.size).toBe(0)
    expect(new URLSearchParams(world.to(`${ISSUER}/revoke`)[0]?.body).get('token')).toBe(
      `${SECRET}-refresh`,
    )
  })
})

describe('logout while the tokens are refreshed', () => {
  it('forgets and revokes the new ones', async () => {
    const world = new World()
    world.metadata['revocation_endpoint'] = `${ISSUER}/revoke`
    world.routes.set(`POST ${ISSUER}/revoke`, () => new Response(null, { status: 200 }))
    world.tokens = { refresh_token: `${SECRET}-refresh-1`, expires_in: 60 }
    const store = sharedStore()
    const authorizer = world.authorizer({ store })
    await world.request(authorizer)
    pass(61_000)
    world.tokens = { refresh_token: `${SECRET}-refresh-2`, expires_in: 3600 }
    const other = world.authorizer({ store })
    let logout: Promise<void> | undefined
    world.routes.set(`POST ${TOKEN}`, async (seen) => {
      logout = other.logout(SERVER)
      // Without exclusive access, it would be done before the new tokens are here.
      await new Promise((resolve) => setImmediate(resolve))
      return world.issue(seen)
    })
    expect(await world.request(authorizer)).toBe(200)
    await logout
    expect([...store.values.keys()]).toEqual([])
    expect(new URLSearchParams(world.to(`${ISSUER}/revoke`)[0]?.body).get('token')).toBe(
      `${SECRET}-refresh-2`,
    )
  })

  it('also forgets a server whose record is not valid', async () => {
    const store = sharedStore()
    store.values.set(`server ${SERVER}`, '{}')
    await oauth({ store }).logout(SERVER)
    expect(store.values.size).toBe(0)
  })
})

describe('a server that repeats the token in its error', () => {
  it('does not get it into an error of ours', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    await world.request(authorizer)
    world.mcp = ({ headers }) =>
      new Response(`{"error":"invalid ${headers.get('authorization')}"}`, { status: 400 })
    const send = withAuthorization(webRequest(world.fetch), authorizer)
    const { signal } = new AbortController()
    const url = new URL(SERVER)
    const request = {
      method: 'POST',
      url,
      headers: {},
      body: '',
      signal,
      background: false,
    } as const
    const response = await send(request)
    let text = ''
    for await (const chunk of response.body) text += new TextDecoder().decode(chunk)
    expect(text).toBe('{"error":"invalid Bearer [token]"}')
  })
})

describe('a document or a challenge that repeats the token', () => {
  it.each([
    ['the URL of the metadata', 'resource_metadata="TOKEN"'],
    ['a URL of another scheme', 'resource_metadata="TOKEN://x"'],
    ['an escaped URL', 'resource_metadata="T\\OKEN"'],
  ])('does not get it into an error: %s', async (_case, parameter) => {
    const world = new World()
    const authorizer = world.authorizer()
    await world.request(authorizer)
    const [token = ''] = world.valid
    world.challenge = `Bearer ${parameter.replace('TOKEN', token).replace('T\\OKEN', `\\${token}`)}`
    world.mcp = () => world.accept(new Headers())
    const error: unknown = await world.request(authorizer).catch((thrown: unknown) => thrown)
    expect(String(error)).toContain('[token]')
    expect(String(error)).not.toContain(token)
  })
})

describe('a store that fails', () => {
  it('fails the request, and not the next one', async () => {
    const world = new World()
    const store = memoryTokenStore()
    let fails = true
    const get = (key: string) => {
      if (fails) throw new Error('disk')
      return store.get(key)
    }
    const authorizer = world.authorizer({ store: { ...store, get } })
    await expect(world.request(authorizer)).rejects.toThrow('disk')
    fails = false
    expect(await world.request(authorizer)).toBe(200)
  })
})

describe('options', () => {
  it.each([
    [{ redirectURI: 'x' }, /redirectURI/],
    [{ authorize: () => Promise.resolve('') }, /"authorize" needs "redirectUri"/],
    [{ redirectUri: 'http://app.example/callback' }, /must be an https URL/],
    [{ redirectUri: 'app:/callback' }, /must be an https URL/],
    [{ client: { secret: 'x' } }, /"client.secret" needs "client.id"/],
    [{ client: { metadataUrl: 'https://app.example' } }, /https URL with a path/],
    [{ grant: clientCredentials() }, /"grant" needs "client.id"/],
    [{ timeout: 0 }, /"timeout"/],
  ])('%o is refused', (options, message) => {
    expect(() => oauth(options as Parameters<typeof oauth>[0])).toThrow(message)
  })
})
