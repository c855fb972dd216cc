import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { failureOf } from '../../src/tap/http-failures.js'
import { ByteServer, ByteSocket, tapOf } from './http-taps.js'

/* The HTTP tap between raw sockets: what exactly is forwarded and recorded. */

async function connected(options: { allowHalfOpen?: boolean } = {}) {
  const server = await ByteServer.listen(options)
  const tap = await tapOf(server.url)
  const client = await ByteSocket.open(tap.port)
  return { server, tap, client }
}
const ends = (text: string) => (received: string) => received.endsWith(text)

describe('the HTTP tap', () => {
  it('forwards heads and bodies unchanged, except for Host', async () => {
    const { server, tap, client } = await connected()
    const body = Buffer.from([0x7b, 0xff, 0x00, 0x0d, 0x0a, 0x7d])
    client.write(
      'POST /mcp?a=%20b HTTP/1.1\r\nhOsT: localhost:1\r\nX-b: 1\r\naccept:  a\r\nX-B: \xe9\r\nContent-Length: 6\r\nConnection: keep-alive\r\nmcp-SESSION-id: x\r\n\r\n',
    )
    client.write(body)
    const peer = await server.connection()
    expect(await peer.until(ends('}'))).toBe(
      `POST /mcp?a=%20b HTTP/1.1\r\nhOsT: 127.0.0.1:${server.port}\r\nX-b: 1\r\naccept: a\r\nX-B: \xe9\r\nContent-Length: 6\r\nConnection: keep-alive\r\nmcp-SESSION-id: x\r\n\r\n{\xff\0\r\n}`,
    )
    const response =
      'HTTP/1.1 207 So Far\r\nset-COOKIE: a\r\nVary: x\r\nSet-Cookie: b\r\ncontent-length: 3\r\n\r\n\x01\x02\xff'
    peer.write(response)
    expect(await client.until(ends('\xff'))).toBe(response)
    const [request, answer] = await tap.events('request', 'response')
    expect(request).toMatchObject({
      exchange: 1,
      connection: 1,
      method: 'POST',
      target: '/mcp?a=%20b',
      version: '1.1',
      changes: [{ name: 'hOsT', from: 'localhost:1', to: `127.0.0.1:${server.port}` }],
    })
    expect(request?.['headers']).toContainEqual(['X-B', '\xe9'])
    expect(answer).toMatchObject({
      exchange: 1,
      status: 207,
      reason: 'So Far',
      headers: [
        ['set-COOKIE', 'a'],
        ['Vary', 'x'],
        ['Set-Cookie', 'b'],
        ['content-length', '3'],
      ],
    })
    expect(answer?.['changes']).toBeUndefined()
    expect((await tap.body(1, 'in')).equals(body)).toBe(true)
    expect([...(await tap.body(1, 'out'))]).toEqual([1, 2, 255])
    expect(await tap.events('end', 'aborted')).toMatchObject([
      { event: 'end', exchange: 1, dir: 'in' },
      { event: 'end', exchange: 1, dir: 'out' },
    ])
  })

  it('forwards chunked bodies as they come, with trailers', async () => {
    const { server, tap, client } = await connected()
    client.write(
      'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    )
    const peer = await server.connection()
    await peer.until(ends('3\r\nabc\r\n'))
    client.write('1\r\nd\r\n0\r\n\r\n')
    await peer.until(ends('1\r\nd\r\n0\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nxy\r\n')
    await client.until(ends('2\r\nxy\r\n'))
    peer.write('1\r\nz\r\n0\r\nX-T: 1\r\n\r\n')
    await client.until(ends('1\r\nz\r\n0\r\nX-T: 1\r\n\r\n'))
    expect((await tap.body(1, 'in')).toString()).toBe('abcd')
    expect((await tap.body(1, 'out')).toString()).toBe('xyz')
  })

  it('adds the length of a missing body, and records it', async () => {
    const { server, tap, client } = await connected()
    client.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    expect(await peer.until(ends('\r\n\r\n'))).toMatch(/Content-Length: 0\r\n\r\n$/)
    peer.write('HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n')
    await client.until(ends('\r\n\r\n'))
    const [request] = await tap.events('request')
    expect(request?.['changes']).toContainEqual({ name: 'Content-Length', to: '0' })
  })

  it('leaves out Trailer where there are no chunks, and records it', async () => {
    const { server, tap, client } = await connected()
    const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nTrailer: X-T\r\n'
    client.write(`${head}Content-Length: 2\r\n\r\n{}`)
    const peer = await server.connection()
    expect(await peer.until(ends('\r\n\r\n{}'))).not.toContain('Trailer')
    peer.write('HTTP/1.1 200 OK\r\nTrailer: X-T\r\nContent-Length: 2\r\n\r\n{}')
    await client.until(ends('200 OK\r\nContent-Length: 2\r\n\r\n{}'))
    const change = { name: 'Trailer', from: 'X-T' }
    for (const { changes } of await tap.events('request', 'response'))
      expect(changes).toContainEqual(change)
  })

  it('leaves out Trailer of a response without a body', async () => {
    const { server, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n')
    expect(await client.until(ends('\r\n\r\n'))).toMatch(/^HTTP\/1\.1 304 Not Modified\r\n/)
  })

  it('answers 502 if Node refuses to send a request, and serves the next one', async () => {
    const server = await ByteServer.listen()
    let refuses = true
    const tap = await tapOf(server.url, {
      prepare: (agent) => {
        if (refuses)
          Object.assign(agent, {
            addRequest: () => {
              throw new Error('this head is not valid')
            },
          })
        refuses = false
      },
    })
    const client = await ByteSocket.open(tap.port)
    client.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
    expect(await client.ended()).toMatch(
      /^HTTP\/1\.1 502 .*cannot forward this request: this head is not valid/s,
    )
    const next = await ByteSocket.open(tap.port)
    next.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    await next.until(ends('ok'))
    expect(await tap.events('error')).toMatchObject([{ exchange: 1, phase: 'request' }])
  })

  it('forwards any number of headers of a response', async () => {
    const { server, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    const headers = Array.from({ length: 2500 }, (_, index) => `X-${index}: 1\r\n`).join('')
    const response = `HTTP/1.1 200 OK\r\n${headers}Content-Length: 2\r\n\r\n{}`
    peer.write(response)
    expect(await client.until(ends('{}'))).toBe(response)
  })

  it('answers 502 to a server that switches protocols unasked', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 502 .*responds with 101/s)
    expect(await tap.events('error')).toMatchObject([{ exchange: 1, phase: 'response' }])
  })

  it('forwards and records interim responses', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload; as=style\r\n\r\n'
    const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'
    peer.write(
      `HTTP/1.1 102 Processing\r\n\r\n${hints}HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n${final}`,
    )
    expect(await client.until(ends('{}'))).toBe(`HTTP/1.1 102 Processing\r\n\r\n${hints}${final}`)
    expect(await tap.events('information')).toMatchObject([
      { exchange: 1, status: 102, isForwarded: true },
      { status: 103, headers: [['Link', expect.any(String)]], isForwarded: true },
      { status: 103, headers: [['X', '1']], isForwarded: false },
    ])
  })

  it('records what is forwarded of interim responses', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    const hints = (...headers: string[]) =>
      ['HTTP/1.1 103 Early Hints', ...headers, '', ''].join('\r\n')
    const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'
    // Node takes exponential time for such a link.
    const endless = `</a>${';a=b'.repeat(100)};"`
    peer.write(
      [
        'HTTP/1.1 100 Continue\r\n\r\n',
        'HTTP/1.1 102 Processing\r\nX: 1\r\n\r\n',
        hints('Link: </a>; rel=preload', 'X: 1', 'link: </b?c=1,2>; rel="preload"', 'X: 2'),
        hints('Link: </c>; rel=preload, </d>', 'Set-Cookie: a=1', 'Set-Cookie: b=2'),
        hints(`Link: ${endless}`),
        hints('Link: </e>; title="a, b"'),
        hints('Link: '),
        final,
      ].join(''),
    )
    expect(await client.until(ends('{}'))).toBe(
      [
        'HTTP/1.1 100 Continue\r\n\r\n',
        'HTTP/1.1 102 Processing\r\n\r\n',
        hints('Link: </a>; rel=preload, </b?c=1,2>; rel="preload"', 'X: 1, 2'),
        hints('Link: </c>; rel=preload, </d>', 'Set-Cookie: a=1'),
        final,
      ].join(''),
    )
    const removed = (name: string, from: string) => ({ name, from })
    const first = '</a>; rel=preload'
    const second = '</b?c=1,2>; rel="preload"'
    const events = await tap.events('information')
    expect(
      events.map(({ status, isForwarded, changes }) => [status, isForwarded, changes]),
    ).toEqual([
      [100, true, undefined],
      [102, true, [removed('X', '1')]],
      [
        103,
        true,
        [
          { name: 'Link', from: first, to: `${first}, ${second}` },
          { name: 'X', from: '1', to: '1, 2' },
          removed('link', second),
          removed('X', '2'),
        ],
      ],
      [103, true, [removed('Set-Cookie', 'b=2')]],
      [103, false, undefined],
      [103, false, undefined],
      [103, false, undefined],
    ])
  })

  it('forwards no interim responses to a client of HTTP/1.0', async () => {
    const { server, tap, client } = await connected()
    client.write('POST / HTTP/1.0\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
    expect(await client.until(ends('{}'))).toMatch(/^HTTP\/1\.1 200 /)
    expect(await tap.events('information')).toMatchObject([{ status: 100, isForwarded: false }])
  })

  it('sends heads on their own if the body is late', async () => {
    const { server, client } = await connected()
    client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n')
    const peer = await server.connection()
    await peer.until((text) => text.endsWith('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n')
    expect(await client.until(ends('\r\n\r\n'))).toContain('text/event-stream')
  })

  it('keeps a connection for several requests, and closes it when the server does', async () => {
    const { server, tap, client } = await connected()
    for (const path of ['/1', '/2']) {
      client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      const peer = await server.connection()
      await peer.until((text) => text.includes(`GET ${path} `) && text.endsWith('\r\n\r\n'))
      peer.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${path}`)
      await client.until(ends(path))
    }
    expect(server.accepted.length).toBe(1)
    const peer = await server.connection()
    peer.socket.end()
    await client.ended()
    expect((await tap.events('connect')).length).toBe(1)
  })

  it('sends pipelined requests over one connection, one after the other', async () => {
    const { server, tap, client } = await connected()
    const count = 20
    const warnings: Error[] = []
    const warned = (warning: Error) => warnings.push(warning)
    process.on('warning', warned)
    client.write(
      Array.from(
        { length: count },
        (_, i) => `POST /${i} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`,
      ).join(''),
    )
    const peer = await server.connection()
    for (let i = 0; i < count; i++) {
      const requests = await peer.until((text) => text.split('{}').length > i + 1)
      expect(requests.split('{}')).toHaveLength(i + 2)
      peer.write(`HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{${i % 10}}`)
    }
    await client.until((text) => text.split('HTTP/1.1 200').length > count && text.endsWith('{9}'))
    expect(server.accepted.length).toBe(1)
    expect(await tap.events('connect')).toHaveLength(1)
    process.off('warning', warned)
    expect(warnings).toEqual([])
  })

  it('keeps a connection that the server would soon close', async () => {
    const { server, client } = await connected()
    for (const path of ['/1', '/2']) {
      client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      const peer = await server.connection()
      await peer.until((text) => text.includes(`GET ${path} `) && text.endsWith('\r\n\r\n'))
      peer.write(`HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\n${path}`)
      await client.until(ends(path))
    }
    expect(server.accepted.length).toBe(1)
  })

  it('closes the connection to the server when the client does', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n')
    await client.until(ends('data: 1\n\n'))
    client.socket.destroy()
    await peer.ended()
    expect(await tap.events('aborted')).toMatchObject([{ exchange: 1, by: 'client' }])
  })

  it('passes on that a client has ended its connection, and the response that follows', async () => {
    const { server, tap, client } = await connected({ allowHalfOpen: true })
    client.socket.end('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
    const peer = await server.connection()
    await peer.ended()
    expect(peer.text).toMatch(/\r\n\r\n\{\}$/)
    peer.socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    expect(await client.ended()).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    expect(await tap.events('aborted')).toEqual([])
  })

  it('passes on the end of pipelined requests after the last one', async () => {
    const { server, tap, client } = await connected({ allowHalfOpen: true })
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    client.socket.end(request('/1') + request('/2'))
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1')
    await peer.ended()
    expect(peer.text.match(/GET \/\d/g)).toEqual(['GET /1', 'GET /2'])
    peer.socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2')
    const responses = (await client.ended()).split('Content-Length: 1\r\n\r\n').slice(1)
    expect(responses).toEqual(['1HTTP/1.1 200 OK\r\n', '2'])
    expect(await tap.events('aborted')).toEqual([])
  })

  it('records a server that ends after its client as the end of the client', async () => {
    const { server, tap, client } = await connected()
    client.socket.end('DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.ended()
    expect(await client.ended()).toBe('')
    expect(await tap.events('aborted')).toMatchObject([{ exchange: 1, by: 'client' }])
    expect(await tap.events('response')).toEqual([])
  })

  it('aborts the upload of a client that disconnects', async () => {
    const { server, tap, client } = await connected()
    client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc')
    const peer = await server.connection()
    await peer.until(ends('abc'))
    client.socket.destroy()
    await peer.ended()
    expect(await tap.events('aborted')).toMatchObject([{ exchange: 1, by: 'client' }])
    expect((await tap.body(1, 'in')).toString()).toBe('abc')
  })

  it('breaks off the response where the server does', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
    await client.until(ends('abc'))
    peer.socket.destroy()
    await client.ended()
    expect(client.text.endsWith('abc')).toBe(true)
    expect(await tap.events('aborted')).toMatchObject([{ exchange: 1, by: 'server' }])
  })

  it('closes the connection without a response if the server does', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.socket.destroy()
    expect(await client.ended()).toBe('')
    expect(await tap.events('aborted')).toMatchObject([{ exchange: 1, by: 'server' }])
  })

  it('ends a body with the connection if the server does, and for HTTP/1.0', async () => {
    const { server, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.0 200 OK\r\nContent-Type: x\r\n\r\nabc')
    await client.until(ends('abc'))
    peer.socket.end()
    expect(await client.ended()).toBe('HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\nabc')

    const tap = await tapOf(server.url)
    const old = await ByteSocket.open(tap.port)
    old.write('GET / HTTP/1.0\r\n\r\n')
    const second = await server.connection(1)
    expect(await second.until(ends('\r\n\r\n'))).toBe(
      `GET / HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nConnection: close\r\n\r\n`,
    )
    second.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n')
    expect(await old.ended()).toBe('HTTP/1.1 200 OK\r\n\r\nabc')
    const [response] = await tap.events('response')
    expect(response?.['changes']).toEqual([{ name: 'Transfer-Encoding', from: 'chunked' }])
  })

  it('passes on Expect and 100 Continue', async () => {
    const { server, client } = await connected()
    client.write(
      'POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n',
    )
    const peer = await server.connection()
    await peer.until((text) => text.includes('Expect: 100-continue') && text.endsWith('\r\n\r\n'))
    expect(client.text).toBe('')
    peer.write('HTTP/1.1 100 Continue\r\n\r\n')
    expect(await client.until(ends('\r\n\r\n'))).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    client.write('ab')
    await peer.until(ends('ab'))
    peer.write('HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n')
    await client.until((text) => text.includes('202 Accepted'))
  })

  it('passes on a response that comes instead of 100 Continue', async () => {
    const { server, client } = await connected()
    client.write(
      'POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n',
    )
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    await client.until((text) => text.startsWith('HTTP/1.1 413 Too Large\r\n'))
  })

  it('offers no upgrade to HTTP/2, and refuses others', async () => {
    const { server, tap, client } = await connected()
    client.write(
      'GET /1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nX: 1\r\n\r\n',
    )
    const peer = await server.connection()
    expect(await peer.until(ends('\r\n\r\n'))).toBe(
      `GET /1 HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nX: 1\r\nConnection: keep-alive\r\n\r\n`,
    )
    peer.write('HTTP/1.1 204 No Content\r\n\r\n')
    await client.until((text) => text.includes('204 No Content'))
    client.write(
      'GET /2 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    expect(await client.ended()).toContain('HTTP/1.1 501 Not Implemented')
    expect(peer.text).not.toContain('/2')
    expect(await tap.events('response')).toMatchObject([
      { status: 204 },
      { status: 501, by: 'tap' },
    ])
  })

  it.each([
    ['Host: evil.example', 403],
    ['Host: 127.0.0.1.evil.example:80', 403],
    ['Host: localhost\r\nOrigin: https://evil.example', 403],
    ['Host: localhost\r\nOrigin: null', 403],
    ['Host: localhost\r\nOrigin: http://localhost:6274', 200],
    ['Host: [::1]:7\r\nOrigin: http://[::1]:6274', 200],
    ['Host: 127.0.0.1\r\nOrigin: vscode-webview://x', 200],
  ])('checks %j', async (headers, status) => {
    const { server, client } = await connected()
    client.write(`GET /mcp HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`)
    if (status === 200) {
      const peer = await server.connection()
      await peer.until(ends('\r\n\r\n'))
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    }
    expect(await client.ended()).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    if (status !== 200) expect(server.accepted).toEqual([])
  })

  it('refuses a request target of another host, and forwards its own', async () => {
    const { server, client } = await connected()
    client.write('GET http://localhost:1/x?y HTTP/1.1\r\nHost: localhost:1\r\n\r\n')
    const peer = await server.connection()
    await peer.until((text) => text.startsWith('GET /x?y HTTP/1.1\r\n'))
    const other = await ByteSocket.open((await tapOf(server.url)).port)
    other.write('GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await other.ended()).toContain('403 Forbidden')
  })

  it('answers invalid requests itself, and serves the next connection', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost : x\r\n\r\n')
    expect(await client.ended()).toContain('400 Bad Request')
    const large = await ByteSocket.open(tap.port)
    large.write(`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`)
    expect(await large.ended()).toContain('431')
    const next = await ByteSocket.open(tap.port)
    next.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await server.connection()
    expect(await tap.events('error')).toMatchObject([{ phase: 'request' }, { phase: 'request' }])
  })

  it('answers 502 with the reason if the server cannot be reached', async () => {
    const server = await ByteServer.listen()
    const gone = await tapOf('http://ccmcp.invalid/mcp')
    const tlsToPlain = await tapOf(`https://127.0.0.1:${server.port}/mcp`)
    for (const [tap, phase] of [
      [gone, 'dns'],
      [tlsToPlain, 'tls'],
    ] as const) {
      const client = await ByteSocket.open(tap.port)
      client.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
      if (phase === 'tls') {
        const peer = await server.connection()
        await peer.until((text) => text.length > 0)
        peer.write('HTTP/1.1 400 Bad Request\r\n\r\n')
      }
      const text = await client.ended()
      expect(text).toContain('HTTP/1.1 502 Bad Gateway')
      expect(text).toContain(
        `ccmcp tap: cannot reach ${phase === 'dns' ? 'http://ccmcp' : 'https://127'}`,
      )
      expect(await tap.events('error')).toMatchObject([{ exchange: 1, phase }])
      expect(await tap.events('response')).toMatchObject([{ status: 502, by: 'tap' }])
      expect(await tap.events('end')).toHaveLength(2)
    }
  })

  it('says why a connection is refused', async () => {
    const server = await ByteServer.listen()
    const { url } = server
    const tap = await tapOf(url.replace(String(server.port), '1'))
    const client = await ByteSocket.open(tap.port)
    client.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
    expect(await client.ended()).toContain('check that the server runs, and its port')
    expect(await tap.events('error')).toMatchObject([{ phase: 'connect', code: 'ECONNREFUSED' }])
  })

  it('answers 502 if the server sends no HTTP', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('{"jsonrpc":"2.0"}\n')
    expect(await client.ended()).toContain('502 Bad Gateway')
    expect(await tap.events('error')).toMatchObject([{ phase: 'response' }])
  })

  it('answers 502 if a response cannot be forwarded, and serves the next one', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 099 Early\r\nContent-Length: 9\r\n\r\nabc')
    expect(await client.ended()).toContain('502 Bad Gateway')
    await peer.ended()
    const next = await ByteSocket.open(tap.port)
    next.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const second = await server.connection(1)
    await second.until(ends('\r\n\r\n'))
    second.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    await next.until(ends('ok'))
  })

  it('leads redirects within the server back to the tap', async () => {
    const { server, tap, client } = await connected()
    const origin = `http://127.0.0.1:${server.port}`
    for (const [index, location] of [
      `${origin}/mcp/?x=1#y`,
      'https://other/mcp',
      '/mcp/',
    ].entries()) {
      client.write('GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n')
      const peer = await server.connection()
      await peer.until((text) => text.split('\r\n\r\n').length > index + 1)
      peer.write(`HTTP/1.1 307 X\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`)
      await client.until((text) => text.split('\r\n\r\n').length > index + 1)
    }
    expect(client.text.match(/Location: .*/g)).toEqual([
      `Location: http://127.0.0.1:${tap.port}/mcp/?x=1#y`,
      'Location: https://other/mcp',
      'Location: /mcp/',
    ])
  })

  it.each([
    ['whole', 1000],
    ['byte by byte', 1],
  ])('rewrites the absolute endpoint of HTTP+SSE, sent %s', async (_, size) => {
    const { server, tap, client } = await connected()
    client.write('GET /sse HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n')
    await client.until(ends('\r\n\r\n'))
    const from = `http://127.0.0.1:${server.port}/message?s=1`
    const body = `: hello\n\nevent: endpoint\r\ndata: ${from}\r\n\r\ndata: ${from}\n\n`
    for (let at = 0; at < body.length; at += size) peer.write(body.slice(at, at + size))
    peer.socket.end()
    const to = `http://127.0.0.1:${tap.port}/message?s=1`
    expect((await client.ended()).split('\r\n\r\n').slice(1).join('\r\n\r\n')).toBe(
      `: hello\n\nevent: endpoint\r\ndata: ${to}\r\n\r\ndata: ${from}\n\n`,
    )
    expect((await tap.body(1, 'out')).toString()).toBe(body)
    expect(await tap.events('rewritten')).toMatchObject([
      { exchange: 1, dir: 'out', offset: body.indexOf(from), length: from.length, from, to },
    ])
  })

  it('leaves other event streams alone', async () => {
    const { server, tap, client } = await connected()
    client.write('GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n')
    await client.until(ends('\r\n\r\n'))
    peer.write(': keep-alive\n\n')
    await client.until(ends(': keep-alive\n\n'))
    peer.write('event: endpoint\ndata: /message\n\n')
    await client.until(ends('data: /message\n\n'))
    peer.write('data: x')
    await client.until(ends('data: x'))
    expect(await tap.events('rewritten')).toEqual([])
  })

  it('pauses the sender while the receiver does not read', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    client.socket.pause()
    const total = 32 * 1024 * 1024
    peer.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`)
    peer.socket.write(Buffer.alloc(total, 'x'))
    // Until the buffers of the system are full, or everything was taken.
    for (let before = -1, same = 0; same < 20 && peer.socket.writableLength > 0;) {
      await delay(5)
      same = before === peer.socket.writableLength ? same + 1 : 0
      before = peer.socket.writableLength
    }
    expect(peer.socket.writableLength).toBeGreaterThan(total / 2)
    client.socket.removeAllListeners('data')
    client.socket.resume()
    for (let received = 0; received < total;) {
      const [bytes] = (await once(client.socket, 'data')) as [Buffer]
      received += bytes.length
    }
    expect((await tap.body(1, 'out')).equals(Buffer.alloc(total, 'x'))).toBe(true)
  })

  it('pauses an upload while the server does not read', async () => {
    const { server, tap, client } = await connected()
    const total = 32 * 1024 * 1024
    client.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${total}\r\n\r\n`)
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.socket.pause()
    client.socket.write(Buffer.alloc(total, 'x'))
    for (let before = -1, same = 0; same < 20 && client.socket.writableLength > 0;) {
      await delay(5)
      same = before === client.socket.writableLength ? same + 1 : 0
      before = client.socket.writableLength
    }
    expect(client.socket.writableLength).toBeGreaterThan(total / 2)
    peer.socket.removeAllListeners('data')
    peer.socket.resume()
    for (let received = 0; received < total;) {
      const [bytes] = (await once(peer.socket, 'data')) as [Buffer]
      received += bytes.length
    }
    expect((await tap.body(1, 'in')).equals(Buffer.alloc(total, 'x'))).toBe(true)
  })

  it('ends streams and connections when it is closed, and says so', async () => {
    const { server, tap, client } = await connected()
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const peer = await server.connection()
    await peer.until(ends('\r\n\r\n'))
    peer.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n')
    await client.until(ends('\r\n\r\n'))
    await tap.close()
    await client.ended()
    await peer.ended()
    expect(await tap.events('aborted')).toMatchObject([{ by: 'tap' }])
    expect((await tap.records()).at(-1)).toMatchObject({ event: 'exit' })
  })
})

it.each([
  ['ENOTFOUND', 'dns'],
  ['EAI_AGAIN', 'dns'],
  ['ECONNREFUSED', 'connect'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
  ['HPE_INVALID_CONSTANT', 'response'],
])('classifies %s as %s', (code, phase) => {
  expect(failureOf(Object.assign(new Error('x'), { code })).phase).toBe(phase)
})
