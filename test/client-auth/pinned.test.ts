import dns from 'node:dns'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { OAuthHttp } from '../../src/client/auth/http.js'
import { oauth } from '../../src/oauth.js'
import { nodeFetch } from '../../src/transports/http/client/node-fetch.js'
import { json as sendJson, scripted } from '../http-client/scripted.js'
import { REDIRECT, SERVER, World, json } from './world.js'

/* A request of OAuth goes to the addresses that were checked, whatever a name server says a moment later. */

/** What the name server says, in turn; its last answer stays. */
function resolve(answers: Readonly<Record<string, string[][]>>): void {
  const left = new Map(Object.entries(answers))
  vi.spyOn(dns.promises, 'lookup').mockImplementation((host: string) => {
    const [next = [], ...others] = left.get(host) ?? []
    if (others.length > 0) left.set(host, others)
    // The signature that remains of several is the one for `all: true`.
    return Promise.resolve(next.map((address) => ({ address, family: 4 })) as never)
  })
}
afterEach(() => void vi.restoreAllMocks())

const [PUBLIC, PRIVATE] = ['203.0.113.7', '10.0.0.5']

/** The requests that are sent, with their addresses. */
function recorded(server: string) {
  const sent: [url: string, addresses: readonly string[] | Error | undefined][] = []
  const http = new OAuthHttp(
    {
      fetch: (url, _init, addresses) => {
        sent.push([url, addresses])
        return Promise.resolve(json({}))
      },
      timeout: 60_000,
      privateAddresses: false,
    },
    new URL(server),
  )
  return { http, sent, get: (url: string) => http.json(new URL(url), 'The document') }
}

describe('the addresses of a request', () => {
  it('are those that were checked', async () => {
    resolve({ 'mcp.example': [[PUBLIC]], 'as.example': [['203.0.113.8'], [PRIVATE]] })
    const { sent, get } = recorded(SERVER)
    await get('https://as.example/a')
    await expect(get('https://as.example/b')).rejects.toMatchObject({ code: 'UNSAFE_URL' })
    expect(sent).toEqual([['https://as.example/a', ['203.0.113.8']]])
  })

  it('are none if the name has none: another look could find a private one', async () => {
    resolve({ 'mcp.example': [[PUBLIC]] })
    const { sent, get } = recorded(SERVER)
    await get('https://as.example/')
    expect(sent).toEqual([['https://as.example/', []]])
  })

  it('are not there if the name cannot be looked up, and the error says why', async () => {
    vi.spyOn(dns.promises, 'lookup').mockRejectedValue(
      new Error('getaddrinfo ENOTFOUND as.example'),
    )
    const http = new OAuthHttp(
      { fetch: nodeFetch({}), timeout: 60_000, privateAddresses: false },
      new URL(SERVER),
    )
    await expect(http.json(new URL('https://as.example/'), 'The document')).rejects.toThrow(
      'The document at https://as.example/ could not be read: getaddrinfo ENOTFOUND as.example',
    )
  })

  it('are looked up no longer than a request may take, and until the signal fires', async () => {
    vi.spyOn(dns.promises, 'lookup').mockReturnValue(new Promise(() => {}) as never)
    const fetch = () => Promise.resolve(json({}))
    const url = new URL('https://as.example/')
    const late = new OAuthHttp({ fetch, timeout: 1, privateAddresses: false }, new URL(SERVER))
    await expect(late.json(url, 'The document')).rejects.toThrow('no response within 1 ms')
    await expect(late.check(url, 'The endpoint')).rejects.toMatchObject({
      code: 'DISCOVERY_FAILED',
    })
    const signal = AbortSignal.abort(new Error('enough'))
    const options = { fetch, timeout: 60_000, privateAddresses: false, signal }
    const ended = new OAuthHttp(options, new URL(SERVER))
    await expect(ended.json(url, 'The document')).rejects.toThrow('enough')
  })

  it('may be any if private addresses are allowed', async () => {
    resolve({})
    const world = new World()
    const addresses: unknown[] = []
    const fetch: typeof globalThis.fetch = (...request) => {
      addresses.push((request as unknown[])[2]) // the third one is ours
      return world.fetch(...request)
    }
    await world.authorizer({ fetch, privateAddresses: true }).begin(SERVER)
    expect(addresses.length).toBeGreaterThan(1)
    expect(new Set(addresses)).toEqual(new Set([undefined]))
  })
})

describe('whether the MCP server is private', () => {
  it('is known of the connection with it, not of its name', async () => {
    resolve({ 'mcp.example': [[PRIVATE]], 'as.example': [[PRIVATE]] })
    const { http, sent, get } = recorded(SERVER)
    http.connectedTo(PUBLIC)
    await expect(get('https://as.example/')).rejects.toMatchObject({ code: 'UNSAFE_URL' })
    await expect(get(SERVER)).rejects.toMatchObject({ code: 'UNSAFE_URL' })
    http.connectedTo('::ffff:10.0.0.5')
    await get('https://as.example/')
    expect(sent).toEqual([['https://as.example/', [PRIVATE]]])
  })

  it('is told by the challenge', async () => {
    resolve({ 'mcp.example': [[PRIVATE]], '192.168.0.1': [['192.168.0.1']] })
    const world = new World()
    const asked = {
      status: 401,
      url: new URL(SERVER),
      header: 'Bearer resource_metadata="https://192.168.0.1/x"',
      nonce: undefined,
      sent: {},
    }
    const { signal } = new AbortController()
    await expect(
      world.authorizer().challenged({ ...asked, peer: PUBLIC }, signal),
    ).rejects.toMatchObject({ code: 'UNSAFE_URL' })
    expect(world.seen).toEqual([])
    // Without a connection, such as behind a proxy, its name has to do.
    await world
      .authorizer()
      .challenged(asked, signal)
      .catch(() => {})
    expect(world.seen[0]?.url).toBe('https://192.168.0.1/x')
  })

  it('follows the addresses that its documents were fetched from', async () => {
    resolve({ 'mcp.example': [[PRIVATE], [PUBLIC]], 'as.example': [[PRIVATE]] })
    const { sent, get } = recorded(SERVER)
    await get(SERVER)
    await get(SERVER)
    await expect(get('https://as.example/')).rejects.toMatchObject({ code: 'UNSAFE_URL' })
    expect(sent).toEqual([
      [SERVER, [PRIVATE]],
      [SERVER, [PUBLIC]],
    ])
  })
})

describe('Node', () => {
  async function local() {
    const hosts: (string | undefined)[] = []
    const server = createServer((request, response) => {
      hosts.push(request.headers.host)
      response.setHeader('content-type', 'application/json').end('{}')
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const { port } = server.address() as AddressInfo // it listens on a port
    const close = () => {
      server.close()
      server.closeAllConnections()
    }
    return { hosts, port, close }
  }

  it('connects to a given address, with the name as the host', async () => {
    const { hosts, port, close } = await local()
    try {
      const url = `http://pinned.invalid:${port}/`
      expect(await (await nodeFetch({})(url, {}, ['127.0.0.1'])).json()).toEqual({})
      expect(hosts).toEqual([`pinned.invalid:${port}`])
      await expect(nodeFetch({})(url, {}, [])).rejects.toThrow('pinned.invalid has no address')
      const why = Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' })
      await expect(nodeFetch({})(url, {}, why)).rejects.toMatchObject({ code: 'EAI_AGAIN' })
      await expect(nodeFetch({})(`http://localhost:${port}/`, {}, [])).rejects.toThrow()
      expect(hosts).toHaveLength(1)
    } finally {
      close()
    }
  })

  it('looks no name up but for the check', async () => {
    const { url } = await scripted(({ path }, response) => {
      const origin = new URL(url).origin.replace('127.0.0.1', 'localhost')
      const endpoints = ['authorization', 'token', 'registration'].map((name) => [
        `${name}_endpoint`,
        `${origin}/${name}`,
      ])
      if (path === '/.well-known/oauth-protected-resource/mcp')
        return sendJson(response, 200, {
          resource: `${origin}/mcp`,
          authorization_servers: [origin],
        })
      if (path === '/registration') return sendJson(response, 201, { client_id: 'a' })
      sendJson(response, 200, {
        issuer: origin,
        ...Object.fromEntries(endpoints),
        code_challenge_methods_supported: ['S256'],
      })
    })
    const looked = vi.spyOn(dns, 'lookup')
    const checked = vi.spyOn(dns.promises, 'lookup')
    const server = url.replace('127.0.0.1', 'localhost')
    const begun = await oauth({ redirectUri: REDIRECT }).begin(server)
    expect(begun).toContain('client_id=a')
    expect(checked.mock.calls.length).toBeGreaterThan(2)
    expect(looked).not.toHaveBeenCalled()
  })
})
