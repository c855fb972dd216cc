import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { clientCredentials } from '../../src/oauth.js'
import { type Authorizer, withAuthorization } from '../../src/transports/http/client/authorizer.js'
import type { SendRequest } from '../../src/transports/http/client/http-request.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import {
  STATELESS,
  event,
  inSession,
  json as sendJson,
  peerTo,
  result,
  scripted,
  stream,
} from '../http-client/scripted.js'
import { ISSUER, SERVER, World, json } from './world.js'
import { resolveOnly } from './names.js'

/* How often, and for which requests, a server may make the client ask its user to log in. */

resolveOnly()

/** Answers each token with 403 and a scope that nobody has heard of before. */
function greedy(world: World): void {
  let count = 0
  world.mcp = ({ headers }) => {
    const response = world.accept(headers)
    if (response.status !== 200) return response
    const text = `Bearer error="insufficient_scope", scope="scope:${count++}"`
    return new Response('', { status: 403, headers: { 'www-authenticate': text } })
  }
}

describe('a server that requires new scopes each time', () => {
  it('gets five logins in ten minutes, whatever the number of requests', async () => {
    const clock = vi.spyOn(performance, 'now')
    onTestFinished(() => clock.mockRestore())
    const at = (milliseconds: number) => void clock.mockReturnValue(milliseconds)
    const world = new World()
    greedy(world)
    const authorizer = world.authorizer()
    at(0)
    expect(await world.request(authorizer)).toBe(403)
    expect(world.authorizations).toHaveLength(3)
    at(60_000)
    for (let count = 0; count < 5; count++)
      await expect(world.request(authorizer)).rejects.toMatchObject({
        code: 'AUTHORIZATION_FAILED',
        executed: 'no',
        message:
          'The server has required 5 logins within 10 minutes; the user is not asked again until these have passed',
      })
    expect(world.authorizations).toHaveLength(5)
    at(599_999)
    await expect(world.request(authorizer)).rejects.toThrow('5 logins')
    // The first three have passed.
    at(600_000)
    expect(await world.request(authorizer)).toBe(403)
    expect(world.authorizations).toHaveLength(8)
    // Another client has its own limit.
    await world.request(world.authorizer())
    expect(world.authorizations).toHaveLength(11)
  })

  it('also if the user denies each', async () => {
    const world = new World()
    world.callback = (asked) =>
      `${asked.get('redirect_uri')}?error=access_denied&state=${asked.get('state')}`
    const authorizer = world.authorizer()
    const codes: unknown[] = []
    for (let count = 0; count < 7; count++)
      codes.push(await world.request(authorizer).catch((error: { code: unknown }) => error.code))
    expect(codes).toEqual([
      ...Array.from({ length: 5 }, () => 'AUTHORIZATION_DENIED'),
      'AUTHORIZATION_FAILED',
      'AUTHORIZATION_FAILED',
    ])
    expect(world.authorizations).toHaveLength(5)
  })

  it('gets another one if earlier ones failed before the user was asked', async () => {
    const world = new World()
    let status = 503
    world.routes.set(`POST ${ISSUER}/register`, () => json({ client_id: 'registered' }, status))
    const authorizer = world.authorizer()
    for (let count = 0; count < 6; count++)
      await expect(world.request(authorizer)).rejects.toThrow('registration')
    expect(world.authorizations).toEqual([])
    status = 201
    expect(await world.request(authorizer)).toBe(200)
    expect(world.authorizations).toHaveLength(1)
  })
})

const background = { background: true }

describe('a request that nobody waits for', () => {
  it('leads to no login after 401', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    expect(await world.request(authorizer, SERVER, background)).toBe(401)
    expect(world.authorizations).toEqual([])
    expect(await world.request(authorizer)).toBe(200)
  })

  it('leads to no login after 403', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    await world.request(authorizer)
    greedy(world)
    expect(await world.request(authorizer, SERVER, background)).toBe(403)
    expect(world.authorizations).toHaveLength(1)
  })

  it('gets a new token without the user', async () => {
    const world = new World()
    world.tokens = { refresh_token: 'refresh' }
    const store = new Map<string, string>()
    const options = {
      store: {
        get: (key: string) => store.get(key),
        set: (key: string, value: string) => void store.set(key, value),
        delete: (key: string) => void store.delete(key),
      },
    }
    await world.request(world.authorizer(options))
    world.valid.clear()
    expect(await world.request(world.authorizer(options), SERVER, background)).toBe(200)
    expect(world.authorizations).toHaveLength(1)
    const client = { id: 'a', secret: 'a secret' }
    const machine = world.authorizer({ grant: clientCredentials(), client })
    expect(await world.request(machine, SERVER, background)).toBe(200)
  })

  it('waits for a login that is in progress', async () => {
    const world = new World()
    const authorizer = world.authorizer()
    const statuses = [world.request(authorizer), world.request(authorizer, SERVER, background)]
    expect(await Promise.all(statuses)).toEqual([200, 200])
    expect(world.authorizations).toHaveLength(1)
  })
})

it('the requests that nobody waits for are those of streams, notifications and the end', async () => {
  let called: unknown
  const { url } = await scripted(
    inSession(
      ({ method, message, headers }, response) => {
        if (headers['last-event-id'] === 'last') {
          stream(response, event(result(called)))
          return void response.end()
        }
        if (method === 'GET') return stream(response, event(ping))
        called = message.id
        if (message.id === undefined || message.method === undefined)
          return void response.writeHead(202).end()
        if (message.method === 'tools/call') {
          stream(response, `retry: 0\n${event({ jsonrpc: '2.0', method: 'x' }, 'last')}`)
          return void response.end()
        }
        if (message.method !== 'subscriptions/listen')
          return sendJson(response, 200, result(message.id))
        stream(response, event(result(message.id)))
        response.end()
      },
      { get: true },
    ),
  )
  const ping = { jsonrpc: '2.0', id: 's', method: 'ping' }
  const request = nodeRequest({})
  const sent: [kind: string, background: boolean | undefined][] = []
  const send: SendRequest = (each) => {
    const { method = 'response' } = JSON.parse(each.body ?? '{}') as { method?: string }
    const get = each.headers['last-event-id'] === undefined ? 'GET' : 'GET of a call'
    const kinds = { POST: method, GET: get, DELETE: 'DELETE' }
    sent.push([kinds[each.method], each.background])
    return request(each)
  }
  const { peer } = await peerTo(url, { send: withAuthorization(send, NOBODY) })
  await expect.poll(() => sent.map(([kind]) => kind)).toContain('response')
  await peer.request('tools/list')
  await peer.request('tools/call')
  peer.notify('notifications/roots/list_changed')
  // The second one may be opened again because the first has ended.
  for (let count = 0; count < 2; count++) await peer.request('subscriptions/listen', {}, STATELESS)
  await peer.request('tools/list')
  await peer.close()
  const expected: typeof sent = [
    ['initialize', false],
    ['notifications/initialized', false],
    ['GET', true],
    ['response', false],
    ['tools/list', false],
    ['tools/call', false],
    ['GET of a call', false],
    ['notifications/roots/list_changed', true],
    ['subscriptions/listen', false],
    ['subscriptions/listen', true],
    ['tools/list', false],
  ]
  expect(sent.slice(0, expected.length)).toEqual(expected)
})

it('a challenge says whether anybody waits for its request', async () => {
  const { url } = await scripted(
    inSession((_, response) => void response.writeHead(401).end(), { get: true }),
  )
  const asked: [who: string, peer: string | undefined][] = []
  const authorizer: Authorizer = {
    headers: () => Promise.resolve({}),
    challenged: ({ background, peer }) => {
      asked.push([background === true ? 'background' : 'foreground', peer])
      return Promise.resolve(false)
    },
  }
  const { peer } = await peerTo(url, { authorizer })
  await expect.poll(() => asked).toEqual([['background', '127.0.0.1']])
  await expect(peer.request('tools/list')).rejects.toMatchObject({ status: 401 })
  expect(asked).toEqual([
    ['background', '127.0.0.1'],
    ['foreground', '127.0.0.1'],
  ])
})

const NOBODY: Authorizer = {
  headers: () => Promise.resolve({}),
  challenged: () => Promise.resolve(false),
}
