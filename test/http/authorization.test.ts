import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import { SignJWT, UnsecuredJWT, exportJWK, exportSPKI, generateKeyPair } from 'jose'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { type TokenVerifier, type StaticToken, oauth, tokens } from '../../src/http.js'
import {
  RpcError,
  type Server,
  createServer,
  form,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import { connectInMemory } from '../../src/testing.js'
import { type AuthorizationServer, startAuthorizationServer } from './authorization-server.js'
import { proves } from '../requirements/proves.js'
import {
  type Answer,
  InitializedSession,
  POST,
  type Sending,
  type Stream,
  statelessRequest,
  message,
  open,
  send,
  serving,
} from './caller.js'

const RESOURCE = 'http://localhost/mcp'
const ALICE = 'alice-0123456789abcdef'
const BOB = 'bob-0123456789abcdef'

function guarded(): Server {
  return createServer({
    name: 'guarded',
    version: '1',
    tools: [
      tool({
        name: 'whoami',
        run: (_, call) =>
          `${call.client.principal?.id ?? 'nobody'}: ${call.client.principal?.scopes.join(' ') ?? ''}`,
      }),
      tool({ name: 'write', scopes: ['notes:write'], run: () => 'written' }),
      tool({ name: 'both', scopes: ['notes:read', 'notes:write'], run: () => 'both' }),
      tool({
        name: 'hidden',
        visible: ({ principal }) => principal?.scopes.includes('admin') === true,
        run: () => 'seen',
      }),
      tool({
        name: 'mirrored',
        visible: ({ principal }) => principal?.scopes.includes('admin') === true,
        input: {
          type: 'object',
          properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
        },
        run: () => 'seen',
      }),
      tool({
        name: 'ask',
        async run(_, call) {
          const schema = {
            type: 'object',
            properties: { ok: { type: 'boolean' } },
            required: ['ok'],
          } as const
          const { sure } = await call.ask({ sure: form({ message: 'Sure?', schema }) })
          return `sure: ${sure.ok}`
        },
      }),
    ],
    resources: [
      resource({ uri: 'note://secret', scopes: ['notes:read'], read: () => 'secret' }),
      resource({
        uri: 'notes://{name}',
        scopes: ['notes:write'],
        complete: { name: () => ['secret name'] },
        read: () => 'x',
      }),
      resource({
        uri: 'note://hidden',
        visible: ({ principal }) => principal?.id === 'bob',
        read: () => 'hidden',
      }),
    ],
    prompts: [
      prompt({ name: 'secret', scopes: ['notes:read'], build: () => 'secret' }),
      prompt({
        name: 'named',
        scopes: ['notes:write'],
        arguments: { who: { values: ['secret name'] } },
        build: () => 'x',
      }),
    ],
  })
}

/** https://datatracker.ietf.org/doc/html/rfc6750#section-3: what is quoted has no quotes in it. */
const CHALLENGE = /^Bearer(?: [a-z_]+="[^"\\]*"(?:, [a-z_]+="[^"\\]*")*)?$/

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const as = (token: string, sending: Sending): Sending => ({
  ...sending,
  headers: { ...(sending.headers as object), ...bearer(token) },
})
const call = (name: string, more: object = {}) =>
  statelessRequest('tools/call', { name, arguments: {}, ...more })
const textOf = ({ json }: Answer) =>
  (json as { result: { content: { text: string }[] } }).result.content[0]?.text

describe('a list of tokens', () => {
  const auth = tokens([
    { token: ALICE, id: 'alice', scopes: ['notes:read'] },
    { token: BOB, id: 'bob' },
  ])

  it('admits a caller with a known token, and gives its principal to handlers', async () => {
    proves('base.auth')
    await serving(guarded(), { auth }, async ({ url }) => {
      expect(textOf(await send(url, as(ALICE, call('whoami'))))).toBe('alice: notes:read')
      expect(textOf(await send(url, as(BOB, call('whoami'))))).toBe('bob: ')
      expect(
        (
          await send(url, {
            ...call('whoami'),
            headers: { ...(call('whoami').headers as object), authorization: `bearer  ${BOB} ` },
          })
        ).status,
      ).toBe(200)
    })
  })

  it.each<[string, Record<string, string>]>([
    ['no token', {}],
    ['another token', bearer('mallory-0123456789abcdef')],
    ['nearly the token', bearer(ALICE.slice(0, -1))],
    ['more than the token', bearer(`${ALICE}x`)],
    ['an empty token', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: `Basic ${ALICE}` }],
    ['a token with spaces', { authorization: `Bearer ${ALICE} ${BOB}` }],
  ])('responds with 401 to %s', async (_, headers) => {
    proves('auth.401', 'auth.validate', 'auth.validate-first', 'auth.statuses')
    await serving(guarded(), { auth }, async ({ url }) => {
      const {
        status,
        headers: answered,
        json,
      } = await send(url, {
        ...call('whoami'),
        headers: { ...(call('whoami').headers as object), ...headers },
      })
      expect([status, json]).toMatchObject([401, { error: { code: 401 } }])
      expect(answered['www-authenticate']).toMatch(CHALLENGE)
      for (const method of ['GET', 'DELETE', 'PUT'])
        expect((await send(url, { method, headers })).status).toBe(401)
      // In the address a token is not looked for.
      expect((await send(`${url}?access_token=${ALICE}`, call('whoami'))).status).toBe(401)
    })
  })

  it.each([
    { token: 'short', id: 'x' },
    { token: 'has spaces in it, and so on', id: 'x' },
    { token: ALICE, id: '' },
    { token: ALICE, id: 'x', scopes: 'notes:read' },
    { token: ALICE, id: 'x', scopes: [1] },
  ])('must be good: %j', (each) => {
    expect(() => tokens([each as StaticToken])).toThrow(TypeError)
  })
})

describe('a slow verification', () => {
  it('retains nothing after its client has disconnected', async () => {
    const waiting: (() => void)[] = []
    const principal = { id: 'x', scopes: [] }
    let slow = false
    const auth = {
      verify: () =>
        slow
          ? new Promise<typeof principal>((resolve) => waiting.push(() => resolve(principal)))
          : principal,
    }
    await serving(guarded(), { auth }, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25', {}, bearer(ALICE))
      slow = true
      const controller = new AbortController()
      const gone = fetch(listening.url, {
        headers: { accept: 'text/event-stream', ...client.headers },
        signal: controller.signal,
      })
      const refused = expect(gone).rejects.toThrow()
      await expect.poll(() => waiting.length).toBe(1)
      controller.abort()
      await refused
      // One that comes later is served: by then the server has heard that the other has gone.
      slow = false
      expect((await client.request('ping')).status).toBe(200)
      for (const resolve of waiting) resolve()
      await expect.poll(() => listening.openResponses).toBe(0)
      const own = await client.listen()
      expect(own.status).toBe(200)
      own.disconnect()
    })
  })
})

describe('an TokenVerifier of your own', () => {
  // What a compiler would have told: not everybody has one.
  const of = (found: unknown) => ({ verify: () => found }) as unknown as TokenVerifier
  const thenable = (found: unknown) => ({
    then: (resolve: (value: unknown) => void) => resolve(found),
  })

  it.each([undefined, null, false, ''])(
    'responds with 401 where verify returns %j',
    async (found) => {
      for (const auth of [of(found), of(Promise.resolve(found)), of(thenable(found))])
        await serving(guarded(), { auth }, async ({ url }) => {
          expect((await send(url, as(ALICE, call('whoami')))).status).toBe(401)
        })
    },
  )

  it.each([true, {}, { id: '', scopes: [] }, { id: 'x' }, { id: 'x', scopes: 'admin' }])(
    'that finds no principal (%j) lets nobody in',
    async (found) => {
      for (const auth of [of(found), of(Promise.resolve(found)), of(thenable(found))])
        await serving(guarded(), { auth }, async ({ url }) => {
          expect((await send(url, as(ALICE, call('whoami')))).status).toBe(503)
        })
    },
  )

  const alice = { id: 'alice', scopes: [] }
  const seconds = Math.floor(Date.now() / 1000)

  it.each<[string, () => unknown]>([
    ['a principal that has expired', () => ({ ...alice, expires: Date.now() - 1 })],
    ['a principal that expires now', () => ({ ...alice, expires: Date.now() })],
    ['a principal that expired in 1970', () => ({ ...alice, expires: 0 })],
    [
      'an error of the official SDK 1.x',
      () => {
        throw new InvalidTokenError('bad')
      },
    ],
    [
      'an error of the official SDK 2.x',
      () => {
        throw Object.assign(new Error('bad'), { code: 'invalid_token' })
      },
    ],
  ])('responds with 401 where verify returns or throws %s', async (_, found) => {
    const log: string[] = []
    const write = (line: string) => log.push(line)
    const later = async () => await found()
    for (const verify of [found, later] as TokenVerifier['verify'][])
      await serving(guarded(), { auth: { verify }, log: { write } }, async ({ url }) => {
        const { status, headers, json } = await send(url, as(ALICE, call('whoami')))
        expect([status, headers['www-authenticate'], json]).toEqual([
          401,
          'Bearer error="invalid_token", error_description="the token is invalid, expired or not for this server"',
          expect.objectContaining({ error: expect.objectContaining({ code: 401 }) as unknown }),
        ])
      })
    expect(log).toEqual([])
  })

  it.each([
    { expires: seconds + 3600 },
    { expires: seconds - 3600 },
    { expires: String(Date.now() + 60_000) },
    { expires: Number.NaN },
    { expires: new Date(Date.now() + 60_000) },
    { expires: null },
    { expiresAt: seconds + 3600 },
  ])('responds with 503 where verify returns a principal with %o, and logs why', async (times) => {
    const log: string[] = []
    const write = (line: string) => log.push(line)
    await serving(
      guarded(),
      { auth: of({ ...alice, ...times }), log: { write } },
      async ({ url }) => {
        expect((await send(url, as(ALICE, call('whoami')))).status).toBe(503)
      },
    )
    expect(log.join('')).toContain(
      String.raw`\"verify\" must return a principal whose \"expires\", if it has one, is a number of milliseconds since 1970`,
    )
  })

  it.each([{ expires: Infinity }, { expires: Date.now() + 600_000, expiresAt: seconds + 600 }])(
    'admits a principal with %o',
    async (times) => {
      await serving(guarded(), { auth: of({ ...alice, ...times }) }, async ({ url }) => {
        expect((await send(url, as(ALICE, call('whoami')))).status).toBe(200)
      })
    },
  )

  it('responds with 503 where verify throws another error', async () => {
    const unreadable = Object.defineProperty(new Error('odd'), 'code', {
      get() {
        throw new Error('no')
      },
    })
    const others = [new Error('invalid_token'), { code: 'ECONNREFUSED' }, null, 'no', unreadable]
    for (const thrown of others) {
      const verify = () => {
        throw thrown
      }
      await serving(guarded(), { auth: { verify } }, async ({ url }) => {
        expect((await send(url, as(ALICE, call('whoami')))).status).toBe(503)
      })
    }
  })

  it('ends the use of a session whose principal has expired', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const expires = Date.now() + 60_000
      await serving(guarded(), { auth: of({ ...alice, expires }) }, async ({ url }) => {
        const client = await InitializedSession.open(url, '2025-11-25', {}, bearer(ALICE))
        vi.setSystemTime(expires)
        expect((await client.listen()).status).toBe(401)
        expect((await client.post(message('ping', undefined, 9))).status).toBe(401)
      })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('scopes of definitions', () => {
  const auth = tokens([
    { token: ALICE, id: 'alice', scopes: ['notes:read'] },
    { token: BOB, id: 'bob', scopes: ['notes:read', 'notes:write', 'admin'] },
  ])

  it('get 403 with all required scopes in the challenge', async () => {
    proves('auth.insufficient-scope', 'auth.single-challenge', 'auth.statuses')
    await serving(guarded(), { auth }, async ({ url }) => {
      const { status, headers, json } = await send(url, as(ALICE, call('both')))
      expect(status).toBe(403)
      expect(headers['www-authenticate']).toBe(
        'Bearer error="insufficient_scope", scope="notes:read notes:write"',
      )
      expect(json).toMatchObject({
        id: 1,
        error: { code: 403, data: { requiredScopes: ['notes:read', 'notes:write'] } },
      })
      expect(textOf(await send(url, as(BOB, call('both'))))).toBe('both')
      expect(
        (await send(url, as(ALICE, statelessRequest('resources/read', { uri: 'note://secret' }))))
          .status,
      ).toBe(200)
      expect(
        (await send(url, as(ALICE, statelessRequest('prompts/get', { name: 'secret' })))).status,
      ).toBe(200)
    })
  })

  it('are required within a session as well', async () => {
    await serving(guarded(), { auth }, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25', {}, bearer(ALICE))
      const { status, headers } = await client.request('tools/call', { name: 'write' })
      expect([status, headers['www-authenticate']]).toEqual([
        403,
        'Bearer error="insufficient_scope", scope="notes:write"',
      ])
    })
  })

  it.each([
    undefined,
    null,
    'x',
    { requiredScopes: 'admin' },
    { requiredScopes: ['a"b', 'c\r\nd', 1] },
  ])('are what an error of a handler may speak of in other words: %j', async (data) => {
    const refusing = createServer({
      name: 'refusing',
      version: '1',
      tools: [
        tool({
          name: 'refuse',
          run: () => {
            throw new RpcError(403, 'Not for you', data)
          },
        }),
      ],
    })
    await serving(refusing, { auth }, async (listening) => {
      const { status, json, headers } = await send(listening.url, as(ALICE, call('refuse')))
      expect([status, json]).toMatchObject([403, { error: { code: 403, message: 'Not for you' } }])
      expect(headers['www-authenticate']).toBe('Bearer error="insufficient_scope"')
      expect(listening.openResponses).toBe(0)
    })
  })

  it.each([
    { type: 'ref/prompt', name: 'named', argument: 'who' },
    { type: 'ref/resource', uri: 'notes://{name}', argument: 'name' },
  ])('are asked for if something is completed: $type', async ({ argument, ...ref }) => {
    await serving(guarded(), { auth }, async ({ url }) => {
      const asked = statelessRequest('completion/complete', {
        ref,
        argument: { name: argument, value: '' },
      })
      const { status, text } = await send(url, as(ALICE, asked))
      expect([status, text.includes('secret name')]).toEqual([403, false])
      expect((await send(url, as(BOB, asked))).json).toMatchObject({
        result: { completion: { values: ['secret name'] } },
      })
    })
  })

  it('also decide who is notified of changes', async () => {
    const server = guarded()
    const nobody = 'nobody-0123456789abcdef'
    const known = tokens([
      { token: ALICE, id: 'alice', scopes: ['notes:read'] },
      { token: BOB, id: 'bob' },
      { token: nobody, id: 'nobody' },
    ])
    await serving(server, { auth: known }, async ({ url }) => {
      const uris = ['note://hidden', 'note://later']
      const listen = (resourceSubscriptions: string[]) =>
        statelessRequest('subscriptions/listen', { notifications: { resourceSubscriptions } })
      expect((await send(url, as(nobody, listen(['note://secret'])))).status).toBe(403)
      const streams = [
        await open(url, as(BOB, listen(uris))),
        await open(url, as(ALICE, listen(uris))),
      ]
      const sessions = []
      for (const token of [BOB, ALICE]) {
        const client = await InitializedSession.open(url, '2025-11-25', {}, bearer(token))
        for (const uri of uris)
          expect((await client.request('resources/subscribe', { uri })).json).toMatchObject({
            result: {},
          })
        const refused = await client.request('resources/subscribe', { uri: 'note://secret' })
        expect(refused.status).toBe(token === BOB ? 403 : 200)
        sessions.push(await client.listen())
      }
      server.updated('note://hidden')
      server.updated('note://later')
      const told = ({ text }: Stream) => text.includes('"uri":"note://hidden"')
      for (const stream of [...streams, ...sessions]) await stream.has('"uri":"note://later"')
      expect([...streams, ...sessions].map(told)).toEqual([true, false, true, false])
      for (const stream of [...streams, ...sessions]) stream.disconnect()
    })
  })

  it('also decide which header parameters are checked', async () => {
    await serving(guarded(), { auth }, async ({ url }) => {
      const { json: unknown } = await send(
        url,
        as(ALICE, call('mirrored', { arguments: { region: 'x' } })),
      )
      expect(unknown).toMatchObject({ error: { code: -32602, message: 'Unknown tool: mirrored' } })
      const { json: told } = await send(
        url,
        as(BOB, call('mirrored', { arguments: { region: 'x' } })),
      )
      expect(told).toMatchObject({
        error: { code: -32020, message: 'Header mismatch: the header Mcp-Param-Region is missing' },
      })
    })
  })

  it('can be used by visible', async () => {
    await serving(guarded(), { auth }, async ({ url }) => {
      const names = async (token: string) =>
        (await send(url, as(token, statelessRequest('tools/list')))).text
      expect(await names(ALICE)).not.toContain('hidden')
      expect(await names(BOB)).toContain('hidden')
      expect((await send(url, as(ALICE, call('hidden')))).json).toMatchObject({
        error: { code: -32602, message: 'Unknown tool: hidden' },
      })
    })
  })

  it('are never granted without auth', async () => {
    await serving(guarded(), {}, async ({ url }) => {
      expect(textOf(await send(url, call('whoami')))).toBe('nobody: ')
      for (const asked of [
        call('write'),
        statelessRequest('resources/read', { uri: 'note://secret' }),
        statelessRequest('prompts/get', { name: 'secret' }),
      ])
        expect((await send(url, asked)).status).toBe(403)
    })
  })

  it('do not apply over stdio and in memory', async () => {
    proves('auth.stdio')
    const channel = connectInMemory(guarded())
    const answer = await new Promise<string>((resolve) => {
      channel.receive({ frame: resolve, malformed: () => {}, closed: () => {} })
      channel.send(call('write').body as string)
    })
    expect(answer).toContain('written')
    await channel.close()
  })
})

describe('another principal', () => {
  const auth = tokens([
    { token: ALICE, id: 'alice' },
    { token: BOB, id: 'bob' },
  ])

  it('cannot use the session', async () => {
    await serving(guarded(), { auth }, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25', {}, bearer(ALICE))
      const stolen = { ...client.headers, ...bearer(BOB) }
      const tries: Sending[] = [
        { headers: { ...POST, ...stolen }, body: message('tools/call', { name: 'whoami' }, 1) },
        { method: 'GET', headers: { accept: 'text/event-stream', ...stolen } },
        {
          method: 'GET',
          headers: { accept: 'text/event-stream', 'last-event-id': 'g.0', ...stolen },
        },
        { method: 'DELETE', headers: stolen },
      ]
      for (const each of tries) expect((await send(listening.url, each)).status).toBe(404)
      expect(listening.sessions).toBe(1)
      expect(textOf(await client.request('tools/call', { name: 'whoami' }))).toBe('alice: ')
    })
  })

  it('cannot use the state of a question', async () => {
    proves(
      'elicitation.state',
      'elicitation.state-today',
      'elicitation.bind',
      'elicitation.identity',
    )
    await serving(guarded(), { auth }, async ({ url }) => {
      const able = { _meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } } }
      const first = await send(url, as(ALICE, call('ask', able)))
      const { requestState } = (first.json as { result: { requestState: string } }).result
      const retry = call('ask', {
        ...able,
        requestState,
        inputResponses: { sure: { action: 'accept', content: { ok: true } } },
      })
      expect((await send(url, as(BOB, retry))).json).toMatchObject({ error: { code: -32602 } })
      expect(textOf(await send(url, as(ALICE, retry)))).toBe('sure: true')
    })
  })
})

describe('oauth', () => {
  let server: AuthorizationServer
  beforeAll(async () => {
    server = await startAuthorizationServer()
  })
  afterAll(() => server.close())
  const auth = (more: object = {}) =>
    oauth({ resource: RESOURCE, issuer: server.issuer, scopes: ['notes:read'], ...more })

  it('lets a client discover the authorization server, and accepts its tokens', async () => {
    proves(
      'auth.http',
      'auth.resource-metadata-served',
      'auth.authorization-servers',
      'auth.challenge-metadata',
      'auth.challenge-scope',
    )
    await serving(
      guarded(),
      { auth: auth({ scopesSupported: ['notes:read', 'notes:write'] }) },
      async ({ url }) => {
        const first = await send(url, call('whoami'))
        expect(first.status).toBe(401)
        const challenge = String(first.headers['www-authenticate'])
        expect(challenge).toBe(
          'Bearer scope="notes:read", resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"',
        )
        const path = new URL(/resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '').pathname
        const { json } = await send(new URL(path, url).href, { method: 'GET', headers: {} })
        expect(json).toEqual({
          resource: RESOURCE,
          authorization_servers: [server.issuer],
          scopes_supported: ['notes:read', 'notes:write'],
          bearer_methods_supported: ['header'],
        })
        // Some look at the root.
        expect(
          (
            await send(new URL('/.well-known/oauth-protected-resource', url).href, {
              method: 'GET',
              headers: {},
            })
          ).json,
        ).toEqual(json)
        expect(
          (
            await send(new URL('/.well-known/oauth-authorization-server', url).href, {
              method: 'GET',
              headers: {},
            })
          ).status,
        ).toBe(404)
        const token = await server.token('alice', { resource: RESOURCE, scope: 'notes:read' })
        expect(textOf(await send(url, as(token, call('whoami'))))).toBe(
          `${server.issuer}#client alice: notes:read`,
        )
      },
    )
  })

  it('lets a client step up its scopes, also within a session', async () => {
    await serving(guarded(), { auth: auth() }, async ({ url }) => {
      const little = await server.token('alice', { resource: RESOURCE, scope: 'notes:read' })
      const more = await server.token('alice', {
        resource: RESOURCE,
        scope: 'notes:read notes:write',
      })
      const refused = await send(url, as(little, call('write')))
      expect(refused.status).toBe(403)
      expect(refused.headers['www-authenticate']).toBe(
        'Bearer error="insufficient_scope", scope="notes:read notes:write", resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"',
      )
      expect(textOf(await send(url, as(more, call('write'))))).toBe('written')
      const client = await InitializedSession.open(url, '2025-06-18', {}, bearer(little))
      expect((await client.request('tools/call', { name: 'write' })).status).toBe(403)
      expect(
        textOf(await client.post(message('tools/call', { name: 'write' }, 1), bearer(more))),
      ).toBe('written')
      expect((await client.request('tools/call', { name: 'write' })).status).toBe(403)
    })
  })

  it('requires the scopes of the whole server', async () => {
    proves('auth.scope-hierarchies')
    await serving(guarded(), { auth: auth() }, async ({ url }) => {
      const token = await server.token('alice', { resource: RESOURCE, scope: 'notes:write' })
      const { status, headers } = await send(url, as(token, call('whoami')))
      expect([status, headers['www-authenticate']]).toMatchObject([
        403,
        expect.stringContaining('error="insufficient_scope", scope="notes:read"'),
      ])
    })
    await serving(
      guarded(),
      { auth: auth({ impliedScopes: { admin: ['notes:write'], 'notes:write': ['notes:read'] } }) },
      async ({ url }) => {
        const token = await server.token('alice', { resource: RESOURCE, scope: 'admin' })
        expect(textOf(await send(url, as(token, call('both'))))).toBe('both')
      },
    )
  })

  it('rejects tokens of other issuers and for other audiences, and logs none', async () => {
    proves('auth.audience', 'auth.audience-only', 'auth.own-tokens', 'auth.validation-errors')
    const log: string[] = []
    const { privateKey, publicKey } = await generateKeyPair('RS256')
    const jwt = (claims: object) =>
      new SignJWT({ scope: 'notes:read', client_id: 'alice', ...claims })
    const signed = (claims: object) =>
      jwt(claims)
        .setSubject('alice')
        .setIssuer(server.issuer)
        .setAudience(RESOURCE)
        .setExpirationTime('1m')
    const good = await server.token('alice', { resource: RESOURCE, scope: 'notes:read' })
    const [head = '', body = '', signature = ''] = good.split('.')
    const changed = Buffer.from(
      JSON.stringify({
        ...(JSON.parse(Buffer.from(body, 'base64url').toString()) as object),
        scope: 'admin',
      }),
    ).toString('base64url')
    const bad: Record<string, string> = {
      'for another resource': await server.token('alice', {
        resource: 'http://localhost/other',
        scope: 'notes:read',
      }),
      'for a resource that begins alike': await server.token('alice', {
        resource: `${RESOURCE}/x`,
        scope: 'notes:read',
      }),
      'of another key': await signed({}).setProtectedHeader({ alg: 'RS256' }).sign(privateKey),
      'with our own key as a secret': await signed({})
        .setProtectedHeader({ alg: 'HS256' })
        .sign(new TextEncoder().encode(await exportSPKI(publicKey))),
      'without a signature': new UnsecuredJWT({ scope: 'notes:read' })
        .setSubject('alice')
        .setIssuer(server.issuer)
        .setAudience(RESOURCE)
        .setExpirationTime('1m')
        .encode(),
      'that was changed': `${head}.${changed}.${signature}`,
      'that was cut': `${head}.${body}.`,
      'that is no JWT': 'abcdefghijklmnop',
      'that is huge': `${'a'.repeat(6000)}.${'b'.repeat(6000)}.c`,
      'without anything': '..',
    }
    await serving(
      guarded(),
      { auth: auth(), log: { write: (line) => log.push(line) }, logLevel: 'debug' },
      async ({ url }) => {
        for (const [name, token] of Object.entries(bad)) {
          const { status, headers, text } = await send(url, as(token, call('whoami')))
          expect([name, status, String(headers['www-authenticate'])]).toMatchObject([
            name,
            401,
            expect.stringContaining('error="invalid_token"'),
          ])
          expect(text).not.toContain(token)
        }
        expect((await send(url, as(good, call('whoami')))).status).toBe(200)
        const all = log.join('')
        for (const token of [good, ...Object.values(bad)])
          if (token.length > 10) expect(all).not.toContain(token)
      },
    )
  })

  it('rejects an expired token', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const { exportJWK } = await import('jose')
    const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256', use: 'sig' }] }
    const { createServer: createHttp } = await import('node:http')
    const issuer = createHttp((_, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(keys)),
    )
    await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve))
    const { port } = issuer.address() as { port: number }
    const made = (expiry: string | undefined, subject: string | undefined) => {
      const token = new SignJWT({ scope: 'notes:read' })
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuer('https://as.example')
        .setAudience(RESOURCE)
      if (expiry !== undefined) token.setExpirationTime(expiry)
      if (subject !== undefined) token.setSubject(subject)
      return token.sign(privateKey)
    }
    const own = oauth({
      resource: RESOURCE,
      issuer: 'https://as.example',
      jwksUri: `http://127.0.0.1:${port}/keys`,
    })
    await serving(guarded(), { auth: own }, async ({ url }) => {
      // The last one is within the tolerance of clocks.
      for (const good of [await made('1m', 'alice'), await made('-1s', 'alice')])
        expect((await send(url, as(good, call('whoami')))).status).toBe(200)
      for (const bad of [
        await made('-1m', 'alice'),
        await made(undefined, 'alice'),
        await made('1m', undefined),
      ])
        expect((await send(url, as(bad, call('whoami')))).status).toBe(401)
    })
    await new Promise((resolve) => issuer.close(resolve))
  })

  it('reads scopes from scope and scp, as string or array', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256', use: 'sig' }] }
    const issuer = createHttpServer((_, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(keys)),
    )
    await once(issuer.listen(0, '127.0.0.1'), 'listening')
    const { port } = issuer.address() as AddressInfo
    const own = oauth({
      resource: RESOURCE,
      issuer: 'https://as.example',
      jwksUri: `http://127.0.0.1:${port}/keys`,
    })
    const granted = async (claims: Record<string, unknown>) => {
      const jwt = new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuer('https://as.example')
        .setAudience(RESOURCE)
      const principal = await own.verify(
        await jwt.setSubject('alice').setExpirationTime(4_000_000_000).sign(privateKey),
        { headers: {} },
      )
      expect(principal?.expires).toBe(4_000_000_000_000)
      return principal?.scopes
    }
    expect(await granted({ scp: 'a b' })).toEqual(['a', 'b'])
    expect(await granted({ scp: ['a', 'b', 7] })).toEqual(['a', 'b'])
    expect(await granted({ scope: ['a'], scp: 'b' })).toEqual(['a', 'b'])
    expect(await granted({ scope: 7, scp: { a: 1 } })).toEqual([])
    await new Promise((resolve) => issuer.close(resolve))
  })

  it('ends streams when the token expires', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const expires = Date.now() + 60_000
      const timed: TokenVerifier = {
        verify: (token) => (Date.now() < expires ? { id: token, scopes: [], expires } : undefined),
      }
      const server = guarded()
      await serving(server, { auth: timed, keepAlive: 10 }, async (listening) => {
        const { url } = listening
        const client = await InitializedSession.open(
          url,
          '2025-11-25',
          { elicitation: {} },
          bearer(ALICE),
        )
        const own = await client.listen()
        const listens = await open(
          url,
          as(
            ALICE,
            statelessRequest('subscriptions/listen', { notifications: { toolsListChanged: true } }),
          ),
        )
        const asked = await client.stream('tools/call', { name: 'ask' })
        await asked.has('elicitation/create')
        server.tools.disable('write')
        for (const stream of [own, listens]) await stream.has('notifications/tools/list_changed')
        vi.setSystemTime(expires)
        await Promise.all([own.ended(), listens.ended()])
        // It has its end in good order; and a call may end after its token.
        expect(listens.seen.at(-1)?.data).toContain('"result"')
        expect(asked.isOpen).toBe(true)
        expect((await client.listen()).status).toBe(401)
        asked.disconnect()
      })
    } finally {
      vi.useRealTimers()
    }
  })

  it('sends nothing after the token has expired, also without keep-alive', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const expires = Date.now() + 60_000
      const timed: TokenVerifier = { verify: (token) => ({ id: token, scopes: [], expires }) }
      const server = guarded()
      await serving(server, { auth: timed, keepAlive: 0 }, async ({ url }) => {
        const client = await InitializedSession.open(url, '2025-11-25', {}, bearer(ALICE))
        const own = await client.listen()
        const primed = await own.next()
        const listens = await open(
          url,
          as(
            ALICE,
            statelessRequest('subscriptions/listen', { notifications: { toolsListChanged: true } }),
          ),
        )
        await listens.has('notifications/subscriptions/acknowledged')
        vi.setSystemTime(expires)
        server.tools.disable('write')
        await Promise.all([own.ended(), listens.ended()])
        expect(own.text + listens.text).not.toContain('list_changed')
        expect(listens.seen.at(-1)?.data).toContain('"result"')
        // It is kept for a client that comes back with a new token.
        vi.setSystemTime(expires - 1)
        const again = await client.listen(primed?.id)
        expect(await again.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
        again.disconnect()
      })
    } finally {
      vi.useRealTimers()
    }
  })

  it('responds with 503 while the issuer is not available', async () => {
    const log: string[] = []
    const issuer = `http://127.0.0.1:${await freePort()}`
    const away = oauth({ resource: RESOURCE, issuer })
    await serving(
      guarded(),
      { auth: away, log: { write: (line) => log.push(line) } },
      async ({ url }) => {
        const token = await server.token('alice', { resource: RESOURCE, scope: 'notes:read' })
        const { status, headers } = await send(url, as(token, call('whoami')))
        expect([status, headers['retry-after']]).toEqual([503, '5'])
        expect(log.join('')).toContain('A token could not be verified')
        expect(log.join('')).toContain(`No metadata of the authorization server ${issuer}`)
        expect(log.join('')).toContain('ECONNREFUSED')
        expect(log.join('')).not.toContain(token)
      },
    )
  })

  it.each(['<html>', '[]', '{"keys":{}}', '{"keys":[1]}'])(
    'whose keys cannot be read is not the fault of the caller: %s',
    async (keys) => {
      const issuer = createHttpServer((_, response) => response.end(keys)).listen(0, '127.0.0.1')
      await once(issuer, 'listening')
      const { port } = issuer.address() as AddressInfo
      const broken = oauth({
        resource: RESOURCE,
        issuer: server.issuer,
        jwksUri: `http://127.0.0.1:${port}/keys`,
      })
      await serving(guarded(), { auth: broken }, async ({ url }) => {
        const token = await server.token('alice', { resource: RESOURCE, scope: 'notes:read' })
        expect((await send(url, as(token, call('whoami')))).status).toBe(503)
      })
      issuer.close()
      issuer.closeAllConnections()
    },
  )

  it.each<[string, number, Record<string, string>, string]>([
    ['nothing', 404, {}, ''],
    ['a failure', 500, {}, 'sorry'],
    ['a page', 200, { 'content-type': 'text/html' }, '<html>'],
    ['another place', 302, { location: '/login' }, ''],
    ['null', 200, {}, 'null'],
    ['metadata without keys', 200, {}, '{"issuer":"ISSUER"}'],
  ])(
    'is found by the next of its documents if the first is %s',
    async (_, status, headers, body) => {
      const asked: string[] = []
      const { privateKey, publicKey } = await generateKeyPair('RS256')
      const keys = JSON.stringify({
        keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'RS256' }],
      })
      const one = createHttpServer(({ url = '' }, response) => {
        asked.push(url)
        if (url === '/keys') return response.end(keys)
        if (url === '/.well-known/openid-configuration')
          return response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }))
        return response.writeHead(status, headers).end(body.replace('ISSUER', issuer))
      }).listen(0, '127.0.0.1')
      await once(one, 'listening')
      const issuer = `http://127.0.0.1:${(one.address() as AddressInfo).port}`
      await serving(guarded(), { auth: oauth({ resource: RESOURCE, issuer }) }, async ({ url }) => {
        const claims = new SignJWT({ iss: issuer, aud: RESOURCE, sub: 'carol' }).setExpirationTime(
          '1m',
        )
        const token = await claims.setProtectedHeader({ alg: 'RS256', kid: 'k' }).sign(privateKey)
        expect(textOf(await send(url, as(token, call('whoami'))))).toBe(`${issuer} carol: `)
      })
      expect(asked).toEqual([
        '/.well-known/oauth-authorization-server',
        '/.well-known/openid-configuration',
        '/keys',
      ])
      one.close()
      one.closeAllConnections()
    },
  )

  it('rejects invalid options', () => {
    expect(() => oauth({ resource: 'mcp', issuer: server.issuer })).toThrow(
      '"resource" must be a URL',
    )
    expect(() => oauth({ resource: RESOURCE, issuer: '' })).toThrow('"issuer" must be a URL')
    // Keys that come in the clear could be anybody's.
    for (const issuer of [
      'http://login.example.com',
      'http://127.0.0.1.example.com',
      'ftp://localhost',
    ])
      expect(() => oauth({ resource: RESOURCE, issuer })).toThrow('"issuer" must be an https URL')
    const jwksUri = 'http://login.example.com/keys'
    expect(() =>
      oauth({ resource: RESOURCE, issuer: 'https://login.example.com', jwksUri }),
    ).toThrow('"jwksUri" must be an https URL')
  })
})
