import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { RpcError, memory, stdio } from '../../src/client.js'
import { type Absent, type Cell, matrix } from '../../src/testing.js'
import { interopServer } from '../interop/definition.mjs'

/* Each scenario runs on every transport in every revision. */

const targets = {
  memory: memory(interopServer()),
  stdio: stdio(process.execPath, [fileURLToPath(new URL('../interop/server.mjs', import.meta.url))]),
}

interface Scenario {
  absent?: Absent
  run(cell: Cell): Promise<void>
}

async function using(cell: Cell, use: (client: Awaited<ReturnType<Cell['connect']>>) => Promise<void>): Promise<void> {
  const client = await cell.connect()
  try {
    await use(client)
  } finally {
    await client.close()
  }
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

const modern = '2026-07-28'
const titled = new Set(['2025-06-18', '2025-11-25', modern])

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
        const results = await Promise.all(Array.from({ length: 500 }, (_, i) => client.callTool('echo', { message: String(i) })))
        expect(results.map(({ content }) => content[0])).toEqual(Array.from({ length: 500 }, (_, i) => ({ type: 'text', text: String(i) })))
      }),
  },
  fail: {
    run: (cell) =>
      using(cell, async (client) => {
        expect(await client.callTool('fail')).toMatchObject({ content: [{ text: 'As planned.' }], isError: true })
        expect(await client.callTool('sum', { a: 'x' })).toMatchObject({ isError: true })
        await expect(client.callTool('nope')).rejects.toEqual(new RpcError(-32602, 'Unknown tool: nope'))
        await expect(client.request('nope/nope')).rejects.toMatchObject({ code: -32601 })
        await expect(client.request('resources/list')).rejects.toMatchObject({ code: -32601 })
      }),
  },
  progress: {
    run: (cell) =>
      using(cell, async (client) => {
        const seen: unknown[] = []
        await client.callTool('work', {}, { onProgress: (progress) => seen.push(progress) })
        const message = cell.revision === '2024-11-05' ? () => ({}) : (step: number) => ({ message: `step ${step}` })
        expect(seen).toEqual([1, 2, 3].map((step) => ({ progress: step, total: 3, ...message(step) })))
      }),
  },
  cancel: {
    run: (cell) =>
      using(cell, async (client) => {
        const controller = new AbortController()
        const pending = client.callTool('wait', {}, { signal: controller.signal })
        controller.abort(new Error('enough'))
        await expect(pending).rejects.toThrow('enough')
        expect(await client.callTool('echo', { message: 'still here' })).toMatchObject({ content: [{ text: 'still here' }] })
      }),
  },
  ping: {
    absent: { [modern]: 'this revision has no ping' },
    run: (cell) => using(cell, async (client) => expect(await client.request('ping')).toEqual({})),
  },
  discover: {
    absent: Object.fromEntries(
      ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'].map((id) => [id, 'this revision begins with a handshake']),
    ),
    run: (cell) =>
      using(cell, async (client) =>
        expect(await client.request('server/discover')).toMatchObject({ supportedVersions: [modern], ttlMs: 0, cacheScope: 'private' }),
      ),
  },
}

describe.each(Object.entries(scenarios))('%s', (_, { absent, run }) => {
  const cells = matrix(targets, absent)
  it.each(cells.filter((cell) => cell.absent === undefined).map((cell) => [cell.name, cell] as const))('%s', (_name, cell) => run(cell))
  it('is absent only with a reason', () => {
    expect(cells).toHaveLength(10)
    for (const cell of cells) if (cell.absent !== undefined) expect(cell.absent.length).toBeGreaterThan(10)
  })
})
