import { describe, expect, it } from 'vitest'
import { type Client, type Requests, RpcError } from '../../src/client.js'
import { type Absent, type Cell, matrix } from '../../src/testing.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { askingServer } from '../interop/asking.mjs'
import { interopServer } from '../interop/definition.mjs'
import { everythingServer } from '../interop/everything.mjs'
import { ABSENT, inTime, targetsOf } from './targets.js'

/* Each scenario runs on every transport in every revision. */

const targets = {
  tools: targetsOf(interopServer, 'server.mjs'),
  everything: targetsOf(everythingServer, 'everything-server.mjs'),
  asking: targetsOf(askingServer, 'asking-server.mjs'),
}

interface Scenario {
  /** Which server it needs (default `tools`). */
  server?: keyof typeof targets
  /** Cells that cannot exist, and why. */
  absent?: Absent
  run(cell: Cell): Promise<void>
}

async function using(
  cell: Cell,
  use: (client: Client) => Promise<void>,
  options: Parameters<Cell['connect']>[0] = {},
): Promise<void> {
  const client = await inTime(cell, 'connect', cell.connect(options))
  try {
    await inTime(cell, 'the scenario', use(client))
  } finally {
    await inTime(cell, 'close', client.close())
  }
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

const modern = '2026-07-28'
const handshakes = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const titled = new Set(['2025-06-18', '2025-11-25', modern])

/** Asks to be told of changes, in the way of the client's revision; the function that is returned ends it. */
async function listen(
  client: Client,
  notifications: { toolsListChanged?: true; resourceSubscriptions?: string[] },
): Promise<() => Promise<void>> {
  if (client.revision !== modern) {
    const [uri] = notifications.resourceSubscriptions ?? []
    if (uri === undefined) return () => Promise.resolve()
    await client.request('resources/subscribe', { uri })
    return async () => void (await client.request('resources/unsubscribe', { uri }))
  }
  const controller = new AbortController()
  const acknowledged = new Promise((resolve) =>
    client.on('notifications/subscriptions/acknowledged', resolve),
  )
  const listening = client.request(
    'subscriptions/listen',
    { notifications },
    { signal: controller.signal },
  )
  expect(await acknowledged).toMatchObject({ notifications })
  return async () => {
    controller.abort(new Error('enough'))
    await expect(listening).rejects.toThrow('enough')
  }
}

const scenarios: Record<string, Scenario> = {
  open: {
    run: (cell) =>
      using(cell, async (client) => {
        expect(client.revision).toBe(cell.revision)
        expect(client.server).toEqual({
          name: 'interop',
          version: '1.0.0',
          ...(titled.has(cell.revision) ? { title: 'Interop' } : {}),
        })
        expect(client.capabilities).toEqual({ logging: {}, tools: { listChanged: true } })
        expect(client.instructions).toBe('Use the tools.')
      }),
  },
  list: {
    run: (cell) =>
      using(cell, async (client) => {
        const tools = await collect(client.tools())
        expect(tools.map(({ name }) => name)).toEqual(['echo', 'sum', 'fail', 'wait', 'work'])
        expect('outputSchema' in (tools[1] ?? {})).toBe(titled.has(cell.revision))
      }),
  },
  call: {
    run: (cell) =>
      using(cell, async (client) => {
        expect(await client.callTool('echo', { message: 'Grüße 👋' })).toMatchObject({
          content: [{ type: 'text', text: 'Grüße 👋' }],
          isError: false,
        })
        const { content, structuredContent } = await client.callTool('sum', { a: 2, b: 3 })
        expect(content).toEqual([{ type: 'text', text: '{"sum":5}' }])
        expect(structuredContent).toEqual(titled.has(cell.revision) ? { sum: 5 } : undefined)
      }),
  },
  many: {
    run: (cell) =>
      using(cell, async (client) => {
        const results = await Promise.all(
          Array.from({ length: 500 }, (_, i) => client.callTool('echo', { message: String(i) })),
        )
        expect(results.map(({ content }) => content[0])).toEqual(
          Array.from({ length: 500 }, (_, i) => ({ type: 'text', text: String(i) })),
        )
      }),
  },
  fail: {
    run: (cell) =>
      using(cell, async (client) => {
        expect(await client.callTool('fail')).toMatchObject({
          content: [{ text: 'As planned.' }],
          isError: true,
        })
        expect(await client.callTool('sum', { a: 'x' })).toMatchObject({ isError: true })
        await expect(client.callTool('nope')).rejects.toEqual(
          new RpcError(-32602, 'Unknown tool: nope'),
        )
        await expect(client.request('nope/nope')).rejects.toMatchObject({ code: -32601 })
        await expect(client.request('resources/list')).rejects.toMatchObject({ code: -32601 })
      }),
  },
  progress: {
    run: (cell) =>
      using(cell, async (client) => {
        const seen: unknown[] = []
        await client.callTool('work', {}, { onProgress: (progress) => seen.push(progress) })
        const message =
          cell.revision === '2024-11-05'
            ? () => ({})
            : (step: number) => ({ message: `step ${step}` })
        expect(seen).toEqual(
          [1, 2, 3].map((step) => ({ progress: step, total: 3, ...message(step) })),
        )
      }),
  },
  cancel: {
    run: (cell) =>
      using(cell, async (client) => {
        const controller = new AbortController()
        const pending = client.callTool('wait', {}, { signal: controller.signal })
        controller.abort(new Error('enough'))
        await expect(pending).rejects.toThrow('enough')
        expect(await client.callTool('echo', { message: 'still here' })).toMatchObject({
          content: [{ text: 'still here' }],
        })
      }),
  },
  ping: {
    absent: { [modern]: 'this revision has no ping' },
    run: (cell) => using(cell, async (client) => expect(await client.request('ping')).toEqual({})),
  },
  discover: {
    absent: Object.fromEntries(
      handshakes.map((id) => [id, 'this revision begins with a handshake']),
    ),
    run: (cell) =>
      using(cell, async (client) =>
        expect(await client.request('server/discover')).toMatchObject({
          supportedVersions: [modern],
          ttlMs: 0,
          cacheScope: 'private',
        }),
      ),
  },
  read: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const read = async (uri: string) =>
          (await client.request('resources/read', { uri }))['contents']
        expect(await read('config://app')).toEqual([
          { uri: 'config://app', mimeType: 'application/json', text: '{"a":1}' },
        ])
        expect(await read('bytes://three')).toEqual([
          { uri: 'bytes://three', mimeType: 'application/octet-stream', blob: 'AQL/' },
        ])
        expect(await read('note://x%20y')).toEqual([{ uri: 'note://x%20y', text: 'This is x y.' }])
        const code = cell.revision === modern ? -32602 : -32002
        for (const uri of ['note://gone', 'nope://x', 'note://..'])
          await expect(read(uri)).rejects.toMatchObject({ code, data: { uri } })
      }),
  },
  get: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const get = (args: Record<string, string>) =>
          client.request('prompts/get', { name: 'greet', arguments: args })
        expect(await get({ name: 'Alice', tone: 'cool' })).toMatchObject({
          description: 'Greets.',
          messages: [{ role: 'user', content: { type: 'text', text: 'Greet Alice, cool.' } }],
        })
        await expect(get({})).rejects.toMatchObject({
          code: -32602,
          message: expect.stringContaining('name is required') as string,
        })
        await expect(client.request('prompts/get', { name: 'nope' })).rejects.toMatchObject({
          code: -32602,
        })
      }),
  },
  complete: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const complete = async (
          ref: Requests['completion/complete']['params']['ref'],
          name: string,
          value: string,
        ) =>
          (await client.request('completion/complete', { ref, argument: { name, value } }))[
            'completion'
          ]
        expect(await complete({ type: 'ref/prompt', name: 'greet' }, 'tone', 'c')).toEqual({
          values: ['cool'],
          total: 1,
          hasMore: false,
        })
        const template = { type: 'ref/resource', uri: 'note://{name}' } as const
        expect(await complete(template, 'name', 'c')).toEqual({
          values: ['c', 'cc'],
          total: 2,
          hasMore: false,
        })
        await expect(complete({ type: 'ref/prompt', name: 'nope' }, 'x', '')).rejects.toMatchObject(
          { code: -32602 },
        )
      }),
  },
  log: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const heard: unknown[] = []
        client.on('notifications/message', (params) => heard.push(params))
        const low = { level: 'debug', data: 'low' }
        const high = { level: 'warning', logger: 'talker', data: { high: true } }
        await client.callTool('talk')
        expect(heard.splice(0)).toEqual(cell.revision === modern ? [] : [high])
        const meta =
          cell.revision === modern ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {}
        if (cell.revision !== modern) await client.request('logging/setLevel', { level: 'debug' })
        await client.request('tools/call', { name: 'talk', arguments: {}, ...meta })
        expect(heard).toEqual([low, high])
      }),
  },
  page: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const names = (page: Requests['prompts/list']['result']) =>
          page.prompts.map(({ name }) => name)
        const first = await client.request('prompts/list')
        expect(names(first)).toEqual(['greet', 'p1', 'p2', 'p3'])
        const last = await client.request('prompts/list', { cursor: first.nextCursor })
        expect([names(last), last.nextCursor]).toEqual([['p4', 'p5'], undefined])
        await expect(client.request('prompts/list', { cursor: 'x' })).rejects.toMatchObject({
          code: -32602,
        })
        expect((await collect(client.tools())).map(({ name }) => name)).toEqual([
          'sum',
          'talk',
          'change',
          'fail',
        ])
      }),
  },
  change: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const heard: string[] = []
        for (const list of ['tools', 'resources', 'prompts'])
          client.on(`notifications/${list}/list_changed`, () => heard.push(list))
        const stop = await listen(client, { toolsListChanged: true })
        await client.callTool('change')
        await expect.poll(() => heard).toEqual(['tools'])
        expect((await collect(client.tools())).map(({ name }) => name)).toEqual([
          'sum',
          'talk',
          'change',
          'fail',
          'extra',
        ])
        await client.callTool('change')
        await expect.poll(() => heard).toEqual(['tools', 'tools'])
        await stop()
      }),
  },
  subscribe: {
    server: 'everything',
    run: (cell) =>
      using(cell, async (client) => {
        const heard: unknown[] = []
        client.on('notifications/resources/updated', ({ uri }) => heard.push(uri))
        await client.callTool('change')
        await client.request('tools/list')
        expect(heard).toEqual([])
        const stop = await listen(client, { resourceSubscriptions: ['config://app'] })
        await client.callTool('change')
        await expect.poll(() => heard).toEqual(['config://app'])
        await stop()
        await client.callTool('change')
        await client.request('tools/list')
        expect(heard).toEqual(['config://app'])
      }),
  },
  ask: {
    server: 'asking',
    run: (cell) =>
      using(
        cell,
        async (client) => {
          expect(await client.callTool('twice')).toMatchObject({
            content: [{ text: '1 file:///work blue 1' }],
            isError: false,
          })
          expect(await client.request('resources/read', { uri: 'folder:it' })).toMatchObject({
            contents: [{ text: 'file:///work' }],
          })
          expect(await client.request('prompts/get', { name: 'word' })).toMatchObject({
            messages: [{ content: { text: 'blue' } }],
          })
        },
        {
          roots: () => [{ uri: 'file:///work' }],
          sample: () => ({
            role: 'assistant',
            content: { type: 'text', text: 'blue' },
            model: 'm',
          }),
        },
      ),
  },
  elicit: {
    server: 'asking',
    absent: {
      '2024-11-05': 'there are no forms in this revision',
      '2025-03-26': 'there are no forms in this revision',
    },
    run: (cell) =>
      using(
        cell,
        async (client) => {
          expect(await client.callTool('form')).toMatchObject({
            content: [{ text: 'red' }],
            isError: false,
          })
        },
        { elicit: () => ({ action: 'accept', content: { color: 'red' } }) },
      ),
  },
  setLevel: {
    server: 'everything',
    absent: { [modern]: 'each request names its log level in this revision' },
    run: (cell) =>
      using(cell, async (client) => {
        expect(await client.request('logging/setLevel', { level: 'error' })).toEqual({})
        await expect(
          client.request<string>('logging/setLevel', { level: 'loud' }),
        ).rejects.toMatchObject({ code: -32602 })
      }),
  },
}

describe.each(Object.entries(scenarios))('%s', (_, { server = 'tools', absent, run }) => {
  const cells = matrix(targets[server], { ...ABSENT, ...absent })
  it.each(
    cells.filter((cell) => cell.absent === undefined).map((cell) => [cell.name, cell] as const),
  )('%s', (_name, cell) => run(cell))
  it('is absent only with a reason', () => {
    expect(cells).toHaveLength(Object.keys(targets[server]).length * revisions.length)
    for (const cell of cells)
      if (cell.absent !== undefined) expect(cell.absent.length).toBeGreaterThan(10)
  })
})

it('has every scenario', () => {
  const wanted = [
    'list',
    'call',
    'read',
    'get',
    'complete',
    'log',
    'progress',
    'cancel',
    'page',
    'change',
    'subscribe',
    'ask',
    'fail',
  ]
  expect(Object.keys(scenarios)).toEqual(expect.arrayContaining(wanted))
})
