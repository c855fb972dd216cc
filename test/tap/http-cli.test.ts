import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { type RequestListener, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest'
import { CaptureReader, type CaptureRecord } from '../../src/capture/format.js'
import { CLI, cli } from '../cli/command.js'
import { Child, killAll } from '../stdio/child.js'
import { ByteSocket } from './http-taps.js'

/* `ccmcp tap URL`, as a user starts it. */

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-tap-'))
})
afterEach(async () => {
  await killAll()
  rmSync(folder, { recursive: true, force: true })
})

async function upstream(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function tap(...args: string[]): Child {
  return new Child(process.execPath, [CLI, 'tap', ...args], { env: { XDG_STATE_HOME: folder } })
}

function capture(): { path: string; records: CaptureRecord[] } {
  const captures = join(folder, 'ccmcp', 'captures')
  const [name = ''] = readdirSync(captures)
  const reader = new CaptureReader()
  const path = join(captures, name)
  return { path, records: [...reader.push(readFileSync(path)), ...reader.end()] }
}

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'prints its URL, and ends with a complete capture after %s, also while a stream is open',
  async (signal) => {
    const url = await upstream((request, response) => {
      if (request.method === 'GET')
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
      else response.end('{}')
    })
    const child = tap(`${url}/mcp?x=1`)
    const local = await child.line(0)
    expect(local).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\?x=1$/)
    await (await fetch(local, { method: 'POST', body: '{}' })).text()
    const stream = await fetch(local)
    const reading = stream.text().catch(() => 'broken off')
    child.give(signal)
    await child.closed()
    await reading
    expect(child.code).toBe(0)
    const { path, records } = capture()
    expect(path).toMatch(/Z-127\.0\.0\.1-\d+\.ndjson$/)
    expect(child.stderr).toBe(`ccmcp: recording to ${path}\n`)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(records[0]).toMatchObject({ type: 'capture', transport: 'http' })
    expect(records[1]).toMatchObject({ event: 'listen', url: local, target: `${url}/mcp?x=1` })
    expect(records).toContainEqual(expect.objectContaining({ event: 'aborted', by: 'tap' }))
    expect(records.at(-1)).toMatchObject({ event: 'exit', signal })
  },
)

it('lets a call that is in progress end', async () => {
  const finish: (() => void)[] = []
  const url = await upstream((_, response) => void finish.push(() => response.end('late')))
  const child = tap(url)
  const calling = fetch(await child.line(0), { method: 'POST', body: '{}' })
  await expect.poll(() => finish.length).toBe(1)
  child.give('SIGTERM')
  // It refuses new connections before it ends.
  const port = Number(new URL(child.lines[0] ?? '').port)
  const isOpen = () =>
    ByteSocket.open(port).then(
      ({ socket }) => Boolean(socket.destroy()),
      () => false,
    )
  await expect.poll(isOpen).toBe(false)
  finish[0]?.()
  expect(await (await calling).text()).toBe('late')
  await child.closed()
  expect(
    capture().records.filter((record) => record.type === 'event' && record.event === 'aborted'),
  ).toEqual([])
})

it('passes on challenges of OAuth unchanged, and the requests for metadata', async () => {
  const seen: string[] = []
  const url = await upstream((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization ?? ''}`)
    if (request.url === '/mcp')
      response.writeHead(401, {
        'WWW-Authenticate': `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource"`,
      })
    response.end(JSON.stringify({ resource: `${url}/mcp` }))
  })
  const child = tap(`${url}/mcp`)
  const local = await child.line(0)
  const refused = await fetch(local, { method: 'POST', headers: { Authorization: 'Bearer x' } })
  expect(refused.status).toBe(401)
  expect(refused.headers.get('www-authenticate')).toBe(
    `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource"`,
  )
  const metadata = await fetch(new URL('/.well-known/oauth-protected-resource', local))
  expect(await metadata.json()).toEqual({ resource: `${url}/mcp` })
  expect(seen).toEqual(['/mcp Bearer x', '/.well-known/oauth-protected-resource '])
})

it('reports a port that is in use', async () => {
  const url = await upstream(() => {})
  const { code, stderr } = await cli([
    'tap',
    url,
    '--port',
    new URL(url).port,
    '--capture',
    join(folder, 'x'),
  ])
  expect(stderr).toContain('is in use; choose another with --port')
  expect(code).toBe(2)
})

it.each([
  [['tap', 'http://user:x@127.0.0.1/'], 'must not contain a user name'],
  [['tap', 'http://'], 'is not a URL'],
  [['tap', 'http://127.0.0.1/', '--port', 'x'], '--port must be a number'],
  [['tap', 'https://127.0.0.1/', '--ca', '/no/such/file'], '--ca: ENOENT'],
  [['tap', '--port', '1', '--', 'node'], '--port is for a server at a URL'],
  [['tap', 'text', '--ca', 'x'], '--ca is for a server at a URL'],
])('rejects %j', async (args, message) => {
  const { code, stderr } = await cli(args)
  expect(stderr).toContain(message)
  expect(code).toBe(2)
})
