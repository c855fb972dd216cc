import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { type IncomingHttpHeaders, type RequestOptions, request } from 'node:http'
import { type Socket, connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { contentSecurityPolicy } from '../../src/workbench/server/page-server.js'
import { Workplace, html } from './open-page.js'
import { sampleCapture } from './sample.js'

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

function get(url: string, options: RequestOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, ...options }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(pieces).toString(),
        }),
      )
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe('the server of the page', () => {
  const place = new Workplace()
  afterEach(() => place.closePages())
  afterAll(() => place.close())

  const content = sampleCapture().toString()
  async function started(newest?: () => string | undefined) {
    const path = place.file('secret.ndjson', content)
    const { url, server } = await place.serve(path, newest)
    const { origin, host, hash } = new URL(url)
    const headers = { Authorization: `Bearer ${hash.replace('#token=', '')}` }
    return { path, origin, host, headers, server, port: Number(new URL(url).port) }
  }

  it('has a new token of 256 bits each time', async () => {
    const tokens = [await started(), await started()].map(({ headers }) => headers.Authorization)
    expect(new Set(tokens).size).toBe(2)
    for (const token of tokens) expect(token).toMatch(/^Bearer [\w-]{43}$/)
  })

  it('gives the bytes of the capture to whoever has the token', async () => {
    const { origin, headers } = await started()
    const state = await get(`${origin}/api/capture`, { headers })
    expect(JSON.parse(state.body)).toEqual({
      id: 1,
      name: 'secret.ndjson',
      size: Buffer.byteLength(content),
      follow: false,
    })
    const whole = await get(`${origin}/api/bytes?id=1`, { headers })
    expect([whole.status, whole.body]).toEqual([206, content])
    const part = await get(`${origin}/api/bytes?id=1`, {
      headers: { ...headers, Range: 'bytes=2-5' },
    })
    expect(part.body).toBe(content.slice(2, 6))
    expect(part.headers['content-range']).toBe(`bytes 2-5/${Buffer.byteLength(content)}`)
    const beyond = await get(`${origin}/api/bytes?id=1`, {
      headers: { ...headers, Range: 'bytes=99999999-' },
    })
    expect(beyond.status).toBe(416)
    expect((await get(`${origin}/api/bytes?id=2`, { headers })).status).toBe(410)
  })

  it.each([
    ['no token', {}],
    ['another token', { Authorization: `Bearer ${'A'.repeat(43)}` }],
    ['a token of another length', { Authorization: 'Bearer x' }],
    ['another scheme', { Authorization: 'Basic eDp5' }],
  ])('answers 401 to %s', async (_, headers) => {
    const { origin } = await started()
    for (const path of ['/api/capture', '/api/bytes?id=1']) {
      const { status, body } = await get(`${origin}${path}`, { headers })
      expect([status, body]).toEqual([401, 'The token is missing or wrong\n'])
    }
  })

  it.each([
    ['another host', { Host: 'evil.example' }],
    ['another port', { Host: '127.0.0.1:1' }],
    ['another origin', { Origin: 'https://evil.example' }],
    ['an opaque origin', { Origin: 'null' }],
    ['another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['another port of this computer', { 'Sec-Fetch-Site': 'same-site' }],
  ])('answers 403 to %s, even with the token', async (_, more) => {
    const { origin, headers } = await started()
    for (const path of ['/', '/api/capture'])
      expect((await get(`${origin}${path}`, { headers: { ...headers, ...more } })).status).toBe(403)
  })

  const NAVIGATION = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }

  it.each(['cross-site', 'same-site', 'same-origin', 'none'])(
    'shows the page after a navigation, Sec-Fetch-Site: %s',
    async (site) => {
      const { origin } = await started()
      const headers = { ...NAVIGATION, 'Sec-Fetch-Site': site }
      const { status, body } = await get(origin, { headers })
      expect([status, body]).toEqual([200, html()])
    },
  )

  it.each([
    ['/', 'in a frame', { 'Sec-Fetch-Dest': 'iframe' }],
    ['/', 'as a script', { 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'script' }],
    ['/', 'with another host', { Host: 'evil.example' }],
    ['/', 'with another origin', { Origin: 'null' }],
    ['/api/capture', 'by a navigation', {}],
    ['/api/bytes?id=1', 'by a navigation', {}],
    ['/other', 'by a navigation', {}],
  ])('answers 403 if another site requests %s %s, even with the token', async (path, _, more) => {
    const { origin, headers } = await started()
    const sent = { ...headers, ...NAVIGATION, 'Sec-Fetch-Site': 'cross-site', ...more }
    expect((await get(`${origin}${path}`, { headers: sent })).status).toBe(403)
  })

  it('answers requests of its own page, also as localhost', async () => {
    const { origin, headers, port } = await started()
    const own = {
      ...headers,
      Host: `localhost:${port}`,
      Origin: `http://localhost:${port}`,
      'Sec-Fetch-Site': 'same-origin',
    }
    expect((await get(`${origin}/api/capture`, { headers: own })).status).toBe(200)
  })

  it.each([
    '/etc/passwd',
    '/../secret.ndjson',
    '/api/../../etc/passwd',
    '/api/bytes/%2e%2e%2fsecret.ndjson',
    '/api/run',
    '//evil.example/api/capture',
  ])('has no other page: %s', async (path) => {
    const { headers, port } = await started()
    const { status, body } = await get('http://127.0.0.1', { port, path, headers })
    expect([status, body]).toEqual([404, 'There is no such page\n'])
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('refuses %s', async (method) => {
    const { origin, headers } = await started()
    const { status, headers: answered } = await get(`${origin}/api/capture`, { method, headers })
    expect([status, answered.allow]).toEqual([405, 'GET, HEAD'])
    expect(answered['access-control-allow-origin']).toBeUndefined()
  })

  it('sends headers that isolate the page', async () => {
    const { origin } = await started()
    const { headers, status } = await get(origin)
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'same-origin',
      'content-security-policy': contentSecurityPolicy(html()),
    })
  })

  it('waits for news of a capture that is followed, and shows a newer one', async () => {
    let newest: string | undefined
    const { path, origin, headers } = await started(() => newest)
    const size = Buffer.byteLength(content)
    const news = get(`${origin}/api/capture?id=1&after=${size}`, { headers })
    appendFileSync(path, 'x')
    expect(JSON.parse((await news).body)).toMatchObject({ id: 1, size: size + 1, follow: true })
    const replaced = get(`${origin}/api/capture?id=1&after=${size + 1}`, { headers })
    newest = place.file('newer.ndjson', 'y')
    expect(JSON.parse((await replaced).body)).toEqual({
      id: 2,
      name: 'newer.ndjson',
      size: 1,
      follow: true,
    })
    expect((await get(`${origin}/api/bytes?id=1`, { headers })).status).toBe(410)
  })

  it('closes the oldest connections that have not shown the token, beyond 32', async () => {
    const { port, host, headers } = await started()
    const open = async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      onTestFinished(() => void socket.destroy())
      await once(socket, 'connect')
      return socket
    }
    const page = await open()
    const ask = async () => {
      const { Authorization } = headers
      page.write(
        `HEAD /api/capture HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${Authorization}\r\n\r\n`,
      )
      const [answer] = (await once(page, 'data')) as [Buffer]
      return answer.toString()
    }
    expect(await ask()).toMatch(/^HTTP\/1\.1 200/)
    const idle: Socket[] = []
    for (let count = 0; count < 40; count++) idle.push(await open())
    // 31 of 40 are left beside that of the page.
    for (const socket of idle.slice(0, 9)) if (!socket.closed) await once(socket, 'close')
    const late = await get(`http://${host}/api/capture`, { headers })
    expect(late.status).toBe(200)
    expect(idle.slice(10).every((socket) => !socket.closed)).toBe(true)
    expect(await ask()).toMatch(/^HTTP\/1\.1 200/)
  })

  it('ends open requests when it is closed', async () => {
    const { origin, headers, server } = await started(() => undefined)
    const waiting = get(`${origin}/api/capture?id=1&after=${Buffer.byteLength(content)}`, {
      headers,
    })
    const ended = expect(waiting).rejects.toThrow()
    await get(`${origin}/api/capture`, { headers })
    await server.close()
    await ended
  })
})

describe('the built page', () => {
  it('is smaller than 300 KB, compressed', () => {
    const size = gzipSync(html()).length
    expect(size).toBeLessThan(300 * 1024)
    // It is there.
    expect(size).toBeGreaterThan(20 * 1024)
  })

  it('allows exactly its own script and style, by their hashes', () => {
    const policy = contentSecurityPolicy(html())
    const hash = (text = '') => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
    const [, script] = /<script>([\s\S]*?)<\/script>/.exec(html()) ?? []
    const [, style] = /<style>([\s\S]*?)<\/style>/.exec(html()) ?? []
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${hash(script)}`,
      `style-src ${hash(style)}`,
      'worker-src blob:',
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
      'trusted-types worker',
      "frame-ancestors 'none'",
    ])
  })

  it('loads nothing from anywhere, and has no code of the server', () => {
    const page = html()
    const found = [
      /<(?:script|link|img|iframe)[^>]*\s(?:src|href)=(?!"data:)/,
      /@import|url\((?!["']?data:)/,
      /(?:from|import|require)\s*\(?["'`]node:/,
      /PageServer|timingSafeEqual/,
    ].filter((each) => each.test(page))
    expect(found).toEqual([])
  })
})
