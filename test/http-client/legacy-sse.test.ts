import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { Peer } from '../../src/jsonrpc/peer.js'
import { followRedirects } from '../../src/transports/http/client/http-request.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { HttpSseChannel } from '../../src/transports/http/client/http-sse-channel.js'
import { type Received, closing, event, result, scripted, stream } from './scripted.js'

function peerTo(url: string): { peer: Peer; closed: Promise<Error | undefined> } {
  let ended: (error?: Error) => void = () => {}
  const closed = new Promise<Error | undefined>((resolve) => (ended = resolve))
  const channel = new HttpSseChannel({
    url: new URL(url),
    send: followRedirects(nodeRequest({})),
    headers: { 'x-extra': '1' },
    maxMessage: 10_000,
    report: () => {},
  })
  const peer = new Peer(channel, {
    onRequest: ({ request }) => ({ echoed: request.method }),
    onNotification: () => {},
    respondsToMalformed: false,
    report: () => {},
    onClosed: ended,
  })
  closing.push(() => peer.close())
  return { peer, closed }
}

/** A server of 2024-11-05 whose POST endpoint is answered by `post`. */
async function sse(
  post: (received: Received, response: ServerResponse, events: ServerResponse) => void,
  endpoint = '/messages?id=1',
) {
  let events: ServerResponse | undefined
  return await scripted((received, response) => {
    if (received.method !== 'GET')
      return events === undefined
        ? void response.writeHead(400).end()
        : post(received, response, events)
    events = response
    stream(response, `event: endpoint\ndata: ${endpoint}\n\n`)
  })
}

describe('HTTP+SSE', () => {
  it('sends to the endpoint that the stream names, and receives on the stream', async () => {
    const { url, received } = await sse(({ message }, response, events) => {
      response.writeHead(202).end('Accepted')
      if (message.method === 'tools/list') events.write(event(result(message.id, { tools: [] })))
      if (message.method === 'tools/list')
        events.write(event({ jsonrpc: '2.0', id: 'q', method: 'roots/list' }))
    })
    const { peer } = peerTo(url)
    expect(await peer.request('tools/list')).toEqual({ tools: [] })
    await expect
      .poll(() => received.at(-1)?.message)
      .toMatchObject({ id: 'q', result: { echoed: 'roots/list' } })
    expect(received.map(({ method, path, headers }) => [method, path, headers['x-extra']])).toEqual(
      [
        ['GET', '/mcp', '1'],
        ['POST', '/messages?id=1', '1'],
        ['POST', '/messages?id=1', '1'],
      ],
    )
  })

  it('fails a request whose POST is refused, and the next one works', async () => {
    const { url } = await sse(({ message }, response, events) => {
      response.writeHead(message.method === 'bad' ? 400 : 202).end()
      if (message.method !== 'bad') events.write(event(result(message.id)))
    })
    const { peer } = peerTo(url)
    await expect(peer.request('bad')).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 400 })
    expect(await peer.request('good')).toEqual({})
  })

  it('closes the channel when the stream ends', async () => {
    const { url } = await sse((_received, response, events) => {
      response.writeHead(202).end()
      events.end()
    })
    const { peer, closed } = peerTo(url)
    await expect(peer.request('x')).rejects.toThrow('closed its event stream')
    expect((await closed)?.message).toContain('closed its event stream')
  })

  it.each([
    ['an endpoint of another origin', 'http://localhost:1/messages', 'another origin'],
    ['an endpoint that is no URL', 'http://', 'not a URL'],
    ['an endless event', 'x'.repeat(20_000), 'longer'],
  ])('refuses %s', async (_case, endpoint, words) => {
    const { url, received } = await sse(() => {}, endpoint)
    const { peer } = peerTo(url)
    await expect(peer.request('x')).rejects.toThrow(words)
    expect(received.map(({ method }) => method)).toEqual(['GET'])
  })

  it.each([
    [404, 'text/plain'],
    [200, 'text/html'],
  ])('fails if the stream is answered with %i %s', async (status, type) => {
    const { url } = await scripted(
      (_received, response) => void response.writeHead(status, { 'content-type': type }).end('no'),
    )
    const { peer, closed } = peerTo(url)
    await expect(peer.request('x')).rejects.toThrow()
    expect((await closed)?.message).toContain(status === 404 ? 'HTTP 404' : 'text/html')
  })
})
