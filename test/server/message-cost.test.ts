import { afterEach, describe, expect, it, vi } from 'vitest'
import { createServer, prompt, resource, tool } from '../../src/index.js'
import type { Receiver } from '../../src/jsonrpc/channel.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'

/* What one message of 3.5 MB costs: its sender does not keep the server from others. */

let watched = 0
let slow = () => {}
const server = createServer({
  name: 'costs',
  version: '1',
  tools: [tool({ name: 'any', input: { type: 'object' }, run: () => 'done' })],
  resources: [
    resource({
      uri: 'note:///{name}',
      read: () => 'text',
      visible: () => (slow(), watched++, true),
      complete: { name: () => [] },
    }),
  ],
  prompts: [prompt({ name: 'greet', arguments: { name: {} }, build: () => 'hello' })],
})

const NEWEST = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': NEWEST,
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Opens a session; `send` resolves to the first message that it sends. */
function open() {
  let receiver: Receiver | undefined
  let sent: (frame: string) => void = () => {}
  const session = new ServerSession(
    checkServer(server),
    {
      send: (frame) => sent(frame),
      receive: (given) => (receiver = given),
      close: () => Promise.resolve(),
    },
    { remote: true },
  )
  return {
    send: (frame: string) =>
      new Promise<string>((resolve) => {
        sent = resolve
        receiver?.frame(frame)
      }),
    close: () => session.close(),
  }
}

const request = (method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const stateless = (method: string, params: object) => request(method, { _meta: META, ...params })
const members = (count: number, value: unknown = 1) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`member${index}`, value]))
const uris = (count: number, length: number, text = 'x') =>
  Array.from({ length: count }, (_, index) => `note:///${index}${text.repeat(length)}`)
const listenTo = (resourceSubscriptions: readonly string[]) =>
  stateless('subscriptions/listen', { notifications: { resourceSubscriptions } })
const initialize = (capabilities: object) =>
  request('initialize', {
    protocolVersion: '2025-11-25',
    capabilities,
    clientInfo: { name: 'c', version: '1' },
  })

const MESSAGES: Readonly<Record<string, () => string>> = {
  'URIs to listen to': () => listenTo(uris(10_000, 340)),
  'URIs to listen to, percent-encoded': () => listenTo(uris(10_000, 110, '%c3')),
  'URIs to listen to, of other characters': () => listenTo(uris(900, 3900, 'é')),
  'a context to complete with': () =>
    stateless('completion/complete', {
      ref: { type: 'ref/resource', uri: 'note:///{name}' },
      argument: { name: 'name', value: '' },
      context: { arguments: members(250_000, 's') },
    }),
  capabilities: () => initialize(members(200_000, {})),
  'a capability': () => initialize({ experimental: members(200_000) }),
  'capabilities of a stateless request': () =>
    request('tools/list', {
      _meta: {
        ...META,
        'io.modelcontextprotocol/clientCapabilities': { extensions: members(200_000, {}) },
      },
    }),
  'input responses': () =>
    stateless('tools/call', { name: 'any', inputResponses: members(200_000, {}) }),
  'arguments of a tool': () =>
    stateless('tools/call', { name: 'any', arguments: members(250_000, 's') }),
  'arguments of a prompt': () =>
    stateless('prompts/get', { name: 'greet', arguments: members(250_000, 's') }),
  'metadata, and a large progress token': () =>
    stateless('tools/call', {
      name: 'any',
      _meta: { ...META, progressToken: 'x'.repeat(1_000_000), ...members(200_000) },
    }),
}

/** The least CPU time of three runs, in milliseconds. */
async function cpu(run: () => unknown): Promise<number> {
  let least = Infinity
  for (let round = 0; round < 3; round++) {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}

/** The margin is for machines that do something else: what this is to prevent costs twenty to seventy times as much. */
const MARGIN = 10

it.each(Object.entries(MESSAGES))(
  'many %s cost at most five times JSON.parse, or 10 ms',
  async (_, make) => {
    const text = make()
    const parsing = await cpu(() => JSON.parse(text))
    const serving = await cpu(async () => {
      const session = open()
      await session.send(text)
      await session.close()
    })
    expect(serving - parsing).toBeLessThan(MARGIN * Math.max(5 * parsing, 10))
  },
)

describe('subscriptions/listen', () => {
  afterEach(() => void vi.restoreAllMocks())

  it('is refused beyond the memory limit before its URIs are looked at', async () => {
    watched = 0
    const { send, close } = open()
    expect(await send(listenTo(uris(4000, 1000)))).toContain('Too many subscriptions')
    expect(watched).toBe(0)
    // Nothing is left charged.
    expect(await send(listenTo(uris(3000, 100)))).toContain('acknowledged')
    await close()
  })

  it('takes ten milliseconds of a turn of the event loop', async () => {
    let now = 0
    let turn = 0
    const turns: number[] = []
    let counting: NodeJS.Immediate | undefined
    const count = () => {
      turn++
      counting = setImmediate(count)
    }
    count()
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    const { send, close } = open()
    slow = () => {
      turns.push(turn)
      now += 4
    }
    expect(await send(listenTo(uris(12, 10)))).toContain('acknowledged')
    slow = () => {}
    clearImmediate(counting)
    expect(turns).toHaveLength(12)
    expect(new Set(turns).size).toBe(4)
    await close()
  })
})
