import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import { loadSchemaChecks } from '../../src/capture/schema-check.js'
import { connect, http } from '../../src/client.js'
import { type ListenOptions, listen } from '../../src/http.js'
import { type Server, createServer as createMcpServer, form, tool } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { ROOT } from '../stdio/child.js'
import { type TestTap, tapOf } from './http-taps.js'

/* Real clients and servers with the HTTP tap between them. */

const schemas = await loadSchemaChecks()

async function rowsOf(tap: TestTap): Promise<Row[]> {
  const analysis = new Analysis(schemas)
  return [...(await tap.records()).flatMap((record) => analysis.add(record)), ...analysis.end()]
}

function server(): Server {
  return createMcpServer({
    name: 'tapped',
    version: '1.0.0',
    tools: [
      tool({
        name: 'work',
        description: 'Reports progress.',
        run(_, call) {
          call.progress(1, 2)
          return 'done'
        },
      }),
      tool({
        name: 'fail',
        description: 'Fails.',
        run() {
          throw new Error('failed')
        },
      }),
      tool({
        name: 'question',
        description: 'Asks.',
        async run(_, call) {
          const schema = {
            type: 'object',
            properties: { name: { type: 'string' } },
            required: ['name'],
          } as const
          const { who } = await call.ask({ who: form({ message: 'Your name?', schema }) })
          return `Hello ${who.name}`
        },
      }),
    ],
  })
}

async function listening(options: ListenOptions = {}) {
  const made = await listen(server(), { port: 0, log: { write() {} }, ...options })
  onTestFinished(() => made.close(0))
  return made
}

async function use(url: string, revision: string): Promise<void> {
  const client = await connect(http(url), {
    revision,
    elicit: () => ({ action: 'accept', content: { name: 'Eva' } }),
  })
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  expect(names).toContain('work')
  const { content } = await client.callTool('work', {}, { onProgress() {} })
  expect(content).toMatchObject([{ text: 'done' }])
  expect((await client.callTool('fail', {})).isError).toBe(true)
  if (revision >= '2025-06-18')
    expect((await client.callTool('question', {})).content).toMatchObject([{ text: 'Hello Eva' }])
  await client.close()
}

describe('sessions through the HTTP tap', () => {
  it.each(revisions.map(({ id }) => [id]))('of %s have no findings', async (revision) => {
    const tap = await tapOf((await listening({ legacySse: true })).url)
    await use(tap.tap.url, revision)
    const rows = await rowsOf(tap)
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
    expect(
      rows.filter(
        ({ kind, target }) => kind === 'response' && (target === 'work' || target === 'fail'),
      ),
    ).toMatchObject([
      { status: 'ok', method: 'tools/call', revision, progress: 1 },
      { status: 'error', revision },
    ])
    expect(rows.filter(({ kind }) => kind === 'invalid' || kind === 'unanswered')).toEqual([])
  })

  it('of several clients at the same time are kept apart', async () => {
    const tap = await tapOf((await listening()).url)
    const used = revisions.map(({ id }) => id).filter((id) => id !== '2024-11-05')
    await Promise.all([...used, ...used].map((revision) => use(tap.tap.url, revision)))
    const rows = await rowsOf(tap)
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
    expect(
      rows.filter(({ kind, target }) => kind === 'response' && target === 'work'),
    ).toHaveLength(8)
  })

  it('of the official SDK have no findings, over both transports', async () => {
    const { url } = await listening({ legacySse: true })
    for (const [path, Transport] of [
      ['/mcp', StreamableHTTPClientTransport],
      ['/sse', SSEClientTransport],
    ] as const) {
      const tap = await tapOf(new URL(path, url).href)
      const client = new Client({ name: 'sdk', version: '1' })
      await client.connect(new Transport(new URL(tap.tap.url)))
      expect((await client.listTools()).tools).toHaveLength(3)
      await client.callTool({ name: 'work', arguments: {} }, undefined, { onprogress() {} })
      await client.ping()
      await client.close()
      const rows = await rowsOf(tap)
      expect(rows.flatMap(({ findings }) => findings)).toEqual([])
      expect(
        rows
          .filter(({ kind }) => kind === 'response')
          .map(({ method, status }) => [method, status]),
      ).toEqual([
        ['initialize', 'ok'],
        ['tools/list', 'ok'],
        ['tools/call', 'ok'],
        ['ping', 'ok'],
      ])
    }
  })

  it('with a server over HTTPS are verified with its authority', async () => {
    const file = (name: string) => readFileSync(`${ROOT}test/http/tls/${name}`, 'utf8')
    const tls = { cert: file('cert.pem'), key: file('key.pem') }
    const { port } = await listening({ tls })
    const trusting = await tapOf(`https://localhost:${port}/mcp`, { ca: file('cert.pem') })
    await use(trusting.tap.url, '2025-11-25')
    expect((await trusting.events('connect'))[0]).toEqual({
      type: 'event',
      event: 'connect',
      ns: expect.any(Number) as number,
      connection: 1,
      address: expect.stringMatching(/^(?:127\.0\.0\.1|::1)$/) as string,
      port,
      tls: 'TLSv1.3',
      cipher: expect.stringMatching(/^TLS_/) as string,
    })
    const distrusting = await tapOf(`https://localhost:${port}/mcp`)
    const response = await fetch(distrusting.tap.url, { method: 'POST', body: '{}' })
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('--ca FILE')
    expect(await distrusting.events('error')).toMatchObject([
      { phase: 'tls', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    ])
  })

  it('with compressed responses are stored raw and decoded', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { text: 'x'.repeat(1000) } })
    const upstream = createServer((_, response) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }
      response.writeHead(200, headers).end(gzipSync(body))
    })
    upstream.listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    onTestFinished(() => void upstream.close())
    const { port } = upstream.address() as AddressInfo
    const tap = await tapOf(`http://127.0.0.1:${port}/mcp`)
    const response = await fetch(tap.tap.url, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x' }),
    })
    expect(await response.text()).toBe(body)
    upstream.closeAllConnections()
    expect((await tap.body(1, 'out')).equals(gzipSync(body))).toBe(true)
    const rows = await rowsOf(tap)
    expect(rows.find(({ kind }) => kind === 'response')).toMatchObject({
      id: '1',
      status: 'ok',
      coding: 'gzip',
      end: body.length,
    })
  })
})

describe('the capture of the HTTP tap', () => {
  it('can be read by its owner only', async () => {
    const tap = await tapOf((await listening()).url)
    await use(tap.tap.url, '2025-11-25')
    await tap.close()
    expect(statSync(tap.path).mode & 0o777).toBe(0o600)
  })

  it.runIf(process.platform === 'linux').each(['/dev/full', '/no/such/folder/x.ndjson'])(
    'that cannot be written to %s does not affect the traffic',
    async (path) => {
      const tap = await tapOf((await listening()).url, { path })
      for (const revision of ['2025-11-25', '2026-07-28']) await use(tap.tap.url, revision)
    },
  )

  it('has a maximum size, and says what was dropped', async () => {
    const tap = await tapOf((await listening()).url, { maxBytes: 3000 })
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x'.repeat(5000) })
    let sent = 0
    for (let i = 0; i < 10; i++) {
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      }
      const response = await fetch(tap.tap.url, { method: 'POST', body, headers })
      await response.text()
      sent += body.length
    }
    const records = await tap.records()
    const recorded = records.flatMap((record) =>
      record.type === 'chunk' && record.dir === 'in' ? [record.text?.length ?? 0] : [],
    )
    const dropped = await tap.events('dropped')
    expect(dropped[0]).toMatchObject({ reason: 'the maximum size' })
    expect(dropped.at(-1)?.['in']).toBe(sent - recorded.reduce((sum, each) => sum + each, 0))
    expect((await tap.events('request')).length).toBeLessThan(10)
    expect(dropped.at(-1)?.['events']).toBeGreaterThan(10)
    expect(statSync(tap.path).size).toBeLessThan(20_000)
    expect((await tap.events('exit')).length).toBe(1)
    const rows = await rowsOf(tap)
    expect(rows.flatMap(({ findings }) => findings.map(({ rule }) => rule))).toEqual([])
  })

  it('is readable after a crash at any byte', async () => {
    const tap = await tapOf((await listening()).url)
    await use(tap.tap.url, '2025-11-25')
    await tap.close()
    const bytes = readFileSync(tap.path)
    const { CaptureReader } = await import('../../src/capture/format.js')
    for (let length = 0; length < bytes.length; length += 7) {
      const reader = new CaptureReader()
      const analysis = new Analysis(new Map())
      const records = [...reader.push(bytes.subarray(0, length)), ...reader.end()]
      const rows = [...records.flatMap((record) => analysis.add(record)), ...analysis.end()]
      expect(reader.unreadable).toBeLessThanOrEqual(1)
      expect(rows.flatMap(({ findings }) => findings)).toEqual([])
    }
  })
})
