import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { SpanKind } from '@opentelemetry/api'
import { beforeEach, describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { type Tool, ToolError, createServer, form, tool } from '../../src/index.js'
import { prometheus } from '../../src/prometheus.js'
import {
  MemoryTaskStore,
  type TaskStore,
  type TasksOptions,
  clientTasks,
  tasks,
} from '../../src/tasks.js'
import { otel } from '../../src/telemetry.js'
import { extensionNames } from '../official/schema-validator.js'
import { RawClient } from '../extensions/raw-client.js'
import { only, takeSpans, tracer } from './recorder.js'

for (const name of ['task', 'tasks/get', 'tasks/update', 'tasks/cancel', 'notifications/tasks'])
  extensionNames.add(name)

const metrics = prometheus()
const serverOf = (tools: Tool[], options: TasksOptions = {}) =>
  createServer({
    name: 'observed',
    version: '1',
    tools,
    extensions: [tasks(options)],
    telemetry: [otel(), metrics],
  })
const accepting = {
  extensions: [clientTasks()],
  elicit: () => ({ action: 'accept', content: {} }) as const,
}
const schema = { type: 'object', properties: {} } as const
const idOf = (span: ReadableSpan) => span.spanContext().spanId
const parentOf = (span: ReadableSpan) => span.parentSpanContext?.spanId

/** Waits until there is such a span. */
async function spansUntil(found: (span: ReadableSpan) => boolean): Promise<ReadableSpan[]> {
  const spans: ReadableSpan[] = []
  while (!spans.some(found)) {
    spans.push(...takeSpans())
    await new Promise((resolve) => setImmediate(resolve))
  }
  return spans
}

beforeEach(() => void takeSpans())

describe('steps', () => {
  const stepping = tool({
    name: 'stepping',
    async run(_, call) {
      await call.step('first', async () => {
        await Promise.resolve()
        tracer.startSpan('inner').end()
        return 1
      })
      await call
        .step('second', () => {
          throw new ToolError('no')
        })
        .catch(() => {})
      await call.ask({ ok: form({ message: '?', schema }) })
      return 'done'
    },
  })

  it.each(['2025-11-25', '2026-07-28'])(
    'are spans once, with what they run as children: %s',
    async (revision) => {
      await using client = await connect(memory(serverOf([stepping])), { ...accepting, revision })
      takeSpans()
      expect((await client.callTool('stepping')).isError).not.toBe(true)
      const spans = takeSpans()
      const first = only(spans, 'step first')
      const calls = spans.filter(({ name }) => name === 'tools/call stepping')
      expect(calls).toHaveLength(revision === '2025-11-25' ? 1 : 2)
      expect(calls.map(idOf)).toContain(parentOf(first))
      expect(first.kind).toBe(SpanKind.INTERNAL)
      expect(first.attributes).toEqual({ 'ccmcp.step.key': 'first' })
      expect(parentOf(only(spans, 'inner'))).toBe(idOf(first))
      expect(only(spans, 'step second').attributes).toMatchObject({ 'error.type': 'ToolError' })
    },
  )
})

describe('tasks', () => {
  const report = tool({
    name: 'report',
    task: { mode: 'must', poll: 10 },
    async run(_, call) {
      await call.step('count', () => (tracer.startSpan('inner').end(), 12))
      await call.ask({ ok: form({ message: '?', schema }) })
      return 'printed'
    },
  })

  it('are linked to the call that has created them, in each run', async () => {
    await using client = await connect(memory(serverOf([report])), {
      ...accepting,
      telemetry: otel(),
    })
    takeSpans()
    await client.callTool('report')
    const spans = takeSpans()
    const call = only(spans, 'tools/call report', SpanKind.SERVER)
    expect(call.attributes['ccmcp.result.type']).toBe('task')
    const runs = spans.filter(({ name }) => name === 'task report')
    expect(runs.map(({ attributes }) => attributes)).toEqual([
      {
        'gen_ai.tool.name': 'report',
        'ccmcp.task.name': expect.stringMatching(/^task-[\w-]{12}$/),
        'ccmcp.task.attempt': 1,
        'ccmcp.result.type': 'input_required',
      },
      {
        'gen_ai.tool.name': 'report',
        'ccmcp.task.name': runs[0]?.attributes['ccmcp.task.name'],
        'ccmcp.task.attempt': 2,
      },
    ])
    for (const run of runs) {
      expect(run.links.map(({ context }) => context.spanId)).toEqual([idOf(call)])
      expect(parentOf(run)).toBe(idOf(call))
      expect(run.spanContext().traceId).toBe(call.spanContext().traceId)
    }
    const step = only(spans, 'step count')
    expect(runs.map(idOf)[0]).toBe(parentOf(step))
    expect(parentOf(only(spans, 'inner'))).toBe(idOf(step))
    expect(metrics.text()).toMatch(
      /^ccmcp_task_duration_seconds_count\{gen_ai_tool_name="report"\} 2$/m,
    )
    expect(metrics.text()).toMatch(/^ccmcp_active_tasks 0$/m)
  })

  it('that a call is handed over to begin with the hand-over', async () => {
    let free = () => {}
    const held = new Promise<void>((resolve) => (free = resolve))
    const slow = tool({
      name: 'slow',
      task: { mode: 'may', after: 1, poll: 10 },
      async run() {
        await held
        tracer.startSpan('inner').end()
        return 'done'
      },
    })
    await using client = await connect(memory(serverOf([slow])), {
      extensions: [clientTasks({ onStatus: () => free() })],
    })
    takeSpans()
    await client.callTool('slow')
    const spans = takeSpans()
    const call = only(spans, 'tools/call slow')
    const run = only(spans, 'task slow')
    expect(run.links.map(({ context }) => context.spanId)).toEqual([idOf(call)])
    expect(parentOf(only(spans, 'inner'))).toBe(idOf(call))
  })

  it('that fail or are cancelled have an error', async () => {
    let begun = () => {}
    const running = new Promise<void>((resolve) => (begun = resolve))
    const fails = tool({
      name: 'fails',
      task: { mode: 'must', poll: 10 },
      run() {
        throw new Error('broken')
      },
    })
    const waits = tool({
      name: 'waits',
      task: { mode: 'must', poll: 10 },
      run: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          begun()
          signal.addEventListener('abort', () => reject(new Error('stopped')))
        }),
    })
    await using client = await connect(memory(serverOf([fails, waits])), accepting)
    await client.callTool('fails')
    expect(only(takeSpans(), 'task fails').attributes['error.type']).toBe('tool_error')
    const controller = new AbortController()
    const call = client.callTool('waits', {}, { signal: controller.signal }).catch(() => {})
    await running
    controller.abort()
    await call
    // The task is cancelled by a request of its own.
    const spans = await spansUntil(({ name }) => name === 'task waits')
    expect(only(spans, 'task waits').attributes['error.type']).toBe('CANCELLED')
  })

  it('that are run again by another server are linked to the call of the first one', async () => {
    let block = true
    let begun = () => {}
    const running = new Promise<void>((resolve) => (begun = resolve))
    const durable = tool({
      name: 'durable',
      task: { mode: 'must', retries: 1, retryDelay: 0 },
      run: (_, { signal }) =>
        block
          ? new Promise((_resolve, reject) => {
              begun()
              signal.addEventListener('abort', () => reject(new Error('stopped')))
            })
          : 'done',
    })
    const store: TaskStore = new MemoryTaskStore()
    const closed = new Promise<void>((resolve) => {
      store.close = () => resolve()
    })
    const first = new RawClient(serverOf([durable], { store }))
    await first.create('durable')
    await running
    await first.close()
    await closed
    const call = only(takeSpans(), 'tools/call durable')
    block = false
    const second = new RawClient(serverOf([durable], { store }))
    const isSecond = ({ name, attributes }: ReadableSpan) =>
      name === 'task durable' && attributes['ccmcp.task.attempt'] === 2
    const run = (await spansUntil(isSecond)).find(isSecond)
    expect(run?.links.map(({ context }) => context.spanId)).toEqual([idOf(call)])
    await second.close()
  })
})
