import { describe, expect, it } from 'vitest'
import { type Resource, createServer, resource } from '../../src/index.js'
import { proves } from './proves.js'
import { Wire, ids, listOf, modern } from './wire.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/server/resources */

const serverOf = (...resources: Resource[]) =>
  createServer({ name: 'resources', version: '1', resources })
const plain = (uri: string, more: Partial<Resource> = {}) =>
  resource({ uri, read: () => uri, ...more })
const urisOf = async (wire: Wire) =>
  (await wire.list<{ uri: string }>('resources/list', 'resources')).map(({ uri }) => uri)

describe.each(ids)('resources in %s', (revision) => {
  const notFound = revision === modern ? -32602 : -32002

  it('are declared as a capability if there are any', async () => {
    proves('resources.capability')
    const capabilities = async (resources: Resource[]) => {
      const wire = new Wire(serverOf(...resources), revision)
      const { result } =
        revision === modern ? await wire.request('server/discover') : await wire.initialize()
      return result?.['capabilities']
    }
    expect(await capabilities([plain('a://b')])).toMatchObject({
      resources: { subscribe: true, listChanged: true },
    })
    expect(await capabilities([])).not.toHaveProperty('resources')
  })

  it('are listed alike on every connection', async () => {
    proves('resources.list')
    const server = serverOf(
      plain('b://1'),
      plain('a://1'),
      resource({
        uri: 'note://{name}',
        read: ({ name }) => name,
        list: () => [{ uri: 'note://x', name: 'x' }],
      }),
    )
    const [one, other] = [await Wire.open(server, revision), await Wire.open(server, revision)]
    await one.request('resources/read', { uri: 'note://unlisted' })
    for (const wire of [one, other])
      expect(await urisOf(wire)).toEqual(['b://1', 'a://1', 'note://x'])
  })

  it('are listed once, also when a template lists a fixed URI', async () => {
    const server = createServer({
      name: 'resources',
      version: '1',
      pageSize: 2,
      resources: [
        plain('note://a', { name: 'fixed' }),
        resource({
          uri: 'note://{name}',
          read: ({ name }) => name,
          list: () => ['b', 'b', 'a', 'c'].map((name) => ({ uri: `note://${name}`, name })),
        }),
      ],
    })
    const wire = await Wire.open(server, revision)
    const found: string[] = []
    let cursor: unknown
    do {
      const page = await wire.request('resources/list', cursor === undefined ? {} : { cursor })
      found.push(...listOf<{ uri: string }>(page, 'resources').map(({ uri }) => uri))
      cursor = page.result?.['nextCursor']
    } while (cursor !== undefined && found.length < 20)
    expect(found).toEqual(['note://a', 'note://b', 'note://c'])
  })

  it('give the error not found, never empty contents, if they do not exist', async () => {
    proves('resources.errors', 'resources.not-found', 'resources.never-empty')
    const notes: Record<string, string> = { here: 'text' }
    const server = serverOf(
      resource({ uri: 'note://{name}', read: ({ name }) => notes[name] }),
      resource({ uri: 'gone://x', read: async () => undefined }),
      resource({
        uri: 'broken://x',
        read() {
          throw new Error('a detail that is nobody’s business')
        },
      }),
    )
    const wire = await Wire.open(server, revision)
    expect(
      (await wire.request('resources/read', { uri: 'note://here' })).result?.['contents'],
    ).toEqual([{ uri: 'note://here', text: 'text' }])
    for (const uri of ['note://nope', 'gone://x', 'other://x']) {
      const { error, result } = await wire.request('resources/read', { uri })
      expect([uri, result, error?.code, error?.data]).toEqual([uri, undefined, notFound, { uri }])
    }
    const { error } = await wire.request('resources/read', { uri: 'broken://x' })
    expect(error).toEqual({ code: -32603, message: 'Internal error' })
  })

  it('reject URIs whose variables lead out of the path', async () => {
    proves('resources.validate-uris', 'resources.traversal')
    const seen: string[] = []
    const server = serverOf(
      resource({
        uri: 'file:///data/{+path}',
        read({ path }) {
          seen.push(path)
          return path
        },
      }),
    )
    const wire = await Wire.open(server, revision)
    for (const path of [
      '../secret',
      'a/../../b',
      '%2e%2e/secret',
      'a/%2E%2E/b',
      '..%2Fsecret',
      'a%00.txt',
      '..\\secret',
      '%2e%2e%5csecret',
      '/etc/passwd',
      '%2Fetc/passwd',
      '%5Cserver%5Cshare',
      'C:/secret',
      'c%3A%5Csecret',
    ])
      expect([
        path,
        (await wire.request('resources/read', { uri: `file:///data/${path}` })).error?.code,
      ]).toEqual([path, notFound])
    for (const uri of [5, null, ['file:///data/x'], {}])
      expect((await wire.request('resources/read', { uri })).error?.code).toBe(-32602)
    expect(seen).toEqual([])
    expect(
      (await wire.request('resources/read', { uri: 'file:///data/a/b..c' })).result,
    ).toBeDefined()
  })

  it('check visible and scopes before read is called', async () => {
    proves('resources.access', 'resources.permissions')
    let read = 0
    const server = serverOf(
      plain('open://x'),
      resource({
        uri: 'secret://x',
        visible: ({ info }) => info?.name === 'friend',
        read: () => String(++read),
      }),
      resource({
        uri: 'vault://{id}',
        visible: ({ info }) => info?.name === 'friend',
        read: () => String(++read),
        list: () => [{ uri: 'vault://1', name: '1' }],
      }),
    )
    const stranger = await Wire.open(server, revision)
    expect(await urisOf(stranger)).toEqual(['open://x'])
    expect(
      (await stranger.request('resources/templates/list')).result?.['resourceTemplates'],
    ).toEqual([])
    for (const uri of ['secret://x', 'vault://1'])
      expect((await stranger.request('resources/read', { uri })).error?.code).toBe(notFound)
    expect(read).toBe(0)
    const friend = await Wire.open(server, revision, { name: 'friend' })
    expect(await urisOf(friend)).toEqual(['open://x', 'secret://x', 'vault://1'])
    expect((await friend.request('resources/read', { uri: 'secret://x' })).result).toBeDefined()
  })

  it('encode bytes as base64', async () => {
    proves('resources.binary')
    const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 7) % 256)
    const server = serverOf(
      resource({ uri: 'bin://x', mimeType: 'application/octet-stream', read: () => bytes }),
    )
    const wire = await Wire.open(server, revision)
    const [contents] = await wire.list('resources/read', 'contents', { uri: 'bin://x' })
    expect(contents).toEqual({
      uri: 'bin://x',
      mimeType: 'application/octet-stream',
      blob: Buffer.from(bytes).toString('base64'),
    })
  })

  it('send notifications/resources/list_changed', async () => {
    proves('resources.list-changed')
    const server = serverOf(plain('a://1'))
    const wire = await Wire.open(server, revision)
    if (revision === modern)
      void wire.request('subscriptions/listen', { notifications: { resourcesListChanged: true } })
    await wire.settle()
    server.resources.add(plain('a://2'))
    expect(await wire.settle()).toMatchObject([{ method: 'notifications/resources/list_changed' }])
  })
})

it('a resource URI needs a scheme as of RFC 3986', () => {
  proves('resources.custom-schemes')
  for (const uri of ['x', '/a', '1a://x', 'a_b://x', '://x', 'ä://x', '{scheme}://x'])
    expect(() => serverOf(plain(uri))).toThrow('begin with a scheme')
  for (const uri of ['a:x', 'git+ssh://x', 'x-1.2://y'])
    expect(() => serverOf(plain(uri))).not.toThrow()
})
