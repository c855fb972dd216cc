import { type IncomingMessage, type ServerResponse, createServer as createHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { afterEach, describe, expect, it } from 'vitest'
import { listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
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
