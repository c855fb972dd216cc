import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import { beforeEach, describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import { type ListenOptions, listen } from '../../src/http.js'
import { type ServerOptions, createServer, tool } from '../../src/index.js'
import { serve } from '../../src/stdio.js'
import { otel } from '../../src/telemetry.js'
import { only, takeSpans } from './recorder.js'

type Line = Readonly<Record<string, unknown>>

const tools = [
  tool({
    name: 'tells',
    async run(_, call) {
      await Promise.resolve()
      call.log.warning('half way')
      return 'done'
    },
  }),
  tool({
    name: 'throws',
    run() {
      throw new TypeError('broken')
    },
  }),
]

const serverOf = (options: Partial<ServerOptions> = {}) =>
  createServer({ name: 'logs', version: '1', tools, telemetry: otel(), ...options })

beforeEach(() => void takeSpans())

/** What is logged while a tool is called over HTTP. */
async function logged(
  name: string,
  options: ListenOptions,
  { server = serverOf(), revision = '2025-11-25' } = {},
): Promise<void> {
  await using listening = await listen(server, { port: 0, ...options })
  await using client = await connect(http(listening.url), { revision })
  takeSpans()
  await client.callTool(name).catch(() => {})
}

const jsonLog = () => {
  const lines: Line[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Line) // one JSON object per line
  return { lines, log: { write } }
}

describe('log lines', () => {
  it('have the ids of request, session and trace', async () => {
    const { lines, log } = jsonLog()
    await logged('tells', { log })
    const { traceId, spanId } = only(takeSpans(), 'tools/call tells').spanContext()
    expect(lines).toEqual([
      {
        time: expect.any(String),
        level: 'warning',
        message: 'half way',
        requestId: expect.any(Number),
        sessionId: expect.stringMatching(/^[\w-]{12}$/),
        traceId,
        spanId,
      },
    ])
  })

  it('have the trace where a request has failed outside of its handler', async () => {
    const { lines, log } = jsonLog()
    const server = serverOf()
    server.use(() => {
      throw new TypeError('middleware')
    })
    await using listening = await listen(server, { port: 0, log })
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { name: 'tells', _meta: meta }
    const response = await fetch(listening.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'tells',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }),
    })
    await response.text()
    const { traceId, spanId } = only(takeSpans(), 'tools/call tells').spanContext()
    expect(lines).toMatchObject([{ level: 'error', requestId: 7, traceId, spanId }])
    expect(lines[0]).not.toHaveProperty('sessionId')
  })

  it('have no trace without telemetry', async () => {
    const { lines, log } = jsonLog()
    const server = createServer({ name: 'plain', version: '1', tools })
    await logged('tells', { log }, { server })
    expect(Object.keys(lines[0] ?? {})).toEqual([
      'time',
      'level',
      'message',
      'requestId',
      'sessionId',
    ])
  })

  it('are readable at a terminal', async () => {
    const lines: string[] = []
    const log = { isTTY: true, write: (line: string) => lines.push(line) }
    await logged('tells', { log })
    expect(lines.join('')).toMatch(
      /^warning: half way \(request \d+, session [\w-]{12}, trace [0-9a-f]{32}\)\n$/,
    )
  })
})

describe('a pino logger', () => {
  const pinoLog = (level: string) => {
    const lines: Line[] = []
    const write = (line: string) => void lines.push(JSON.parse(line) as Line) // as pino writes it
    return { lines, log: pino({ level, base: null }, { write }) }
  }

  it('gets fields and messages, by its own level', async () => {
    const { lines, log } = pinoLog('info')
    await logged('tells', { log })
    const { traceId, spanId } = only(takeSpans(), 'tools/call tells').spanContext()
    expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
      [30, 'Initialized by ccmcp, protocol 2025-11-25'],
      [40, 'half way'],
    ])
    expect(lines[1]).toMatchObject({
      requestId: expect.any(Number),
      sessionId: expect.any(String),
      traceId,
      spanId,
    })
  })

  it('gets errors with their type and stack', async () => {
    const { lines, log } = pinoLog('warn')
    await logged('throws', { log })
    expect(lines).toMatchObject([
      {
        level: 50,
        msg: expect.stringMatching(/^Tool throws failed/),
        err: { type: 'TypeError', message: 'broken', stack: expect.stringContaining('broken') },
      },
    ])
  })

  it('gets bounded text', async () => {
    const { lines, log } = pinoLog('debug')
    const long = 'x'.repeat(1_000_000)
    const fails = tool({
      name: 'fails',
      run(_, call) {
        call.log.info(long)
        throw new Error(long)
      },
    })
    await logged('fails', { log }, { server: serverOf({ tools: [fails] }) })
    expect(lines.length).toBeGreaterThan(2)
    for (const line of lines) expect(JSON.stringify(line).length).toBeLessThan(20_000)
  })

  it('is filtered by logLevel where that is given', async () => {
    const { lines, log } = pinoLog('debug')
    await logged('tells', { log, logLevel: 'error' })
    expect(lines).toEqual([])
  })

  it('can fail', async () => {
    const fail = () => {
      throw new Error('disk full')
    }
    const log = {
      debug: fail,
      info: fail,
      warn: () => Promise.reject(new Error('late')),
      error: fail,
    }
    await logged('tells', { log })
    only(takeSpans(), 'tools/call tells')
  })

  it('is the log of serve', async () => {
    const { lines, log } = pinoLog('debug')
    const [input, output] = [new PassThrough(), new PassThrough()]
    const ended = serve(serverOf(), { input, output, log })
    input.end('not JSON\n')
    output.resume()
    await ended
    expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining('Parse error') }])
  })
})
