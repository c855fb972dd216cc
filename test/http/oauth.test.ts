import { once } from 'node:events'
import { type Server as HttpServer, createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, type JWK, SignJWT, exportJWK, generateKeyPair } from 'jose'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { oauth } from '../../src/http.js'

const RESOURCE = 'http://localhost/mcp'

/** An issuer that answers what a test says. */
let issuer: HttpServer
let address: string
let requests: string[]
let keys: JWK[]
let isUp: boolean

beforeEach(async () => {
  requests = []
  keys = []
  isUp = true
  issuer = createHttpServer((request, response) => {
    requests.push(request.url ?? '')
    if (!isUp) return void response.writeHead(500).end('down')
    const isMetadata = request.url === '/.well-known/oauth-authorization-server'
    if (!isMetadata && request.url !== '/keys') return void response.writeHead(404).end()
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify(isMetadata ? { issuer: address, jwks_uri: `${address}/keys` } : { keys }))
  })
  await once(issuer.listen(0, '127.0.0.1'), 'listening')
  address = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
})
afterEach(async () => {
  vi.useRealTimers()
  issuer.closeAllConnections()
  await new Promise((resolve) => issuer.close(resolve))
})

async function addKey(more: Partial<JWK> = {}, algorithm = 'ES256'): Promise<CryptoKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm)
  keys.push({ ...(await exportJWK(publicKey)), ...more })
  return privateKey
}

function sign(
  key: CryptoKey,
  claims: Record<string, unknown>,
  header: { kid?: string; alg?: string } = {},
): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', ...header })
    .setIssuer(address)
    .setAudience(RESOURCE)
    .setExpirationTime('1h')
    .sign(key)
}

const auth = (more: object = {}) => {
  const made = oauth({ resource: RESOURCE, issuer: address, ...more })
  return { ...made, verify: async (token: string) => await made.verify(token, { headers: {} }) }
}

describe('the principal of a token', () => {
  it('is a user or a client, with distinct ids', async () => {
    const key = await addKey()
    const { verify } = auth()
    const idOf = async (claims: Record<string, unknown>) =>
      (await verify(await sign(key, claims)))?.id
    const user = await idOf({ sub: 'alice', client_id: 'app' })
    const client = await idOf({ client_id: 'alice' })
    expect([user, client]).toEqual([`${address} alice`, `${address}#client alice`])
    // RFC 9068: the subject of a client that calls in its own name is the client.
    expect(await idOf({ sub: 'alice', client_id: 'alice' })).toBe(client)
    expect(await idOf({ sub: 'alice' })).toBe(user)
    expect(await idOf({ sub: '#client alice' })).not.toBe(client)
    for (const claims of [
      {},
      { sub: '' },
      { client_id: '' },
      { client_id: 7 },
      { sub: '', client_id: 'app' },
    ])
      expect(await idOf(claims)).toBeUndefined()
  })
})

describe('a token without kid', () => {
  it('is verified with each matching key', async () => {
    const [first, second] = [await addKey(), await addKey()]
    await addKey({ alg: 'RS256' }, 'RS256')
    const { verify } = auth()
    for (const key of [first, second])
      expect(await verify(await sign(key, { sub: 'alice' }))).toMatchObject({
        id: `${address} alice`,
      })
    const { privateKey: foreign } = await generateKeyPair('ES256')
    expect(await verify(await sign(foreign, { sub: 'alice' }))).toBeUndefined()
  })

  it('is verified with at most 16 keys', async () => {
    const added: CryptoKey[] = []
    for (let count = 0; count < 17; count++) added.push(await addKey())
    const { verify } = auth()
    const verified = await Promise.all(
      added.map(async (key) => (await verify(await sign(key, { sub: 'alice' }))) !== undefined),
    )
    expect(verified).toEqual([...Array.from({ length: 16 }, () => true), false])
  })

  it('is not verified with a key for another use', async () => {
    await addKey()
    await addKey()
    const encrypting = await addKey({ use: 'enc' })
    expect(await auth().verify(await sign(encrypting, { sub: 'alice' }))).toBeUndefined()
  })

  it('is otherwise checked like any other', async () => {
    const [first] = [await addKey(), await addKey()]
    expect(
      await auth({ resource: 'http://localhost/other' }).verify(
        await sign(first, { sub: 'alice' }),
      ),
    ).toBeUndefined()
  })
})

describe('an issuer that is not available', () => {
  /** Verifies so many bad tokens, one after the other and all at once. */
  const flood = async (verify: ReturnType<typeof auth>['verify'], count = 10) => {
    const { privateKey } = await generateKeyPair('ES256')
    const tokens = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        sign(privateKey, { sub: 'x' }, { kid: `k${index}` }),
      ),
    )
    for (const token of tokens) await expect(verify(token)).rejects.toThrow()
    await Promise.all(tokens.map((token) => expect(verify(token)).rejects.toThrow()))
  }

  it('is retried with exponential backoff', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    const key = await addKey()
    isUp = false
    const { verify } = auth()
    await flood(verify)
    // The clock of the machine is set back.
    vi.setSystemTime(Date.now() - 3_600_000)
    // Its metadata may be at two places.
    expect(requests).toHaveLength(2)
    for (const [wait, expected] of [
      [999, 2],
      [1, 4],
      [1999, 4],
      [1, 6],
    ] as const) {
      vi.advanceTimersByTime(wait)
      await flood(verify)
      expect(requests).toHaveLength(expected)
    }
    for (let round = 0; round < 10; round++) {
      vi.advanceTimersByTime(60_000)
      await flood(verify, 1)
    }
    expect(requests).toHaveLength(26)
    isUp = true
    await expect(verify(await sign(key, { sub: 'alice' }))).rejects.toThrow(
      /^The authorization server is not contacted for another 60 s/,
    )
    vi.advanceTimersByTime(60_000)
    expect(await verify(await sign(key, { sub: 'alice' }))).toMatchObject({
      id: `${address} alice`,
    })
  })

  it('is not contacted for each unknown key, and known keys stay in use', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const key = await addKey({ kid: 'known' })
    const { verify } = auth()
    const good = await sign(key, { sub: 'alice' }, { kid: 'known' })
    expect(await verify(good)).toBeDefined()
    isUp = false
    vi.setSystemTime(Date.now() + 31_000)
    requests.length = 0
    await flood(verify)
    expect(requests).toEqual(['/keys'])
    expect(await verify(good)).toBeDefined()
  })
})
