import { afterEach, describe, expect, it, vi } from 'vitest'
import { connect, memory } from '../../src/client.js'
import {
  type Resource,
  type Server,
  type Tool,
  createServer,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import { UriTemplate } from '../../src/server/uri-template.js'

/* What a server costs does not depend on how many definitions it has already. */

const info = { name: 'many', version: '1' }
const times = <Item>(count: number, make: (index: number) => Item) =>
  Array.from({ length: count }, (_, index) => make(index))
const tools = (count: number): Tool[] =>
  times(count, (index) => tool({ name: `tool${index}`, run: () => 'done' }))
const templates = (count: number, more: Partial<Resource> = {}): Resource[] =>
  times(count, (index) =>
    resource({ uri: `note://kind${index}/{name}`, read: () => `${index}`, ...more }),
  )

afterEach(() => {
  vi.restoreAllMocks()
})

const cpuOf = (run: () => void) => {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

describe('a definition costs the same, however many there are', () => {
  it.each<[string, (count: number) => () => void]>([
    ['tools', (count) => () => createServer({ ...info, tools: tools(count) })],
    ['templates', (count) => () => createServer({ ...info, resources: templates(count) })],
    [
      'templates that are added one by one',
      (count) => () => {
        const { resources } = createServer(info)
        for (const each of templates(count)) resources.add(each)
      },
    ],
  ])('%s', (_, define) => {
    cpuOf(define(1000))
    const few = cpuOf(define(1000))
    // 16 times as many take about 16 times as long, where comparing all of them takes 256 times.
    expect(cpuOf(define(16_000)) / few).toBeLessThan(40)
  })
})

describe('a resource is found among many templates', () => {
  const read = async (server: Server, uri: string) => {
    const client = await connect(memory(server))
    const result = await client.readResource(uri).catch(String)
    await client.close()
    return typeof result === 'string' ? result : result.contents[0]?.text
  }

  it.each<[string, Partial<Resource>]>([
    ['all of them open', {}],
    ['all of them restricted', { visible: () => true }],
  ])('without trying each of them, %s', async (_, more) => {
    const server = createServer({ ...info, resources: templates(1000, more) })
    const match = vi.spyOn(UriTemplate.prototype, 'match')
    const matchesFolded = vi.spyOn(UriTemplate.prototype, 'matchesFolded')
    expect(await read(server, 'note://kind700/a')).toBe('700')
    expect(match.mock.calls.length + matchesFolded.mock.calls.length).toBeLessThan(5)
  })

  it('in the order of their definition, whatever the length of their text', async () => {
    const uris = ['note:///{a}/{b}', 'note:///x/{b}', 'note:///{+path}', 'note:///{a}/b']
    const define = (order: readonly string[]) =>
      createServer({
        ...info,
        resources: order.map((uri) => resource({ uri, anyPath: true, read: () => uri })),
      })
    for (let first = 0; first < uris.length; first++) {
      const order = [...uris.slice(first), ...uris.slice(0, first)]
      const server = define(order)
      expect(await read(server, 'note:///x/b')).toBe(order[0])
      server.resources.remove(order[0] ?? '')
      expect(await read(server, 'note:///x/b')).toBe(order[1])
      server.resources.update(order[1] ?? '', { title: 'It keeps its place' })
      expect(await read(server, 'note:///x/b')).toBe(order[1])
      server.resources.add(resource({ uri: order[0] ?? '', read: () => 'the last' }))
      expect(await read(server, 'note:///x/b')).toBe(order[1])
    }
  })

  it('as it is now: removed, restricted, hidden or shown again', async () => {
    const server = createServer({
      ...info,
      resources: [
        resource({ uri: 'note:///secrets/{name}', read: () => 'secrets' }),
        resource({ uri: 'note:///{+path}', anyPath: true, read: () => 'open' }),
        resource({ uri: 'note:///secret', read: () => 'secret' }),
      ],
    })
    // Other spellings of what is restricted.
    const spellings = ['note:///secret/', 'note:///%2Fsecrets/a']
    const all = () => Promise.all(spellings.map((uri) => read(server, uri)))
    const guarded = [expect.stringContaining('not found'), expect.stringContaining('not found')]
    const uris = ['note:///secret', 'note:///secrets/{name}']
    expect(await all()).toEqual(['open', 'open'])
    for (const uri of uris) server.resources.disable(uri)
    expect([await all(), server.resources.size]).toEqual([guarded, 1])
    for (const uri of uris) server.resources.enable(uri)
    expect([await all(), server.resources.size]).toEqual([['open', 'open'], 3])
    for (const uri of uris) server.resources.update(uri, { visible: () => false })
    expect(await all()).toEqual(guarded)
    for (const uri of uris) server.resources.remove(uri)
    expect([await all(), server.resources.size]).toEqual([['open', 'open'], 1])
  })

  it('and none of those that were refused', async () => {
    const server = createServer({ ...info, resources: templates(2) })
    const added = resource({ uri: 'note://new/{name}', read: () => 'new' })
    const same = resource({ uri: 'note://kind1/{other}', read: () => 'same' })
    expect(() => server.resources.add(added, same)).toThrow(
      'it matches the same URIs as note://kind1/{name}',
    )
    expect([await read(server, 'note://new/a'), server.resources.size]).toEqual([
      expect.stringContaining('not found'),
      2,
    ])
    // It is not the same as what is there no longer.
    server.resources.remove('note://kind1/{name}')
    server.resources.add(added, same)
    expect([await read(server, 'note://new/a'), await read(server, 'note://kind1/a')]).toEqual([
      'new',
      'same',
    ])
  })
})

describe('whether anything can be completed', () => {
  const find = async (server: Server) => {
    const client = await connect(memory(server))
    const offered = 'completions' in client.capabilities
    await client.close()
    return offered
  }

  it('follows what is defined and enabled', async () => {
    const server = createServer(info)
    expect(await find(server)).toBe(false)
    const values = { code: { values: ['a', 'b'] } }
    server.prompts.add(prompt({ name: 'values', arguments: values, build: () => 'text' }))
    expect(await find(server)).toBe(true)
    server.prompts.disable('values')
    expect(await find(server)).toBe(false)
    server.prompts.remove('values')
    const [each] = templates(1, { complete: { name: () => [] } })
    if (each !== undefined) server.resources.add(each)
    expect(await find(server)).toBe(true)
    server.resources.update('note://kind0/{name}', { complete: {} })
    expect(await find(server)).toBe(true)
    server.resources.remove('note://kind0/{name}')
    expect(await find(server)).toBe(false)
  })

  it('is known without a look at each definition', async () => {
    let looks = 0
    const server = createServer({
      ...info,
      prompts: times(100, (index) =>
        prompt({
          name: `prompt${index}`,
          get arguments() {
            looks++
            return {}
          },
          build: () => 'text',
        }),
      ),
    })
    const before = looks
    expect(before).toBeGreaterThan(0)
    await find(server)
    expect(looks).toBe(before)
  })
})
