import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import { type OAuthOptions, memoryTokenStore, oauth } from '../../src/oauth.js'
import { type Protected, browse, startProtected } from './protected.js'

const REDIRECT = 'http://127.0.0.1:7777/callback'

describe('oidc-provider in front of a server of ours', () => {
  let there: Protected
  const authorizerOf = (options: OAuthOptions = {}) =>
    oauth({
      authorize: (url) => browse(url, there.issuer),
      redirectUri: REDIRECT,
      ...options,
    })
  beforeAll(async () => {
    there = await startProtected({ lifetime: 60 })
  })
  afterAll(() => there.close())

  it('registers, logs in, calls a tool, gets more scopes, and refreshes', async () => {
    const store = memoryTokenStore()
    const client = await connect(http(there.url, { authorizer: authorizerOf({ store }) }))
    expect((await client.callTool('whoami')).content).toEqual([
      { type: 'text', text: expect.stringContaining('alice') as string },
    ])
    expect((await client.callTool('write')).content).toEqual([{ type: 'text', text: 'written' }])
    await client.close()
    const tokenRequests = () => there.requests.filter((each) => each === 'POST /token').length
    expect(tokenRequests()).toBe(2)
    expect(there.requests.filter((each) => each === 'POST /reg').length).toBe(1)
    // Another process, after the token has expired.
    const later = expireTokens(store)
    const again = await connect(http(there.url, { authorizer: authorizerOf({ store: later }) }))
    expect((await again.callTool('write')).content).toEqual([{ type: 'text', text: 'written' }])
    await again.close()
    expect(tokenRequests()).toBe(3)
  })

  it('logs out', async () => {
    const store = memoryTokenStore()
    const authorizer = authorizerOf({ store })
    const client = await connect(http(there.url, { authorizer }))
    await client.close()
    await authorizer.logout(there.url)
    expect(there.requests).toContain('POST /token/revocation')
    await expect(connect(http(there.url, { authorizer: oauth({ store }) }))).rejects.toThrow(
      /requires authorization/,
    )
  })
})

/** The same store a minute later. */
function expireTokens(store: ReturnType<typeof memoryTokenStore>) {
  return {
    ...store,
    async get(key: string) {
      const text = await store.get(key)
      return text?.replaceAll(/"(expires|renewal)":\d+/g, '"$1":1')
    },
  }
}
