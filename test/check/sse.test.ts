import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, type ServerResponse, createServer as createHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { afterEach, describe, expect, it } from 'vitest'
import { Analysis } from '../../src/capture/analysis.js'
import { CaptureReader, bytesOf } from '../../src/capture/format.js'
import type { Found } from '../../src/check/recording.js'
import { listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { CaptureFile } from '../../src/tap/capture-file.js'
import { schemas } from '../capture/lines.js'
import { checkUrl } from './live.js'

/* Servers with HTTP+SSE, the transport of 2024-11-05. */

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function serve(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createHttp(handle)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo // it listens on a port
  return `http://127.0.0.1:${port}`
}

type Answer = (method: string, stream: ServerResponse, post: ServerResponse) => object | undefined

const INITIALIZED = {
  result: {
    protocolVersion: '2024-11-05',
    capabilities: {},
    serverInfo: { name: 'old', version: '1' },
  },
}

/** A server whose responses `answer` may replace. */
async function scripted(answer: Answer, endpoint = '/messages?a=b'): Promise<string> {
  let stream: ServerResponse | undefined
  const url = await serve(async (request, response) => {
    if (request.method === 'GET') {
      // Only the first stream has the session.
      stream = response
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`: hello\n\nevent: endpoint\ndata: ${endpoint}\n\n`)
      return
    }
    const text = Buffer.concat(await request.toArray()).toString()
    if (request.url !== '/messages?a=b' || stream === undefined)
      return void response.writeHead(405).end()
    const { id, method } = JSON.parse(text) as { id?: unknown; method: string } // as the check sends it
    const standard = method === 'initialize' ? INITIALIZED : { result: {} }
    const replaced = answer(method, stream, response)
    if (!response.writableEnded) response.writeHead(202).end('Accepted')
    if (id === undefined || stream.writableEnded || response.statusCode >= 400) return
    const message = { jsonrpc: '2.0', id, ...(replaced ?? standard) }
    stream.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
  })
  return `${url}/sse`
}

const OPEN = 'initialize 2024-11-05'

/** Checks a scripted server; returns a probe with the records of its capture. */
async function captured(answer: Answer, name: string) {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-check-'))
  closing.push(() => rmSync(folder, { recursive: true }))
  const { probes } = await checkUrl(await scripted(answer), {
    only: [OPEN, name],
    captureOf: (probe) =>
      new CaptureFile(join(folder, probe), {
        transport: 'http',
        maxBytes: 1_000_000,
        failed(error) {
          throw error
        },
      }),
  })
  const probe = probes.find((each) => each.name === name)
  const records = new CaptureReader().push(readFileSync(probe?.capture ?? ''))
  /** The message that a finding names, as it is in the capture. */
  const messageAt = (found: Found | undefined): unknown => {
    const { exchange, dir, start, end } = found?.finding ?? {}
    const chunks = records.flatMap((record) =>
      record.type === 'chunk' && record.exchange === exchange && record.dir === dir
        ? [bytesOf(record)]
        : [],
    )
    return JSON.parse(Buffer.concat(chunks).subarray(start, end).toString())
  }
  return { probe, records, messageAt }
}

describe('a server with HTTP+SSE', () => {
  it('of the official SDK is probed, and has the findings that are known', async () => {
    const transports = new Map<string, SSEServerTransport>()
    const url = await serve((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
      if (request.method === 'GET' && pathname === '/sse') {
        const transport = new SSEServerTransport('/messages', response)
        transports.set(transport.sessionId, transport)
        const server = new McpServer({ name: 'sdk', version: '1' })
        server.registerTool('look', { annotations: { readOnlyHint: true } }, () => ({
          content: [{ type: 'text', text: 'x' }],
        }))
        void server.connect(transport)
      } else if (request.method === 'POST' && pathname === '/messages')
        void transports
          .get(searchParams.get('sessionId') ?? '')
          ?.handlePostMessage(request, response)
      else response.writeHead(404).end()
    })
    const { rules, revisions, transport, server, definitions, durations } = await checkUrl(
      `${url}/sse`,
    )
    expect(transport).toBe('sse')
    expect(server).toEqual({ name: 'sdk', version: '1' })
    expect(revisions).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
    expect([...(definitions?.listing('tools')?.items.keys() ?? [])]).toEqual(['look'])
    expect([...durations.groups.keys()]).toContain('tools/call look')
    expect(rules).toEqual([
      'unknown tool 2025-11-25: unknown-tool-error',
      'id beyond 2^53 2025-11-25: inexact-id',
      'foreign Origin 2025-11-25: origin-not-checked',
    ])
  })

  it('of ours has no findings', async () => {
    const look = tool({ name: 'look', annotations: { readOnlyHint: true }, run: () => 'x' })
    const open = await listen(createServer({ name: 'x', version: '1', tools: [look] }), {
      port: 0,
      legacySse: true,
    })
    closing.push(() => open.close(0))
    const { rules, transport, revisions } = await checkUrl(open.url.replace(/\/mcp$/, '/sse'))
    expect(transport).toBe('sse')
    expect(revisions.length).toBe(4)
    expect(rules).toEqual([])
  })

  it.each<[string, Answer, string]>([
    [
      'refuses a POST',
      (method, _stream, post) => {
        if (method === 'ping') post.writeHead(500).end()
        return undefined
      },
      `${OPEN}: http-status`,
    ],
    [
      'closes its stream',
      (method, stream) => {
        if (method === 'ping') stream.end()
        return undefined
      },
      `${OPEN}: crash`,
    ],
    [
      'sends a wrong error code',
      (method) =>
        method.startsWith('ccmcp') ? { error: { code: -32000, message: 'no' } } : undefined,
      'unknown method 2024-11-05: unknown-method-code',
    ],
  ])('that %s has a finding', async (_, answer, rule) => {
    const { rules } = await checkUrl(await scripted(answer), {
      only: [OPEN, 'unknown method 2024-11-05'],
    })
    expect(rules).toContain(rule)
  })

  it('is captured as by the tap, and findings name bytes of the capture', async () => {
    const { probe, records, messageAt } = await captured(
      (method) =>
        method.startsWith('ccmcp') ? { error: { code: -32000, message: 'nö' } } : undefined,
      'unknown method 2024-11-05',
    )
    const [found] = probe?.found ?? []
    expect(found?.finding).toMatchObject({ rule: 'unknown-method-code', dir: 'out' })
    expect(messageAt(found)).toMatchObject({ error: { code: -32000, message: 'nö' } })
    const analysis = new Analysis(schemas)
    const rows = [...records.flatMap((record) => analysis.add(record)), ...analysis.end()]
    expect(analysis.hasExited).toBe(true)
    const messages = rows.filter(({ kind }) => kind === 'request' || kind === 'response')
    expect(messages.map(({ kind, method, status }) => [kind, method, status])).toEqual(
      ['initialize', 'ccmcp_check_no_such/method', 'ping'].flatMap((method) => [
        ['request', method, undefined],
        ['response', method, method.startsWith('ccmcp') ? 'error' : 'ok'],
      ]),
    )
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
  })

  it('that refuses a request has a finding about its bytes in the capture', async () => {
    const { probe, messageAt } = await captured((method, _stream, post) => {
      if (method === 'ping') post.writeHead(500).end()
      return undefined
    }, OPEN)
    const [found] = probe?.found ?? []
    expect(found?.finding).toMatchObject({ rule: 'http-status', dir: 'in' })
    expect(messageAt(found)).toMatchObject({ method: 'ping' })
  })

  it('that names an endpoint of another origin gets no message', async () => {
    let count = 0
    const url = await scripted(() => void count++, 'http://example.com/messages')
    const { failure, revisions } = await checkUrl(url, { only: [OPEN] })
    expect(failure).toContain('another origin')
    expect([revisions, count]).toEqual([[], 0])
  })
})

it('a URL that has neither transport is no connection, and both are named', async () => {
  const url = await serve((_, response) => void response.writeHead(404).end())
  const { failure } = await checkUrl(`${url}/mcp`)
  expect(failure).toContain('HTTP 404')
  expect(failure).toContain('It is not an HTTP+SSE server either')
})
