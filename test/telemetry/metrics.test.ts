import { beforeEach, describe, expect, it } from 'vitest'
import { connect, http, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { RpcError, createServer, prompt, roots, tool } from '../../src/index.js'
import { otel } from '../../src/telemetry.js'
import {
  AggregationTemporality,
  MeterProvider,
  PeriodicExportingMetricReader,
  InMemoryMetricExporter,
} from '@opentelemetry/sdk-metrics'
import { pointsIn } from './recorder.js'

const BOUNDARIES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]

let exporter: InMemoryMetricExporter
let meterProvider: MeterProvider
beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  meterProvider = new MeterProvider({ readers: [reader] })
})

const pointsOf = async (name: string) => {
  exporter.reset()
  await meterProvider.forceFlush()
  return pointsIn(exporter, name)
}

const tools = [
  tool({ name: 'quick', run: () => 'done' }),
  tool({ name: 'bad', run: () => ({ content: [], isError: true }) }),
]
const serverOf = () =>
  createServer({
    name: 'measured',
    version: '1',
    tools,
    prompts: [prompt({ name: 'greet', build: () => 'hello' })],
    telemetry: otel({ meterProvider }),
  })

describe('operation durations', () => {
  it('are histograms in seconds, with the boundaries and attributes of the conventions', async () => {
    await using client = await connect(memory(serverOf()), {
      revision: '2025-11-25',
      telemetry: otel({ meterProvider }),
    })
    await client.callTool('quick')
    await client.callTool('quick')
    await client.callTool('bad')
    await client.getPrompt('greet')
    for (const side of ['server', 'client']) {
      const { unit, points } = await pointsOf(`mcp.${side}.operation.duration`)
      expect(unit).toBe('s')
      const of = (wanted: object) =>
        points.find(({ attributes }) => JSON.stringify(attributes) === JSON.stringify(wanted))
      const called = {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'quick',
        'mcp.protocol.version': '2025-11-25',
      }
      expect(of(called)).toMatchObject({ value: 2, boundaries: BOUNDARIES })
      const bad = { ...called, 'gen_ai.tool.name': 'bad', 'error.type': 'tool_error' }
      expect(of(bad)).toMatchObject({ value: 1 })
      const prompted = {
        'mcp.method.name': 'prompts/get',
        'gen_ai.prompt.name': 'greet',
        'mcp.protocol.version': '2025-11-25',
      }
      expect(of(prompted)).toMatchObject({ value: 1 })
      expect(points.map(({ attributes }) => attributes['mcp.method.name'])).toContain('initialize')
    }
  })

  it('have no attribute that a peer chooses', async () => {
    await using client = await connect(memory(serverOf()), { revision: '2025-11-25' })
    for (let i = 0; i < 300; i++) {
      await client.request('tools/call', { name: `tool-${i}` }).catch(() => {})
      await client.request('prompts/get', { name: `prompt-${i}` }).catch(() => {})
      await client.request(`method/${i}`).catch(() => {})
      client.notify(`notifications/${i}`)
    }
    const { points } = await pointsOf('mcp.server.operation.duration')
    expect(points.length).toBeLessThan(10)
    const names = points.flatMap(({ attributes }) => Object.values(attributes))
    expect(names).toContain('_OTHER')
    expect(names.filter((value) => /\d$/.test(String(value)))).toEqual(
      names.filter((value) => /^-32\d+$|^2025/.test(String(value))),
    )
  })

  it('of a client have a limited number of tool names and error codes', async () => {
    const server = createServer({
      name: 'many',
      version: '1',
      tools: [],
      handle: () => 'done',
    })
    for (let i = 0; i < 300; i++) server.tools.add(tool({ name: `tool-${i}`, run: () => 'done' }))
    await using client = await connect(memory(server), {
      revision: '2025-11-25',
      telemetry: otel({ meterProvider }),
    })
    for (let i = 0; i < 300; i++) await client.callTool(`tool-${i}`)
    const { points } = await pointsOf('mcp.client.operation.duration')
    const names = new Set(points.map(({ attributes }) => attributes['gen_ai.tool.name']))
    expect(names.size).toBeLessThanOrEqual(202)
    expect(names).toContain('_OTHER')
  })

  it('have no error code that a peer chooses; known codes are not displaced', async () => {
    const telemetry = otel({ meterProvider })
    let code = 0
    const asks = tool({
      name: 'asks',
      run: async (_, call) => {
        const failed = await call.ask({ all: roots() }).catch((error: unknown) => error)
        throw failed instanceof Error ? new RpcError(code, failed.message) : failed
      },
    })
    const local = tool({
      name: 'local',
      run: () => Promise.reject(new RpcError(-32602, 'a code of the protocol')),
    })
    const server = createServer({ name: 'codes', version: '1', tools: [asks, local], telemetry })
    await using client = await connect(memory(server), {
      revision: '2025-11-25',
      telemetry,
      roots: () => {
        throw new RpcError(code, 'a code of the client')
      },
    })
    for (code = 1; code <= 250; code++) await client.callTool('asks').catch(() => {})
    await client.callTool('local').catch(() => {})
    for (const side of ['server', 'client']) {
      const { points } = await pointsOf(`mcp.${side}.operation.duration`)
      const valuesOf = (name: string) => new Set(points.map(({ attributes }) => attributes[name]))
      const known = new Set(['-32602', '_OTHER', undefined])
      expect(valuesOf('error.type')).toEqual(known)
      expect(valuesOf('rpc.response.status_code')).toEqual(known)
    }
  })

  it('have no session id and no request id', async () => {
    await using listening = await listen(serverOf(), { port: 0 })
    await using client = await connect(http(listening.url), {
      revision: '2025-11-25',
      telemetry: otel({ meterProvider }),
    })
    await client.callTool('quick')
    const { points } = await pointsOf('mcp.server.operation.duration')
    const keys = new Set(points.flatMap(({ attributes }) => Object.keys(attributes)))
    expect([...keys].toSorted()).toEqual([
      'gen_ai.operation.name',
      'gen_ai.tool.name',
      'mcp.method.name',
      'mcp.protocol.version',
      'network.protocol.name',
      'network.transport',
    ])
    const sent = await pointsOf('mcp.client.operation.duration')
    expect(sent.points[0]?.attributes).toMatchObject({
      'server.address': '127.0.0.1',
      'server.port': listening.port,
    })
  })
})

describe('sessions and requests in progress', () => {
  it('are counted, and sessions have a duration on both sides', async () => {
    let free = () => {}
    let entered = () => {}
    const begun = new Promise<void>((resolve) => (entered = resolve))
    const waits = tool({
      name: 'waits',
      run: () => {
        entered()
        return new Promise((resolve) => (free = () => resolve('done')))
      },
    })
    const telemetry = otel({ meterProvider })
    const server = createServer({ name: 'open', version: '1', tools: [waits], telemetry })
    const client = await connect(memory(server), { revision: '2025-11-25', telemetry })
    const call = client.callTool('waits')
    await begun
    const now = async (name: string) => (await pointsOf(name)).points[0]?.value
    for (const side of ['server', 'client']) {
      expect(await now(`ccmcp.${side}.active_requests`)).toBe(1)
      expect(await now(`ccmcp.${side}.active_sessions`)).toBe(1)
      expect((await pointsOf(`mcp.${side}.session.duration`)).points).toEqual([])
    }
    free()
    await call
    await client.close()
    await new Promise((resolve) => setImmediate(resolve))
    for (const side of ['server', 'client']) {
      expect(await now(`ccmcp.${side}.active_requests`)).toBe(0)
      expect(await now(`ccmcp.${side}.active_sessions`)).toBe(0)
      const { unit, points } = await pointsOf(`mcp.${side}.session.duration`)
      expect(unit).toBe('s')
      expect(points).toMatchObject([
        { attributes: { 'mcp.protocol.version': '2025-11-25' }, value: 1, boundaries: BOUNDARIES },
      ])
    }
  })

  it('stateless requests are no sessions', async () => {
    const telemetry = otel({ meterProvider })
    const client = await connect(memory(serverOf()), { revision: '2026-07-28', telemetry })
    await client.callTool('quick')
    await client.close()
    for (const side of ['server', 'client'])
      expect((await pointsOf(`mcp.${side}.session.duration`)).points).toEqual([])
  })
})
