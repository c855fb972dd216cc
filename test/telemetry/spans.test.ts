import { SpanKind, SpanStatusCode, context, propagation, trace } from '@opentelemetry/api'
import { beforeEach, describe, expect, it } from 'vitest'
import { connect, http, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import {
  RpcError,
  type ServerOptions,
  createServer,
  form,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { connectInMemory } from '../../src/testing.js'
import { otel } from '../../src/telemetry.js'
import { proves } from '../requirements/proves.js'
import { only, takeSpans, tracer } from './recorder.js'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const TRACEPARENT = `00-${TRACE}-${SPAN}-01`

const tools = [
  tool({
    name: 'work',
    async run() {
      await Promise.resolve()
      tracer.startSpan('inner').end()
      return propagation.getBaggage(context.active())?.getEntry('user')?.value ?? 'none'
    },
  }),
  tool({ name: 'quick', run: () => (tracer.startSpan('inner').end(), 'done') }),
  tool({ name: 'bad', run: () => ({ content: [], isError: true }) }),
  tool({
    name: 'refuses',
    run() {
      throw new RpcError(-32_050, 'not today')
    },
  }),
  tool({
    name: 'asks',
    async run(_, call) {
      const { ok } = await call.ask({
        ok: form({ message: 'ok?', schema: { type: 'object', properties: {} } }),
      })
      return JSON.stringify(ok)
    },
  }),
]

const serverOf = (options: Partial<ServerOptions> = {}) =>
  createServer({
    name: 'observed',
    version: '1',
    tools,
    resources: [resource({ uri: 'note://one', read: () => 'one' })],
    prompts: [prompt({ name: 'greet', build: () => 'hello' })],
    telemetry: otel(),
    ...options,
  })

beforeEach(() => void takeSpans())

describe.each(revisions.map(({ id }) => id))('revision %s', (revision) => {
  it('makes the client span the parent of the server span, and that the parent of spans in the handler', async () => {
    await using client = await connect(memory(serverOf()), { revision, telemetry: otel() })
    takeSpans()
    await client.callTool('work')
    const spans = takeSpans()
    const sent = only(spans, 'tools/call work', SpanKind.CLIENT)
    const served = only(spans, 'tools/call work', SpanKind.SERVER)
    expect(served.parentSpanContext?.spanId).toBe(sent.spanContext().spanId)
    expect(served.spanContext().traceId).toBe(sent.spanContext().traceId)
    expect(only(spans, 'inner').parentSpanContext?.spanId).toBe(served.spanContext().spanId)
    expect(served.attributes).toEqual({
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': revision,
      'gen_ai.tool.name': 'work',
      'gen_ai.operation.name': 'execute_tool',
      'jsonrpc.request.id': sent.attributes['jsonrpc.request.id'],
    })
    expect(sent.attributes).toEqual(served.attributes)
    expect(served.status.code).toBe(SpanStatusCode.UNSET)
  })

  it('uses traceparent, tracestate and baggage of a client', async () => {
    await using client = await connect(memory(serverOf()), { revision })
    const _meta = { traceparent: TRACEPARENT, tracestate: 'vendor=1', baggage: 'user=alice' }
    takeSpans()
    const result = await client.request('tools/call', { name: 'work', arguments: {}, _meta })
    expect(result.content).toEqual([{ type: 'text', text: 'alice' }])
    const served = only(takeSpans(), 'tools/call work')
    expect(served.spanContext().traceId).toBe(TRACE)
    expect(served.parentSpanContext?.spanId).toBe(SPAN)
    expect(served.parentSpanContext?.isRemote).toBe(true)
    expect(served.spanContext().traceState?.get('vendor')).toBe('1')
  })

  it('sends the context of the caller to a server', async () => {
    proves('meta.trace')
    const sent: Record<string, unknown>[] = []
    const seen = tool({ name: 'seen', run: (_, { meta }) => (sent.push({ ...meta }), 'ok') })
    const server = createServer({ name: 'plain', version: '1', tools: [seen] })
    await using client = await connect(memory(server), { revision, telemetry: otel() })
    takeSpans()
    await tracer.startActiveSpan('agent', async (agent) => {
      const active = propagation.setBaggage(
        context.active(),
        propagation.createBaggage({ user: { value: 'bob' } }),
      )
      await context.with(active, () => client.callTool('seen'))
      agent.end()
    })
    const spans = takeSpans()
    const call = only(spans, 'tools/call seen')
    expect(call.parentSpanContext?.spanId).toBe(only(spans, 'agent').spanContext().spanId)
    const { traceId, spanId } = call.spanContext()
    expect(sent[0]).toMatchObject({
      traceparent: `00-${traceId}-${spanId}-01`,
      baggage: 'user=bob',
    })
  })

  it('opens the connection in spans of both sides', async () => {
    await using client = await connect(memory(serverOf()), { revision, telemetry: otel() })
    const method = client.revision === '2026-07-28' ? 'server/discover' : 'initialize'
    const spans = takeSpans()
    const sent = only(spans, method, SpanKind.CLIENT)
    const served = only(spans, method, SpanKind.SERVER)
    expect(served.parentSpanContext?.spanId).toBe(sent.spanContext().spanId)
    expect(sent.attributes['mcp.protocol.version']).toBe(revision)
    expect(served.attributes['mcp.protocol.version']).toBe(revision)
  })
})

describe('requests of the server', () => {
  it('are client spans of the server and server spans of the client', async () => {
    await using client = await connect(memory(serverOf()), {
      revision: '2025-11-25',
      telemetry: otel(),
      elicit: () => (tracer.startSpan('user').end(), { action: 'accept', content: {} }),
    })
    takeSpans()
    await client.callTool('asks')
    const spans = takeSpans()
    const served = only(spans, 'tools/call asks', SpanKind.SERVER)
    const asked = only(spans, 'elicitation/create', SpanKind.CLIENT)
    const answered = only(spans, 'elicitation/create', SpanKind.SERVER)
    expect(asked.parentSpanContext?.spanId).toBe(served.spanContext().spanId)
    expect(answered.parentSpanContext?.spanId).toBe(asked.spanContext().spanId)
    expect(only(spans, 'user').parentSpanContext?.spanId).toBe(answered.spanContext().spanId)
    expect(asked.attributes['mcp.protocol.version']).toBe('2025-11-25')
  })

  it('as results are recorded with the type of the result', async () => {
    await using client = await connect(memory(serverOf()), {
      revision: '2026-07-28',
      elicit: () => ({ action: 'accept', content: {} }),
    })
    takeSpans()
    await client.callTool('asks')
    const types = takeSpans().map(({ attributes }) => attributes['ccmcp.result.type'])
    expect(types).toEqual(['input_required', undefined])
  })
})

describe('errors', () => {
  const cases: readonly [string, string, object, Record<string, unknown>, string | undefined][] = [
    ['tools/call bad', 'tools/call', { name: 'bad' }, { 'error.type': 'tool_error' }, undefined],
    [
      'tools/call refuses',
      'tools/call',
      { name: 'refuses' },
      { 'error.type': '-32050', 'rpc.response.status_code': '-32050' },
      'not today',
    ],
    [
      'tools/call',
      'tools/call',
      { name: 'nobody' },
      { 'error.type': '-32602', 'gen_ai.tool.name': 'nobody' },
      'Unknown tool: nobody',
    ],
    [
      '_OTHER',
      'made/up',
      {},
      {
        'error.type': '-32601',
        'mcp.method.name': '_OTHER',
        'ccmcp.method.name_original': 'made/up',
      },
      'Method not found: made/up',
    ],
    [
      'resources/read',
      'resources/read',
      { uri: 'note://two' },
      { 'error.type': '-32002', 'mcp.resource.uri': 'note://two' },
      'Resource not found: note://two',
    ],
    [
      'prompts/get',
      'prompts/get',
      { name: 'nobody' },
      { 'error.type': '-32602', 'gen_ai.prompt.name': 'nobody' },
      'Unknown prompt: nobody',
    ],
  ]
  it.each(cases)('%s', async (name, method, params, attributes, message) => {
    await using client = await connect(memory(serverOf()), { revision: '2025-11-25' })
    takeSpans()
    await client.request(method, { ...params }).catch(() => {})
    const span = only(takeSpans(), name)
    expect(span.attributes).toMatchObject(attributes)
    expect(span.status).toEqual({
      code: SpanStatusCode.ERROR,
      ...(message !== undefined && { message }),
    })
  })

  it('a cancelled request is ended with CANCELLED on both sides', async () => {
    let entered = () => {}
    const begun = new Promise<void>((resolve) => (entered = resolve))
    const waits = tool({
      name: 'waits',
      run: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          entered()
          signal.addEventListener('abort', () => reject(new Error('stopped')))
        }),
    })
    await using client = await connect(memory(serverOf({ tools: [waits] })), {
      revision: '2025-11-25',
      telemetry: otel(),
    })
    takeSpans()
    const controller = new AbortController()
    const call = client.callTool('waits', {}, { signal: controller.signal })
    await begun
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    await client.request('ping')
    const spans = takeSpans()
    expect(only(spans, 'tools/call waits', SpanKind.SERVER).attributes['error.type']).toBe(
      'CANCELLED',
    )
    expect(only(spans, 'tools/call waits', SpanKind.CLIENT).status.message).toBe('enough')
    only(spans, 'notifications/cancelled', SpanKind.SERVER)
  })

  it('a request with an id that is in use is refused in a span', async () => {
    let free = () => {}
    const waits = tool({
      name: 'waits',
      run: () => new Promise((resolve) => (free = () => resolve('done'))),
    })
    const lines: string[] = []
    const channel = connectInMemory(serverOf({ tools: [waits] }))
    channel.receive({
      frame: (frame) => void lines.push(frame),
      malformed() {},
      closed() {},
    })
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const request = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
    const frame = JSON.stringify({ ...request, params: { name: 'waits', _meta: meta } })
    channel.send(frame)
    channel.send(frame)
    await new Promise((resolve) => setImmediate(resolve))
    expect(only(takeSpans(), 'tools/call waits').attributes['error.type']).toBe('-32600')
    free()
    await channel.close()
  })
})

describe('context of received requests', () => {
  const call = async (options: Parameters<typeof otel>[0], _meta: Record<string, unknown>) => {
    const server = serverOf({ telemetry: otel(options) })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    takeSpans()
    const result = await client.request('tools/call', { name: 'work', arguments: {}, _meta })
    const spans = takeSpans()
    return { span: only(spans, 'tools/call work'), result }
  }

  it.each([
    ['a number', 7],
    ['an object', { trace: TRACE }],
    ['too short', `00-${TRACE}`],
    ['of zeros', '00-00000000000000000000000000000000-0000000000000000-01'],
    ['of version ff', `ff-${TRACE}-${SPAN}-01`],
    ['not hexadecimal', `00-${TRACE.replace('4', 'g')}-${SPAN}-01`],
    ['very long', '0'.repeat(100_000)],
    ['empty', ''],
  ])('a traceparent that is %s is ignored', async (_, traceparent) => {
    const { span, result } = await call({}, { traceparent, tracestate: 5, baggage: [{}] })
    expect(span.parentSpanContext).toBeUndefined()
    expect(result.isError).not.toBe(true)
  })

  it('is linked and not continued with incoming: link', async () => {
    const { span, result } = await call(
      { incoming: 'link' },
      { traceparent: TRACEPARENT, baggage: 'user=mallory' },
    )
    expect(span.spanContext().traceId).not.toBe(TRACE)
    expect(span.links.map((link) => link.context.spanId)).toEqual([SPAN])
    expect(result.content).toEqual([{ type: 'text', text: 'none' }])
  })

  it('is not used with incoming: ignore', async () => {
    const { span } = await call({ incoming: 'ignore' }, { traceparent: TRACEPARENT })
    expect(span.spanContext().traceId).not.toBe(TRACE)
    expect(span.links).toEqual([])
  })

  it('is the parent, and an ambient span is linked', async () => {
    const channel = connectInMemory(serverOf())
    channel.receive({ frame() {}, malformed() {}, closed() {} })
    const params = {
      name: 'quick',
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
        traceparent: TRACEPARENT,
      },
    }
    const ambient = tracer.startSpan('POST')
    context.with(trace.setSpan(context.active(), ambient), () =>
      channel.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })),
    )
    await new Promise((resolve) => setImmediate(resolve))
    const span = only(takeSpans(), 'tools/call quick')
    expect(span.parentSpanContext?.spanId).toBe(SPAN)
    expect(span.links.map((link) => link.context.spanId)).toEqual([ambient.spanContext().spanId])
    await channel.close()
  })

  it('rejects an unknown option, and an unknown value', () => {
    // @ts-expect-error: not a value of it
    expect(() => otel({ incoming: 'trust' })).toThrow('"incoming" must be one of')
    // @ts-expect-error: not an option
    expect(() => otel({ incomming: 'link' })).toThrow('incomming')
    // @ts-expect-error: not telemetry
    expect(() => serverOf({ telemetry: 'otel' })).toThrow('"telemetry" must be')
    // @ts-expect-error: not telemetry
    expect(() => serverOf({ telemetry: [otel] })).toThrow('"telemetry" must be')
  })
})

describe('contexts of other calls', () => {
  it('are not those of a call that was queued', async () => {
    const frees: (() => void)[] = []
    const waits = tool({
      name: 'waits',
      run: () => new Promise<string>((resolve) => frees.push(() => resolve('done'))),
    })
    const server = serverOf({ tools: [waits, ...tools] })
    await using client = await connect(memory(server), {
      revision: '2025-11-25',
      elicit: () => ({ action: 'accept', content: {} }),
    })
    // As many handlers as run at the same time; the last one makes room while it asks.
    const calls = Array.from({ length: 255 }, () => client.callTool('waits'))
    calls.push(client.callTool('asks'))
    takeSpans()
    await client.callTool('quick')
    expect(only(takeSpans(), 'tools/call quick').parentSpanContext).toBeUndefined()
    while (frees.length < 255) await new Promise((resolve) => setImmediate(resolve))
    for (const free of frees) free()
    await Promise.all(calls)
  })
})

describe('content', () => {
  const called = async (options: Parameters<typeof otel>[0], text: string) => {
    const echo = tool({
      name: 'echo',
      input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      run: (input) => input.text,
    })
    const server = serverOf({ tools: [echo], telemetry: otel(options) })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    takeSpans()
    await client.callTool('echo', { text })
    return only(takeSpans(), 'tools/call echo').attributes
  }

  it('is not recorded by default', async () => {
    expect(JSON.stringify(await called({}, 'a secret'))).not.toContain('secret')
  })

  it('is recorded on request, and bounded', async () => {
    const attributes = await called({ recordArguments: true, recordResults: true }, 'a secret')
    expect(attributes['gen_ai.tool.call.arguments']).toBe('{"text":"a secret"}')
    expect(attributes['gen_ai.tool.call.result']).toContain('a secret')
    const long = await called({ recordArguments: true, recordResults: true }, 'x'.repeat(100_000))
    for (const value of Object.values(long)) expect(String(value).length).toBeLessThan(8300)
  })

  it('of names and URIs is bounded', async () => {
    await using client = await connect(memory(serverOf()), { revision: '2025-11-25' })
    takeSpans()
    const long = 'x'.repeat(100_000)
    await client.request('tools/call', { name: long }).catch(() => {})
    await client.request('resources/read', { uri: `note://${long}` }).catch(() => {})
    await client.request(`m/${long}`, {}).catch(() => {})
    for (const { attributes, name, status } of takeSpans())
      for (const text of [name, status.message ?? '', ...Object.values(attributes).map(String)])
        expect(text.length).toBeLessThan(1100)
  })
})

describe('over HTTP', () => {
  it('has the network, the addresses and a session id that cannot be used', async () => {
    await using listening = await listen(serverOf(), { port: 0 })
    await using client = await connect(http(listening.url), {
      revision: '2025-11-25',
      telemetry: otel(),
    })
    takeSpans()
    await client.callTool('quick')
    const spans = takeSpans()
    const served = only(spans, 'tools/call quick', SpanKind.SERVER)
    const sent = only(spans, 'tools/call quick', SpanKind.CLIENT)
    expect(served.attributes).toMatchObject({
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
      'client.address': '127.0.0.1',
      'client.port': expect.any(Number),
      'mcp.session.id': expect.stringMatching(/^[\w-]{12}$/),
    })
    expect(sent.attributes).toMatchObject({
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
      'server.address': '127.0.0.1',
      'server.port': listening.port,
      'mcp.session.id': served.attributes['mcp.session.id'],
    })
    expect(served.parentSpanContext?.spanId).toBe(sent.spanContext().spanId)
  })

  it.each(['2025-11-25', '2026-07-28'])(
    'sends in the context of the span: %s',
    async (revision) => {
      const sentIn: (string | undefined)[] = []
      await using listening = await listen(serverOf(), { port: 0 })
      const target = http(listening.url, {
        fetch: (...given) => {
          sentIn.push(trace.getActiveSpan()?.spanContext().spanId)
          return fetch(...given)
        },
      })
      await using client = await connect(target, { revision, telemetry: otel() })
      sentIn.length = 0
      takeSpans()
      await client.callTool('quick')
      const sent = only(takeSpans(), 'tools/call quick', SpanKind.CLIENT)
      // Others are the stream of the session and a notification.
      expect(sentIn).toContain(sent.spanContext().spanId)
    },
  )

  it('a stateless request has no session id', async () => {
    await using listening = await listen(serverOf(), { port: 0 })
    await using client = await connect(http(listening.url), {
      revision: '2026-07-28',
      telemetry: otel(),
    })
    await client.callTool('quick')
    for (const { attributes } of takeSpans())
      expect(attributes).not.toHaveProperty(['mcp.session.id'])
  })
})
