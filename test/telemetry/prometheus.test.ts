import { type IncomingMessage, request as httpRequest } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { connect, http, memory } from '../../src/client.js'
import { scriptedServer } from '../client/scripted-server.js'
import { createServer, tool } from '../../src/index.js'
import { type MetricsOptions, listenMetrics, prometheus } from '../../src/prometheus.js'
import { otel } from '../../src/telemetry.js'
import { PrometheusMeter } from '../../src/telemetry/prometheus-meter.js'
import { CLI } from '../cli/command.js'
import { Child, killAll } from '../stdio/child.js'
import { only, takeSpans } from './recorder.js'

const tools = [
  tool({ name: 'quick', run: () => 'done' }),
  tool({ name: 'bad', run: () => ({ content: [], isError: true }) }),
]
const CALL = 'mcp_server_operation_duration_seconds'
const labels = (name: string) =>
  `mcp_method_name="tools/call",gen_ai_operation_name="execute_tool",gen_ai_tool_name="${name}",mcp_protocol_version="2025-11-25"`

describe('prometheus()', () => {
  it('counts calls in the buckets of a histogram', async () => {
    const metrics = prometheus()
    const server = createServer({ name: 'measured', version: '1', tools, telemetry: metrics })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    for (let i = 0; i < 3; i++) await client.callTool('quick')
    await client.callTool('bad')
    const lines = metrics.text().split('\n')
    expect(lines).toContain(`# TYPE ${CALL} histogram`)
    expect(lines).toContain(`${CALL}_bucket{${labels('quick')},le="+Inf"} 3`)
    expect(lines).toContain(`${CALL}_count{${labels('quick')}} 3`)
    expect(lines).toContain(`${CALL}_count{${labels('bad')},error_type="tool_error"} 1`)
    expect(lines).toContain('ccmcp_server_active_sessions 1')
    expect(lines).toContain('ccmcp_server_active_requests 0')
    expect(lines.at(-1)).toBe('')
  })

  it('is one of several', async () => {
    const metrics = prometheus()
    const telemetry = [otel(), metrics]
    const server = createServer({ name: 'both', version: '1', tools, telemetry })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    takeSpans()
    await client.callTool('quick')
    only(takeSpans(), 'tools/call quick')
    expect(metrics.text()).toContain(`${CALL}_count{${labels('quick')}} 1`)
  })

  it('has cumulative buckets, in the order of their boundaries', () => {
    const meter = new PrometheusMeter()
    for (const seconds of [0, 0.01, 0.011, 299, 301, 1e9])
      meter.record('ccmcp.task.duration', seconds, {})
    const counts = [...meter.text().matchAll(/_bucket\{le="([^"]+)"\} (\d+)/g)]
    expect(counts.map(([, boundary, count]) => `${boundary} ${count}`)).toEqual([
      '0.01 2',
      '0.02 3',
      ...['0.05', '0.1', '0.2', '0.5', '1', '2', '5', '10', '30', '60', '120'].map((b) => `${b} 3`),
      '300 4',
      '+Inf 6',
    ])
    expect(meter.text()).toContain('ccmcp_task_duration_seconds_count{} 6')
  })

  it('escapes values of labels', () => {
    const meter = new PrometheusMeter()
    meter.record('ccmcp.task.duration', 1, { 'gen_ai.tool.name': 'a"b\\c\nd' })
    expect(meter.text()).toContain('_count{gen_ai_tool_name="a\\"b\\\\c\\nd"} 1')
  })

  it('has a limited number of series', () => {
    const meter = new PrometheusMeter()
    for (let i = 0; i < 2000; i++) meter.record('ccmcp.task.duration', 1, { tool: `${i}` })
    const counts = [...meter.text().matchAll(/^\S+_count\{(\S+)\} (\d+)$/gm)]
    expect(counts).toHaveLength(501)
    expect(counts.at(-1)?.slice(1)).toEqual(['otel_metric_overflow="true"', '1500'])
  })
})

describe('listenMetrics()', () => {
  const get = async (options: {
    port: number
    path?: string
    method?: string
    headers?: Record<string, string>
  }): Promise<{ status: number | undefined; text: string; type: string | undefined }> => {
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      httpRequest({ host: '127.0.0.1', path: '/metrics', ...options, agent: false }, resolve)
        .on('error', reject)
        .end(),
    )
    const { statusCode: status, headers } = response
    return { status, text: await textOf(response), type: headers['content-type'] }
  }

  it('serves the text of the metrics', async () => {
    const metrics = prometheus()
    const server = createServer({ name: 'measured', version: '1', tools, telemetry: metrics })
    await using client = await connect(memory(server))
    await client.callTool('quick')
    await using listening = await listenMetrics(metrics, { port: 0 })
    expect(listening.url).toBe(`http://127.0.0.1:${listening.port}/metrics`)
    const answer = await get(listening)
    expect(answer.status).toBe(200)
    expect(answer.type).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.text).toBe(metrics.text())
    expect((await get({ port: listening.port, method: 'HEAD' })).text).toBe('')
    expect((await get({ port: listening.port, path: '/metrics?x=1' })).status).toBe(200)
  })

  it.each([
    ['a foreign Host', { headers: { host: 'evil.example' } }, 403],
    [
      'a Host that only starts like a local one',
      { headers: { host: '127.0.0.1.evil.example' } },
      403,
    ],
    ['an Origin', { headers: { origin: 'https://evil.example' } }, 403],
    ['another path', { path: '/' }, 404],
    ['another method', { method: 'POST' }, 405],
  ])('refuses %s', async (_, options, status) => {
    await using listening = await listenMetrics(prometheus(), { port: 0 })
    expect((await get({ port: listening.port, ...options })).status).toBe(status)
  })

  it('accepts Host names that are listed', async () => {
    const hosts = ['metrics.example']
    await using listening = await listenMetrics(prometheus(), { port: 0, hosts })
    const headers = { host: 'Metrics.example:9464' }
    expect((await get({ port: listening.port, headers })).status).toBe(200)
  })

  it('refuses an address that others can reach, a port in use and unknown options', async () => {
    const failed = (options: MetricsOptions) =>
      listenMetrics(prometheus(), options).catch((error: unknown) => error)
    expect(await failed({ host: '0.0.0.0', port: 0 })).toMatchObject({
      code: 'UNAUTHENTICATED_BIND',
    })
    await using listening = await listenMetrics(prometheus(), { port: 0 })
    expect(await failed({ port: listening.port })).toMatchObject({ code: 'EADDRINUSE' })
    // @ts-expect-error: not an option
    expect(await failed({ prot: 1 })).toMatchObject({ code: 'UNKNOWN_OPTION' })
  })
})

describe('ccmcp serve --http --metrics', () => {
  afterEach(killAll)

  it('serves metrics of the server on another port', async () => {
    const args = ['serve', '--http', '--port', '0', '--metrics', '0']
    const child = new Child(process.execPath, [CLI, ...args])
    await child.said('serving metrics at')
    const [, url = ''] = /serving (http\S+)/.exec(child.stderr) ?? []
    const [, metrics = ''] = /serving metrics at (http\S+)/.exec(child.stderr) ?? []
    expect(new URL(metrics).port).not.toBe(new URL(url).port)
    for (const revision of ['2025-11-25', '2026-07-28']) {
      await using client = await connect(http(url), { revision })
      await client.callTool('add', { a: 1, b: 2 })
    }
    const text = await (await fetch(metrics)).text()
    for (const revision of ['2025-11-25', '2026-07-28'])
      expect(text).toMatch(
        new RegExp(`^${CALL}_count\\{.*gen_ai_tool_name="add".*"${revision}"\\} 1$`, 'm'),
      )
    expect((await fetch(new URL('/metrics', url))).status).toBe(404)
    child.give('SIGTERM')
    await child.closed()
    expect(child.code).toBe(0)
  })

  it.each([
    [['serve', '--metrics', '9464'], '--metrics requires --http'],
    [['serve', '--http', '--metrics', 'x'], '--metrics must be a number from 0 to 65535'],
  ])('%j is refused', async (args, message) => {
    const child = new Child(process.execPath, [CLI, ...args])
    await child.closed()
    expect(child.stderr).toContain(message)
    expect(child.code).toBe(2)
  })

  it('a port in use is refused', async () => {
    await using listening = await listenMetrics(prometheus(), { port: 0 })
    const args = ['serve', '--http', '--port', '0', '--metrics', String(listening.port)]
    const child = new Child(process.execPath, [CLI, ...args])
    await child.closed()
    expect(child.stderr).toContain(
      `Port ${listening.port} is in use; choose another with --metrics`,
    )
    expect(child.code).toBe(2)
  })
})

it.each(['2025-11-25', '2026-07-28'])(
  'a request has no empty _meta where nothing is traced (%s)',
  async (revision) => {
    const paramsOf = async (options: object) => {
      const server = scriptedServer({ revision, capabilities: { tools: {} }, serve: () => false })
      await using client = await connect(server, { revision, ...options })
      await client.request('tools/list')
      await client.request('tools/list', { cursor: 'a' })
      await client.request('tools/list', { _meta: { 'example.com/a': 1 } })
      return server.of('tools/list').map(({ params }) => params)
    }
    const traced = await paramsOf({ telemetry: prometheus() })
    expect(traced).toEqual(await paramsOf({}))
    expect(traced).toHaveLength(3)
  },
)
