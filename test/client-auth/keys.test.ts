import { createHash } from 'node:crypto'
import { EmbeddedJWK, exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { clientCredentials, memoryTokenStore } from '../../src/oauth.js'
import { ISSUER, RESOURCE_METADATA, SERVER, World, json } from './world.js'
import { resolveOnly } from './names.js'

resolveOnly()

const TOKEN = `${ISSUER}/token`

describe('DPoP', () => {
  /** A world whose server requires bound tokens. */
  function bound(): World {
    const world = new World()
    world.challenge = `DPoP resource_metadata="${RESOURCE_METADATA}"`
    world.tokens = { token_type: 'DPoP' }
    world.mcp = ({ headers }) => {
      const plain = headers.get('authorization')?.replace(/^DPoP /, 'Bearer ')
      return world.accept(new Headers(plain === undefined ? {} : { authorization: plain }))
    }
    return world
  }
  const proofOf = (headers: Headers) =>
    jwtVerify(headers.get('dpop') ?? '', EmbeddedJWK, { typ: 'dpop+jwt' })

  it('proves the key in the token request and freshly in every request', async () => {
    const world = bound()
    const store = memoryTokenStore()
    await world.request(world.authorizer({ store }))
    // Another process has the key from the store.
    await world.request(world.authorizer({ store }))
    expect(world.authorizations.length).toBe(1)
    const [token] = world.to(TOKEN)
    const first = await proofOf(token?.headers ?? new Headers())
    expect(first.payload).toMatchObject({ htm: 'POST', htu: TOKEN })
    const sent = world.to(SERVER).filter(({ headers }) => headers.has('dpop'))
    const proofs = await Promise.all(sent.map(({ headers }) => proofOf(headers)))
    expect(proofs.length).toBe(2)
    const access = sent[0]?.headers.get('authorization')?.replace('DPoP ', '') ?? ''
    const ath = createHash('sha256').update(access).digest('base64url')
    for (const { payload, protectedHeader } of proofs) {
      expect(payload).toMatchObject({ htm: 'POST', htu: SERVER, ath })
      expect(protectedHeader.jwk).toEqual(first.protectedHeader.jwk)
      expect(protectedHeader.jwk).not.toHaveProperty('d')
    }
    expect(new Set(proofs.map(({ payload }) => payload['jti'])).size).toBe(2)
    expect(world.authorizations[0]?.get('dpop_jkt')).toHaveLength(43)
  })

  it('uses the nonces of the authorization server and of the MCP server', async () => {
    const world = bound()
    const nonceOf = async (headers: Headers) => (await proofOf(headers)).payload['nonce']
    world.routes.set(`POST ${TOKEN}`, async (seen) =>
      (await nonceOf(seen.headers)) === 'of-as'
        ? world.issue(seen)
        : new Response('{"error":"use_dpop_nonce"}', {
            status: 400,
            headers: { 'dpop-nonce': 'of-as', 'content-type': 'application/json' },
          }),
    )
    const { mcp } = world
    world.mcp = async (seen) => {
      if (!seen.headers.has('dpop') || (await nonceOf(seen.headers)) === 'of-server')
        return await mcp(seen)
      const headers = {
        'dpop-nonce': 'of-server',
        'www-authenticate': 'DPoP error="use_dpop_nonce"',
      }
      return new Response('', { status: 401, headers })
    }
    expect(await world.request()).toBe(200)
    expect(world.authorizations.length).toBe(1)
  })

  it('a server that wants another nonce each time is given up', async () => {
    const world = bound()
    let count = 0
    world.mcp = ({ headers }) =>
      headers.has('dpop')
        ? new Response('', {
            status: 401,
            headers: {
              'dpop-nonce': `n${count++}`,
              'www-authenticate': 'DPoP error="use_dpop_nonce"',
            },
          })
        : world.accept(headers)
    expect(await world.request()).toBe(401)
    expect(count).toBeLessThan(5)
  })
})

describe('private_key_jwt', () => {
  it.each(['ES256', 'RS256', 'PS256'] as const)(
    'signs with %s for the issuer',
    async (algorithm) => {
      const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
      const world = new World()
      const key = { key: await exportPKCS8(privateKey), algorithm, id: 'k1' }
      const options = { client: { id: 'service', key }, grant: clientCredentials() }
      world.routes.set(`POST ${TOKEN}`, async (seen) => {
        const assertion = new URLSearchParams(seen.body).get('client_assertion') ?? ''
        const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, {
          issuer: 'service',
          subject: 'service',
          audience: ISSUER,
        })
        expect(protectedHeader).toMatchObject({ alg: algorithm, kid: 'k1' })
        expect(payload.jti).toBeDefined()
        return seen.headers.has('authorization') ? json({}, 400) : world.issue(seen)
      })
      expect(await world.request(world.authorizer(options))).toBe(200)
    },
  )
})
