import { describe, expect, it } from 'vitest'
import { onStillClock } from '../clock.js'
import { STATELESS, failed, inSession, json, peerTo, result, scripted } from './scripted.js'

/* The authorizer of the transport. */

describe('authorization', () => {
  it('asks for headers before each request, and sends a challenged one again', async () => {
    const { url, received } = await scripted(({ headers, message }, response) =>
      headers.authorization === 'Bearer new'
        ? json(response, 200, result(message.id))
        : void response.writeHead(401, { 'www-authenticate': 'Bearer scope="a"' }).end(),
    )
    let token = 'old'
    const challenges: unknown[] = []
    const authorizer = {
      headers: () => Promise.resolve({ authorization: `Bearer ${token}` }),
      challenged: (challenge: { status: number; header: string | undefined }) => {
        challenges.push([challenge.status, challenge.header])
        token = 'new'
        return Promise.resolve(true)
      },
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    expect(await peer.request('x')).toEqual({})
    expect([challenges, received.length]).toEqual([[[401, 'Bearer scope="a"']], 2])
  })

  it('gives up after three challenges', async () => {
    const { url, received } = await scripted(
      (_received, response) => void response.writeHead(403, { 'www-authenticate': 'Bearer' }).end(),
    )
    const authorizer = {
      headers: () => Promise.resolve({}),
      challenged: () => Promise.resolve(true),
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    expect(await failed(peer.request('x'))).toMatchObject({ status: 403 })
    expect(received).toHaveLength(4)
  })

  const never = new Promise<never>(() => {})
  const token = () => Promise.resolve({ authorization: 'Bearer x' })

  it('fails a request for which there are no headers, and does not send it', async () => {
    const { url, received } = await scripted(({ message }, response) =>
      json(response, 200, result(message.id)),
    )
    let failing = true
    const reason = new Error('no token')
    const authorizer = {
      headers: () => (failing ? Promise.reject(reason) : token()),
      challenged: () => never,
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    expect(await failed(peer.request('x'))).toMatchObject({
      code: 'AUTHORIZATION_FAILED',
      executed: 'no',
      message: 'The request could not be authorized: no token',
      cause: reason,
    })
    expect(received).toEqual([])
    failing = false
    expect(await peer.request('x')).toEqual({})
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('bug')
      },
    ],
    ['returns no promise', () => ({}) as never],
  ])('fails a request for which headers() %s', async (_case, headers) => {
    const { url } = await scripted(({ message }, response) =>
      json(response, 200, result(message.id)),
    )
    const { peer } = await peerTo(url, {
      open: false,
      authorizer: { headers, challenged: () => never },
    })
    const outcome: unknown = await peer.request('x').catch((error: unknown) => error)
    if (outcome instanceof Error)
      expect(outcome).toMatchObject({ code: 'AUTHORIZATION_FAILED', executed: 'no' })
    else expect(outcome).toEqual({})
  })

  it('fails a challenged request that cannot be authorized: it was refused', async () => {
    const { url } = await scripted((_received, response) => void response.writeHead(401).end())
    const authorizer = {
      headers: token,
      challenged: () => Promise.reject(new Error('the login was cancelled')),
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    expect(await failed(peer.request('x'))).toMatchObject({
      code: 'AUTHORIZATION_FAILED',
      executed: 'no',
      message: 'The request could not be authorized: the login was cancelled',
    })
  })

  it.each([
    ['in a session', {}],
    ['in a stateless revision', STATELESS],
  ])('that never settles ends with the cancellation, %s', async (_case, options) => {
    const { url, received } = await scripted(
      inSession(({ message }, response) => json(response, 200, result(message.id))),
    )
    let headers: () => Promise<Record<string, string>> = token
    const authorizer = { headers: () => headers(), challenged: () => never }
    const { peer } = await peerTo(url, { authorizer })
    await peer.request('x', {}, options)
    headers = () => never
    const before = received.length
    const controller = new AbortController()
    const request = failed(peer.request('y', {}, { ...options, signal: controller.signal }))
    controller.abort(new Error('enough'))
    expect((await request).message).toBe('enough')
    headers = token
    expect(await peer.request('z', {}, options)).toEqual({})
    // Neither the cancelled request nor a notification of its cancellation was sent.
    expect(received.slice(before).flatMap(({ message: { method = [] } }) => method)).toEqual(['z'])
  })

  it('that never settles does not keep the channel from closing', async () => {
    await onStillClock(async (pass) => {
      const { url } = await scripted(
        inSession(({ message }, response) => json(response, 200, result(message.id))),
      )
      let headers: () => Promise<Record<string, string>> = token
      const authorizer = { headers: () => headers(), challenged: () => never }
      const { peer } = await peerTo(url, { authorizer })
      await peer.request('x')
      headers = () => never
      const request = failed(peer.request('y'))
      const closed = peer.close()
      await pass(2000)
      await closed
      expect(await request).toMatchObject({ code: 'CHANNEL_CLOSED' })
    })
  })

  it('is asked for each redirect, with its URL', async () => {
    const { url, received } = await scripted(({ path, message }, response) =>
      path === '/other'
        ? json(response, 200, result(message.id))
        : void response.writeHead(307, { location: '/other' }).end(),
    )
    const authorizer = {
      headers: (request: { url: URL }) => Promise.resolve({ authorization: request.url.pathname }),
      challenged: () => never,
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    await peer.request('x')
    expect(received.map(({ headers }) => headers.authorization)).toEqual(['/mcp', '/other'])
  })
})
