import {
  type ClientExtension,
  type ConnectOptions,
  type Target,
  connect,
  memory,
  stdio,
} from '../../src/client.js'
import { createServer, form, resource, roots, sample, tool } from '../../src/index.js'
import type { Channel } from '../../src/jsonrpc/channel.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { hostileServers } from '../official/hostile.js'
import { type Hook, type Row, outcome, row } from './modes.js'

const HANDSHAKE = '2025-11-25'
const NEWEST = '2026-07-28'
const GIVEN_UP = 'Error: given up'

const question = {
  elicit: form({ message: '?', schema: { type: 'object', properties: { n: { type: 'number' } } } }),
  sample: sample({ messages: [], maxTokens: 1 }),
  roots: roots(),
}
const server = createServer({
  name: 'hooks',
  version: '1',
  tools: [
    ...Object.entries(question).map(([name, each]) =>
      tool({ name, run: async (_, call) => JSON.stringify(await call.ask({ each })) }),
    ),
    tool({
      name: 'plain',
      run: async (_, call) => {
        call.progress(1)
        call.log.warning('told')
        await new Promise((resolve) => setImmediate(resolve))
        return 'done'
      },
    }),
  ],
})

/** Calls a tool with such a client; cancels the call if there is no response. */
async function calls(
  hook: Hook,
  name: string,
  options: ConnectOptions,
  more: { onProgress?: () => void; listener?: () => unknown } = {},
): Promise<string> {
  await using client = await connect(memory(server), { revision: HANDSHAKE, ...options })
  const { listener, onProgress } = more
  const heard: string[] = []
  if (listener !== undefined) client.on('notifications/message', listener)
  client.on('notifications/message', () => void heard.push('told'))
  const controller = new AbortController()
  const result = client.callTool(
    name,
    {},
    { signal: controller.signal, timeout: 60_000, ...(onProgress && { onProgress }) },
  )
  const came = await outcome(result, hook, () => controller.abort(new Error('given up')))
  await client.request(options.revision === NEWEST ? 'tools/list' : 'ping')
  return listener !== undefined && heard.length === 0 ? `${came}, but others were not told` : came
}

/** Calls a server that sends the notification and the result type of an extension. */
async function callsExtended(hook: Hook, handlers: Partial<ClientExtension>): Promise<string> {
  const target: Target = {
    open() {
      const [client, other] = memoryChannels()
      hostileServers.add(client).add(other)
      other.receive({
        frame(frame) {
          const { id, method } = JSON.parse(frame) as { id?: number; method: string }
          const discovered = { supportedVersions: [NEWEST], capabilities: {} }
          const resultType = method === 'tools/call' && handlers.resultTypes ? 'x' : 'complete'
          const result = { ...discovered, content: [], resultType, ttlMs: 0, cacheScope: 'public' }
          other.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/x' }))
          if (id !== undefined) other.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
        },
        malformed: () => {},
        closed: () => {},
      })
      return client
    },
  }
  const extension = { id: 'com.example/x', revisions: [NEWEST], ...handlers }
  await using client = await connect(target, { extensions: [extension] })
  const controller = new AbortController()
  const result = client.callTool('x', {}, { signal: controller.signal })
  const came = await outcome(result, hook, () => controller.abort(new Error('given up')))
  await client.request('tools/list')
  return came
}

/** Calls a tool after the listener has been called; another listener hears the change, too. */
async function hearsChanges(hook: Hook): Promise<string> {
  const watched = createServer({
    name: 'watched',
    version: '1',
    tools: [tool({ name: 'plain', run: () => 'done' })],
    resources: [resource({ uri: 'x:1', read: () => 'x' })],
  })
  await using client = await connect(memory(watched))
  let heard: () => void = () => {}
  const hearing = new Promise<void>((resolve) => (heard = resolve))
  await client.subscribe('x:1', hook)
  await client.subscribe('x:1', heard)
  watched.updated('x:1')
  await hearing
  return await outcome(client.callTool('plain'), hook, () => {})
}

/** Calls a tool after the connection was lost. */
async function reconnects(hook: Hook): Promise<string> {
  let lose: () => Promise<void> = () => Promise.resolve()
  const inner = memory(server)
  const target: Target = {
    open() {
      const channel = inner.open()
      const [client, other] = memoryChannels()
      lose = () => other.close()
      const forward = (to: Channel) => ({
        frame: (frame: string) => to.send(frame),
        malformed: () => {},
        closed: () => void to.close(),
      })
      other.receive(forward(channel))
      channel.receive(forward(other))
      return client
    },
  }
  const delay = hook as () => never // returns nothing that is a number
  await using client = await connect(target, { reconnect: { delay, maxDelay: 1 } })
  const reconnected = new Promise((resolve) => client.on('reconnected', resolve))
  await lose()
  await reconnected
  return await outcome(client.callTool('plain'), hook, () => {})
}

export const CLIENT_ROWS: readonly Row[] = [
  ...(['sample', 'elicit', 'roots'] as const).flatMap((name) => [
    row(`${name} of a client, ${HANDSHAKE}`, 'isError', GIVEN_UP, (hook) =>
      calls(hook, name, { [name]: hook }),
    ),
    row(`${name} of a client, ${NEWEST}`, 'Error: boom', GIVEN_UP, (hook) =>
      calls(hook, name, { [name]: hook, revision: NEWEST }),
    ),
  ]),
  row('a listener of a client', 'result', 'result', (listener) =>
    calls(listener, 'plain', {}, { listener }),
  ),
  row('listener of subscribe', 'result', 'result', (listener) => hearsChanges(listener)),
  row('delay of reconnect', 'result', 'result', (delay) => reconnects(delay)),
  row('onProgress', 'result', 'result', (onProgress) =>
    calls(onProgress, 'plain', {}, { onProgress }),
  ),
  row('notification handler of a client extension', 'result', 'result', (hook) =>
    callsExtended(hook, { notifications: { 'notifications/x': hook } }),
  ),
  row('result handler of a client extension', 'Error: boom', GIVEN_UP, (hook) =>
    callsExtended(hook, { resultTypes: { x: hook } }),
  ),
  row('tap of connect', 'result', 'result', (tap) => calls(tap, 'plain', { tap })),
  row('report of connect', 'result', 'result', (report) =>
    calls(
      report,
      'plain',
      { report },
      {
        listener: () => {
          throw new Error('to be reported')
        },
      },
    ),
  ),
  row('open of a target', 'ConnectionError', 'ConnectionError', async (open) => {
    const failed: unknown = await connect({ open }).catch((error: unknown) => error)
    return failed instanceof Error ? failed.name : 'connected'
  }),
  row('stderr of a process', 'closed', 'closed', async (hook) => {
    let heard = () => {}
    const written = new Promise<void>((resolve) => (heard = resolve))
    const channel = stdio(
      process.execPath,
      ['-e', 'process.stderr.write("x"); process.stdin.resume()'],
      {
        stderr: () => (heard(), hook()),
      },
    ).open()
    channel.receive({ frame: () => {}, malformed: () => {}, closed: () => {} })
    await written
    await channel.close()
    return 'closed'
  }),
]
