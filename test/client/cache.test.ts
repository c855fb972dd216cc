import { describe, expect, it } from 'vitest'
import { type Client, connect, memory } from '../../src/client.js'
import { ResultCache } from '../../src/client/cache.js'
import { createServer, tool } from '../../src/index.js'
import { onStillClock } from '../clock.js'
import { type Asked, at, scriptedServer, settle } from './scripted-server.js'

async function names(client: Client, options?: Parameters<Client['tools']>[0]): Promise<string[]> {
  const found: string[] = []
  for await (const { name } of client.tools(options)) found.push(name)
  return found
}

const hint = { ttlMs: 3_600_000, cacheScope: 'private' }
const item = (name: string) => ({ name, inputSchema: { type: 'object' } })

/** Lists the tools of `pages`, each page with the given hint. */
function paged(pages: string[][], hints: object = hint, revision = '2026-07-28') {
  return scriptedServer({
    revision,
    serve(asked, server) {
      if (asked.method === 'resources/read')
        server.answer(asked, { contents: [{ uri: asked.params['uri'], text: 'x' }], ...hints })
      if (asked.method === 'resources/read') return true
      if (asked.method !== 'tools/list') return false
      const number = Number(asked.params['cursor'] ?? 0)
      const page = pages[number]
      if (page === undefined) server.refuse(asked, -32602, 'invalid cursor')
      else
        server.answer(asked, {
          tools: page.map(item),
          ...hints,
          ...(number + 1 < pages.length ? { nextCursor: String(number + 1) } : {}),
        })
      return true
    },
  })
}

describe('a list with ttlMs', () => {
  it('is cached until it is stale, page by page', () =>
    onStillClock(async (pass) => {
      const server = paged([['a'], ['b']], { ...hint, ttlMs: 1000 })
      await using client = await connect(server)
      expect(await names(client)).toEqual(['a', 'b'])
      await pass(999)
      expect(await names(client)).toEqual(['a', 'b'])
      expect(server.of('tools/list')).toHaveLength(2)
      await pass(1)
      expect(await names(client)).toEqual(['a', 'b'])
      expect(server.of('tools/list')).toHaveLength(4)
    }))

  it('is asked for again with fresh, and what comes is cached', async () => {
    const pages = [['a']]
    const server = paged(pages)
    await using client = await connect(server)
    await names(client)
    pages[0] = ['b']
    expect(await names(client)).toEqual(['a'])
    expect(await names(client, { fresh: true })).toEqual(['b'])
    expect(await names(client)).toEqual(['b'])
    expect(server.of('tools/list')).toHaveLength(2)
    client.clearCache()
    await names(client)
    expect(server.of('tools/list')).toHaveLength(3)
  })

  it.each([
    ['ttlMs 0', { ttlMs: 0 }, {}],
    ['a negative ttlMs', { ttlMs: -5 }, {}],
    ['a ttlMs that is no number', { ttlMs: '1000' }, {}],
    ['no ttlMs', {}, {}],
    ['cache: false', hint, { cache: false }],
    ['a cache without entries', hint, { cache: { maxEntries: 0 } }],
    ['a cache without bytes', hint, { cache: { maxBytes: 10 } }],
  ])('is not cached with %s', async (_, hints, options) => {
    const server = paged([['a']], hints)
    await using client = await connect(server, options)
    await names(client)
    await names(client)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('is not cached in a revision without caching hints', async () => {
    const server = paged([['a']], hint, '2025-11-25')
    await using client = await connect(server)
    await names(client)
    await names(client)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('is not shared: callers may change what they get', async () => {
    const server = paged([['a']])
    await using client = await connect(server)
    await names(client)
    for await (const each of client.tools()) each.name = 'changed'
    expect(await names(client)).toEqual(['a'])
    await using other = await connect(server)
    await names(other)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('is listed from the beginning if the cursor of a cached page is no longer valid, and no item comes twice', () =>
    onStillClock(async (pass) => {
      let second = true
      const server = scriptedServer({
        serve(asked, end) {
          if (asked.method !== 'tools/list') return false
          const { cursor } = asked.params
          if (cursor === undefined)
            end.answer(asked, {
              tools: [item(second ? 'a' : 'z')],
              ttlMs: 10_000,
              ...(second ? { nextCursor: 'two' } : {}),
            })
          else if (second) end.answer(asked, { tools: [item('b')], ttlMs: 10 })
          else end.refuse(asked, -32602, 'invalid cursor')
          return true
        },
      })
      await using client = await connect(server)
      expect(await names(client)).toEqual(['a', 'b'])
      await pass(10)
      expect(await names(client)).toEqual(['a', 'b'])
      await pass(10)
      second = false
      expect(await names(client)).toEqual(['z'])
    }))
})

describe('change notifications', () => {
  it('drop the list; a response to an earlier request is not cached', async () => {
    const held: Asked[] = []
    const server = scriptedServer({
      serve: (asked) => (asked.method === 'tools/list' ? held.push(asked) : false),
    })
    await using client = await connect(server)
    const listing = names(client)
    await settle()
    server.server.notify('notifications/tools/list_changed')
    server.server.answer(at(held, 0), { tools: [item('old')], ...hint })
    expect(await listing).toEqual(['old'])
    const again = names(client)
    await settle()
    server.server.answer(at(held, 1), { tools: [item('new')], ...hint })
    expect(await again).toEqual(['new'])
    expect(await names(client)).toEqual(['new'])
    server.server.notify('notifications/prompts/list_changed')
    await settle()
    expect(await names(client)).toEqual(['new'])
    expect(held).toHaveLength(2)
  })

  it('come before the listeners, which get the new list', async () => {
    const server = createServer({
      name: 'x',
      version: '1.0.0',
      cache: { ttlMs: 60_000, cacheScope: 'public' },
      tools: [tool({ name: 'a', run: () => 'a' })],
    })
    await using client = await connect(memory(server), { revision: '2026-07-28' })
    expect(await names(client)).toEqual(['a'])
    const changed = new Promise<string[]>((resolve, reject) => {
      void client.watch('tools', () => void names(client).then(resolve, reject))
    })
    await client.watch('tools', () => {})
    server.tools.add(tool({ name: 'b', run: () => 'b' }))
    expect(await changed).toEqual(['a', 'b'])
  })

  it('drop what was read of a resource and its parts, and nothing else', async () => {
    const server = paged([])
    await using client = await connect(server)
    const read = async (...uris: string[]) => {
      const before = server.of('resources/read').length
      for (const uri of uris) await client.readResource(uri)
      return server
        .of('resources/read')
        .slice(before)
        .map(({ params }) => params['uri'])
    }
    await read('x://a', 'x://a/b', 'x://c')
    expect(await read('x://a', 'x://a/b', 'x://c')).toEqual([])
    server.server.notify('notifications/resources/updated', { uri: 'x://a/b' })
    await settle()
    expect(await read('x://a', 'x://a/b', 'x://c')).toEqual(['x://a', 'x://a/b'])
    server.server.notify('notifications/resources/list_changed')
    await settle()
    expect(await read('x://a', 'x://c')).toEqual(['x://a', 'x://c'])
  })
})

it('a result that needed input is not cached', async () => {
  let rounds = 0
  const server = scriptedServer({
    serve(asked, end) {
      if (asked.method !== 'resources/read') return false
      rounds++
      if (asked.params['requestState'] === undefined)
        end.answer(asked, { resultType: 'input_required', requestState: 's' })
      else end.answer(asked, { contents: [], ...hint })
      return true
    },
  })
  await using client = await connect(server)
  await client.readResource('x:1')
  await client.readResource('x:1')
  expect(rounds).toBe(4)
})

describe('the limits', () => {
  const cacheOf = (options: ConstructorParameters<typeof ResultCache>[0]) => {
    const cache = new ResultCache(options)
    cache.enabled = true
    return cache
  }
  const reader = (size: number) => {
    const asked: unknown[] = []
    const send = (_: string, params: object | undefined) => {
      asked.push((params as { uri: string }).uri)
      return Promise.resolve({ text: 'x'.repeat(size), ttlMs: 60_000 })
    }
    return { asked, send }
  }

  it('of entries: the least recently used one goes', async () => {
    const cache = cacheOf({ maxEntries: 2 })
    const { asked, send } = reader(1)
    for (const uri of ['1', '2', '1', '3', '1', '2'])
      await cache.request(send, 'resources/read', { uri })
    expect(asked).toEqual(['1', '2', '3', '2'])
  })

  it('of bytes: also for one result that is too large', async () => {
    const cache = cacheOf({ maxBytes: 10_000 })
    const { asked, send } = reader(2000)
    for (const uri of ['1', '2', '3', '1']) await cache.request(send, 'resources/read', { uri })
    expect(asked).toEqual(['1', '2', '3', '1'])
    const large = reader(20_000)
    for (const uri of ['9', '9']) await cache.request(large.send, 'resources/read', { uri })
    expect(large.asked).toEqual(['9', '9'])
    // What was there is still there.
    await cache.request(send, 'resources/read', { uri: '1' })
    expect(asked).toHaveLength(4)
  })
})
