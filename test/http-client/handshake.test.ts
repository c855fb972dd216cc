import { describe, expect, it } from 'vitest'
import { onStillClock } from '../clock.js'
import { event, failed, inSession, json, peerTo, result, scripted, stream } from './scripted.js'

/* The session of a handshake revision: how it is opened, and how it ends. */

describe('the handshake', () => {
  /** Holds each response until it is released. */
  async function held() {
    const answers: (() => void)[] = []
    const { url, received } = await scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      const answer = () =>
        message.id === undefined
          ? response.writeHead(202).end()
          : json(response, 200, result(message.id, { protocolVersion: '2025-11-25' }))
      answers.push(answer)
    })
    const { peer } = await peerTo(url, { open: false })
    return {
      peer,
      release: () => answers.shift()?.(),
      seen: () => received.flatMap(({ message: { method = [] } }) => method),
    }
  }

  it('sends nothing else before the 202 to initialized', async () => {
    const { peer, release, seen } = await held()
    const opened = peer.request('initialize', {})
    const early = peer.request('early')
    peer.notify('notifications/early')
    await expect.poll(seen).toEqual(['initialize'])
    release()
    await opened
    const late = peer.request('late')
    peer.notify('notifications/initialized')
    await expect.poll(seen).toEqual(['initialize', 'notifications/initialized'])
    release()
    await expect.poll(() => seen().toSorted().slice(0, 2)).toEqual(['early', 'initialize'])
    await expect.poll(seen).toHaveLength(5)
    for (let count = 0; count < 3; count++) release()
    await Promise.all([early, late])
  })

  it('sends requests that were held back also if initialize fails', async () => {
    const { url } = await scripted(({ message }, response) =>
      message.method === 'initialize'
        ? void response.writeHead(503).end()
        : json(response, 200, result(message.id, { served: true })),
    )
    const { peer } = await peerTo(url, { open: false })
    const opened = failed(peer.request('initialize', {}))
    const early = peer.request('early')
    expect(await opened).toMatchObject({ status: 503 })
    expect(await early).toEqual({ served: true })
  })

  it('never sends a request that was cancelled while it was held back', async () => {
    const { peer, release, seen } = await held()
    const opened = peer.request('initialize', {})
    const controller = new AbortController()
    const early = failed(peer.request('early', {}, { signal: controller.signal }))
    controller.abort(new Error('enough'))
    expect((await early).message).toBe('enough')
    await expect.poll(seen).toEqual(['initialize'])
    release()
    await opened
    peer.notify('notifications/initialized')
    const late = peer.request('late')
    await expect.poll(seen).toHaveLength(2)
    release()
    await expect.poll(seen).toEqual(['initialize', 'notifications/initialized', 'late'])
    release()
    await late
  })

  it('responds to a ping of the server before the response to initialize', async () => {
    const { url } = await scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (message.method === 'initialize') {
        stream(response, event({ jsonrpc: '2.0', id: 'p', method: 'ping' }))
        pinged = () => response.end(event(result(message.id, { protocolVersion: '2025-11-25' })))
        return
      }
      response.writeHead(202).end()
      if (message.id === 'p') pinged()
    })
    let pinged = () => {}
    const { peer } = await peerTo(url, { open: false })
    expect(await peer.request('initialize', {})).toEqual({ protocolVersion: '2025-11-25' })
  })

  it.each([
    ['2024-11-05', undefined],
    ['2025-03-26', undefined],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
  ])('sends MCP-Protocol-Version if the revision has it: %s', async (protocolVersion, header) => {
    const { url, received } = await scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (message.id === undefined) return void response.writeHead(202).end()
      json(response, 200, result(message.id, { protocolVersion }))
    })
    const { peer } = await peerTo(url)
    await peer.request('tools/list')
    const { headers } = received.find(({ message }) => message.method === 'tools/list') ?? {}
    expect(headers?.['mcp-protocol-version']).toBe(header)
  })

  it.each([400, 404, 405, 406])('succeeds if the response to GET is %i', async (status) => {
    const { url, received } = await scripted((each, response, count) =>
      each.method === 'GET'
        ? void response.writeHead(status).end()
        : inSession(({ message }, answer) => json(answer, 200, result(message.id)))(
            each,
            response,
            count,
          ),
    )
    const { peer } = await peerTo(url)
    await peer.request('tools/list')
    await expect.poll(() => received.some(({ method }) => method === 'GET')).toBe(true)
    expect(await peer.request('tools/list')).toEqual({})
  })

  it('succeeds if GET gets no response', async () => {
    const { url } = await scripted(
      inSession(
        ({ message, method }, response) =>
          method === 'POST' && json(response, 200, result(message.id)),
        { get: true },
      ),
    )
    const { peer } = await peerTo(url)
    expect(await peer.request('tools/list')).toEqual({})
  })

  it('does not wait for the end of the stream with the response to initialize', () =>
    // The client closes the stream after two seconds.
    onStillClock(async () => {
      let open = false
      const order: string[] = []
      const { url } = await scripted(({ message, method }, response) => {
        if (method === 'GET') return void response.writeHead(405).end()
        order.push(`${message.method} while the stream is ${open ? 'open' : 'closed'}`)
        if (message.id === undefined) return void response.writeHead(202).end()
        stream(response, event(result(message.id, { protocolVersion: '2025-11-25' })))
        open = true
        response.on('close', () => (open = false))
      })
      const { peer } = await peerTo(url)
      await peer.request('tools/list')
      expect(order.slice(0, 2)).toEqual([
        'initialize while the stream is closed',
        'notifications/initialized while the stream is open',
      ])
    }))

  it('rejects a session id with characters other than visible ASCII', async () => {
    const { url } = await scripted(inSession(() => {}, { session: 'a b' }))
    expect(await failed(peerTo(url))).toMatchObject({ code: 'INVALID_RESPONSE' })
  })
})

describe('a session that the server has ended', () => {
  it("fails the refused request with executed: 'no', and the others with 'maybe'", async () => {
    const { url } = await scripted(
      inSession(({ message }, response) =>
        message.method === 'slow' ? stream(response) : void response.writeHead(404).end(),
      ),
    )
    const { peer } = await peerTo(url)
    const slow = failed(peer.request('slow'))
    const refused = failed(peer.request('tools/list'))
    expect(await refused).toMatchObject({ code: 'SESSION_EXPIRED', executed: 'no' })
    expect(await slow).toMatchObject({ code: 'SESSION_EXPIRED', executed: 'maybe' })
  })

  it('is followed by a new one without the old id', async () => {
    const { url, received } = await scripted(
      inSession((_received, response) => void response.writeHead(404).end()),
    )
    const { peer } = await peerTo(url)
    await failed(peer.request('tools/list'))
    await peer.request('initialize', {})
    const last = received.findLast(({ message }) => message.method === 'initialize')
    expect([last?.headers['mcp-session-id'], last?.headers['mcp-protocol-version']]).toEqual([
      undefined,
      undefined,
    ])
  })
})

describe('closing', () => {
  it('sends what was notified before, then ends the session', async () => {
    const { url, received } = await scripted(
      inSession((_received, response) => void response.writeHead(202).end()),
    )
    const { peer } = await peerTo(url)
    for (let count = 0; count < 40; count++) peer.notify('notifications/x')
    // What is not sent after two seconds is dropped.
    await onStillClock(() => peer.close())
    const sent = received.filter(({ method }) => method !== 'GET')
    expect(sent.filter(({ message }) => message.method === 'notifications/x')).toHaveLength(40)
    expect(sent.at(-1)?.method).toBe('DELETE')
  })

  it('ends if the server accepts neither a notification nor DELETE', async () => {
    await onStillClock(async (pass) => {
      const { url, received } = await scripted(inSession(() => {}, { end: false }))
      const { peer } = await peerTo(url)
      peer.notify('notifications/x')
      const seen = () => received.flatMap(({ method, message }) => message.method ?? method)
      await expect.poll(seen).toContain('notifications/x')
      const closed = peer.close()
      await pass(2000)
      await expect.poll(seen).toContain('DELETE')
      await pass(2000)
      await closed
    })
  })
})
