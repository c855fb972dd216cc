import { connect, memory } from '../../src/client.js'
import { createServer, form, tool } from '../../src/index.js'
import { SinkObserver } from '../../src/telemetry/observer.js'
import type { Observation, Sink } from '../../src/telemetry/sink.js'
import { type Hook, type Row, outcome, row } from './modes.js'

/** Calls a tool that logs, runs a step and asks, with telemetry on both sides. */
async function calls(hook: Hook, sink: Omit<Sink, 'compose'>): Promise<string> {
  const telemetry: Sink = { ...sink, compose: (all) => new SinkObserver(all) }
  const asks = tool({
    name: 'asks',
    async run(_, call) {
      call.log.info('begun')
      await call.step('first', () => 1)
      const schema = { type: 'object', properties: {} } as const
      await call.ask({ ok: form({ message: '?', schema }) })
      return 'done'
    },
  })
  const server = createServer({ name: 'hooks', version: '1', tools: [asks], telemetry })
  const client = await connect(memory(server), {
    revision: '2025-11-25',
    telemetry,
    elicit: () => ({ action: 'accept', content: {} }),
  })
  const came = await outcome(client.callTool('asks'), hook)
  await client.close()
  return came
}

const observing = (observation: Partial<Observation>): Omit<Sink, 'compose'> => ({
  begin: () => ({ end() {}, ...observation }),
})

export const TELEMETRY_ROWS: readonly Row[] = [
  row('begin of telemetry', 'result', 'result', (begin) => calls(begin, { begin })),
  row('run of an observation', 'result', 'result', (run) => calls(run, observing({ run }))),
  row('run of an observation, after it has run the work twice', 'result', 'result', (hook) =>
    calls(
      hook,
      observing({
        run(work) {
          work()
          work()
          return hook()
        },
      }),
    ),
  ),
  row('end of an observation', 'result', 'result', (end) => calls(end, observing({ end }))),
  row('meta of an observation', 'result', 'result', (hook) =>
    calls(hook, {
      begin: () => ({
        end() {},
        get meta() {
          return hook()
        },
      }),
    }),
  ),
  row('capture of telemetry', 'result', 'result', async (capture) => {
    const slow = tool({
      name: 'slow',
      run: () => new Promise((resolve) => setImmediate(resolve, 'done')),
    })
    const telemetry: Sink = {
      begin: () => undefined,
      capture,
      compose: (all) => new SinkObserver(all),
    }
    const server = createServer({ name: 'hooks', version: '1', tools: [slow], telemetry })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    // More than run at the same time: 1000 (see docs/limits.md).
    const calls = Array.from({ length: 1100 }, () => client.callTool('slow'))
    return await outcome(
      Promise.all(calls).then(() => ({})),
      capture,
    )
  }),
  row('trace of telemetry', 'result', 'result', (trace) =>
    calls(trace, { begin: () => undefined, trace }),
  ),
]
