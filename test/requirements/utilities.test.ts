import { describe, expect, it } from 'vitest'
import {
  type Server,
  type ServerOptions,
  createServer,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'
import { type Channel, memoryChannels } from '../../src/testing.js'
import { initialize } from '../drive.js'
import { proves } from './proves.js'
import { Wire, handshakes, ids, listOf, modern } from './wire.js'

const serverOf = (options: Partial<ServerOptions>) =>
  createServer({ name: 'utilities', version: '1', ...options })
const LEVEL = 'io.modelcontextprotocol/logLevel'

/** A channel whose client can stop reading. */
function slowReader(server: Server) {
  const [channel, other] = memoryChannels()
  const came: string[] = []
  let drained = () => {}
  const reader = {
    congested: false,
    readAgain(): void {
      reader.congested = false
      drained()
    },
    came,
    async say(...lines: string[]): Promise<string[]> {
      for (const line of lines) channel.send(line)
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      return came.splice(0)
    },
    close: () => channel.close(),
  }
  const slow: Channel = {
    send: (frame) => other.send(frame),
    receive(receiver) {
      drained = () => receiver.drained?.()
      other.receive(receiver)
    },
    close: () => other.close(),
    get congested() {
      return reader.congested
    },
  }
  void new ServerSession(checkServer(server), slow, { remote: false })
  channel.receive({ frame: (frame) => came.push(frame), malformed: () => {}, closed: () => {} })
  return reader
}

/* https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion */
describe.each(ids)('completion in %s', (revision) => {
  const friendly = ({ info }: { info: { name: string } | undefined }) => info?.name === 'friend'
  const server = () =>
    serverOf({
      prompts: [
        prompt({
          name: 'greet',
          arguments: {
            tone: { values: ['warm', 'cool', 'wry'] },
            many: { complete: (typed) => Array.from({ length: 150 }, (_, i) => `${typed}${i}`) },
            broken: {
              complete() {
                throw new Error('a detail that is nobody’s business')
              },
            },
          },
          build: () => '',
        }),
        prompt({
          name: 'secret',
          visible: friendly,
          arguments: { key: { values: ['hunter2'] } },
          build: () => '',
        }),
      ],
      resources: [
        resource({
          uri: 'vault://{key}',
          visible: friendly,
          read: ({ key }) => key,
          complete: { key: () => ['hunter2'] },
        }),
      ],
    })
  const of = (name: string, argument: string, value: unknown = '') => ({
    ref: { type: 'ref/prompt', name },
    argument: { name: argument, value },
  })

  it('is declared if a definition has completions; otherwise the method is not found', async () => {
    proves('completion.capability', 'completion.errors')
    const capabilities = async (options: Partial<ServerOptions>) => {
      const wire = new Wire(serverOf(options), revision)
      const { result } =
        revision === modern ? await wire.request('server/discover') : await wire.initialize()
      return Object.keys(result?.['capabilities'] ?? {})
    }
    const prompts = (values?: string[]) => ({
      prompts: [
        prompt({
          name: 'p',
          arguments: { a: values === undefined ? {} : { values } },
          build: () => '',
        }),
      ],
    })
    // 2024-11-05 has completion without a capability.
    expect((await capabilities(prompts(['x']))).includes('completions')).toBe(
      revision !== '2024-11-05',
    )
    expect(await capabilities(prompts())).not.toContain('completions')
    const wire = await Wire.open(serverOf(prompts()), revision)
    expect((await wire.request('completion/complete', of('p', 'a'))).error?.code).toBe(-32601)
  })

  it('rejects unknown references and arguments', async () => {
    proves('completion.errors', 'completion.security')
    const wire = await Wire.open(server(), revision)
    const refused = [
      {},
      of('nope', 'tone'),
      of('greet', 'nope'),
      of('greet', '__proto__'),
      of('greet', 'tone', 5),
      { ref: { type: 'ref/prompt', name: 'greet' } },
      { argument: { name: 'tone', value: '' } },
      { ref: { type: 'ref/tool', name: 'greet' }, argument: { name: 'tone', value: '' } },
      { ref: { type: 'ref/resource', uri: 'nope://{x}' }, argument: { name: 'x', value: '' } },
    ]
    for (const params of refused)
      expect([params, (await wire.request('completion/complete', params)).error?.code]).toEqual([
        params,
        -32602,
      ])
    expect((await wire.request('completion/complete', of('greet', 'broken'))).error).toEqual({
      code: -32603,
      message: 'Internal error',
    })
  })

  it('returns matching values in the order of the author, at most 100', async () => {
    proves('completion.servers')
    const wire = await Wire.open(server(), revision)
    expect(
      (await wire.request('completion/complete', of('greet', 'tone', 'w'))).result?.['completion'],
    ).toEqual({
      values: ['warm', 'wry'],
      total: 2,
      hasMore: false,
    })
    const { completion } =
      (await wire.request('completion/complete', of('greet', 'many', 'x'))).result ?? {}
    expect(completion).toEqual({
      values: Array.from({ length: 100 }, (_, i) => `x${i}`),
      total: 150,
      hasMore: true,
    })
  })

  it('rejects definitions that are hidden from the caller', async () => {
    proves('completion.security')
    const vault = {
      ref: { type: 'ref/resource', uri: 'vault://{key}' },
      argument: { name: 'key', value: '' },
    }
    const stranger = await Wire.open(server(), revision)
    for (const params of [of('secret', 'key'), vault])
      expect((await stranger.request('completion/complete', params)).error?.code).toBe(-32602)
    const friend = await Wire.open(server(), revision, { name: 'friend' })
    for (const params of [of('secret', 'key'), vault])
      expect(
        (await friend.request('completion/complete', params)).result?.['completion'],
      ).toMatchObject({ values: ['hunter2'] })
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging */
describe('logging', () => {
  const talkative = () =>
    serverOf({
      tools: [
        tool({
          name: 'talk',
          run(_, { log }) {
            log.debug('low')
            log.error({ failed: true }, 'db')
            return 'done'
          },
        }),
        tool({
          name: 'fail',
          run() {
            throw new Error('boom')
          },
        }),
        tool({
          name: 'wait',
          run: (_, { signal }) =>
            new Promise((resolve) => signal.addEventListener('abort', resolve)),
        }),
      ],
    })
  const call = (wire: Wire, name: string, meta = {}) =>
    wire.request('tools/call', { name, arguments: {}, _meta: meta })

  it.each(ids)('is declared in %s', async (revision) => {
    proves('logging.capability')
    const wire = new Wire(talkative(), revision)
    const { result } =
      revision === modern ? await wire.request('server/discover') : await wire.initialize()
    expect(result?.['capabilities']).toMatchObject({ logging: {} })
  })

  it.each(handshakes)('rejects an unknown level in %s', async (revision) => {
    proves('logging.errors')
    const wire = await Wire.open(talkative(), revision)
    for (const level of ['loud', 5, null, undefined, 'toString'])
      expect((await wire.request('logging/setLevel', { level })).error?.code).toBe(-32602)
    expect((await wire.request('logging/setLevel', { level: 'debug' })).result).toEqual({})
    await call(wire, 'talk')
    expect(await wire.settle()).toMatchObject([
      { params: { level: 'debug', data: 'low' } },
      { params: { level: 'error', logger: 'db' } },
    ])
  })

  it.each(ids)('contains only what the author logged in %s', async (revision) => {
    proves('logging.secrets', 'logging.servers', 'logging.security')
    const wire = await Wire.open(talkative(), revision)
    const other = await Wire.open(talkative(), revision)
    const meta = revision === modern ? { [LEVEL]: 'info' } : {}
    await call(wire, 'talk', meta)
    await call(wire, 'fail', meta)
    expect(await wire.settle()).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'error', logger: 'db', data: { failed: true } },
      },
    ])
    expect(wire.frames.join()).not.toContain('utilities.test.ts')
    expect(await other.settle()).toEqual([])
  })

  it('drops messages while the client is not reading', async () => {
    proves('logging.servers', 'logging.security')
    const server = talkative()
    const slow = slowReader(server)
    const say = async (...lines: string[]) =>
      (await slow.say(...lines)).filter((frame) => frame.includes('notifications/message')).length
    const talk = (id: number) =>
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name: 'talk', arguments: {} },
      })
    await say(...initialize('2025-11-25'))
    server.log.error('read')
    expect(await say(talk(1))).toBe(2)
    slow.congested = true
    server.log.error('not read')
    expect(await say(talk(2))).toBe(0)
  })

  it(`sends messages in ${modern} only if the request names a level`, async () => {
    proves('logging.only-if-asked', 'logging.own-stream')
    const server = talkative()
    const wire = await Wire.open(server, modern)
    void wire.request(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      'stream',
    )
    void call(wire, 'wait', { [LEVEL]: 'debug' })
    await wire.settle()
    await call(wire, 'talk')
    server.log.emergency('to everybody')
    expect(await wire.settle()).toEqual([])
    await call(wire, 'talk', { [LEVEL]: 'error' })
    const heard = await wire.settle()
    expect(heard).toMatchObject([{ method: 'notifications/message', params: { level: 'error' } }])
    expect(heard[0]?.params).not.toHaveProperty('_meta')
    // It came before the response to its request.
    expect(wire.frames.at(-1)).toContain('"result"')
  })

  it(`rejects a request of ${modern} with an unknown level`, async () => {
    proves('logging.level-errors')
    const wire = await Wire.open(talkative(), modern)
    for (const level of ['loud', 5, null, ['debug']])
      expect((await call(wire, 'talk', { [LEVEL]: level })).error?.code).toBe(-32602)
    expect(await wire.settle()).toEqual([])
  })
})

it('change notifications are merged while the client is not reading', async () => {
  const server = serverOf({
    tools: [tool({ name: 'one', run: () => '' })],
    resources: [resource({ uri: 'a://b', read: () => '' })],
  })
  const slow = slowReader(server)
  await slow.say(
    ...initialize('2025-11-25'),
    '{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://b"}}',
  )
  slow.congested = true
  for (let many = 0; many < 20; many++) {
    server.tools.update('one', { description: String(many) })
    server.updated('a://b')
    expect(await slow.say()).toEqual([])
  }
  slow.readAgain()
  await expect.poll(() => slow.came.length).toBe(2)
  expect(slow.came.map((frame) => (JSON.parse(frame) as { method: string }).method)).toEqual([
    'notifications/tools/list_changed',
    'notifications/resources/updated',
  ])
  await slow.close()
})

/* https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination */
describe.each(ids)('pagination in %s', (revision) => {
  const named = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`)
  const server = () =>
    serverOf({
      pageSize: 3,
      tools: named(7).map((name) => tool({ name, run: () => '' })),
      prompts: named(7).map((name) => prompt({ name, build: () => '' })),
      resources: [
        ...named(7).map((name) => resource({ uri: `fixed://${name}`, name, read: () => '' })),
        ...named(7).map((name) => resource({ uri: `${name}://{x}`, name, read: () => '' })),
      ],
    })
  const lists = {
    'tools/list': 'tools',
    'prompts/list': 'prompts',
    'resources/list': 'resources',
    'resources/templates/list': 'resourceTemplates',
  }

  it.each(Object.entries(lists))(
    '%s returns all items by cursors that stay valid',
    async (method, member) => {
      proves('pagination.servers')
      const one = server()
      const wire = await Wire.open(one, revision)
      const found: string[] = []
      let cursor: unknown
      const cursors: unknown[] = []
      do {
        const page = await wire.request(method, cursor === undefined ? {} : { cursor })
        found.push(...listOf<{ name: string }>(page, member).map(({ name }) => name))
        cursor = page.result?.['nextCursor']
        cursors.push(cursor)
      } while (cursor !== undefined)
      expect(found).toEqual(named(7))
      // A cursor can be reused, also on another connection: the server keeps no state for it.
      const other = await Wire.open(one, revision)
      const again = await other.request(method, { cursor: cursors[0] })
      expect(listOf(again, member)).toHaveLength(3)
      // Items added meanwhile do not shift the page.
      one.tools.add(tool({ name: 'added', run: () => '' }))
      expect((await other.request(method, { cursor: cursors[0] })).result?.[member]).toEqual(
        again.result?.[member],
      )
    },
  )

  it.each(Object.entries(lists))('%s rejects an invalid cursor', async (method) => {
    proves('pagination.invalid', 'pagination.servers')
    const wire = await Wire.open(server(), revision)
    const cursor = String((await wire.request(method)).result?.['nextCursor'])
    const foreign = String(
      (await (await Wire.open(server(), revision)).request(method)).result?.['nextCursor'],
    )
    const elsewhere = Object.keys(lists).find((each) => each !== method)
    const flipped = cursor.slice(0, -3) + (cursor.at(-3) === 'A' ? 'B' : 'A') + cursor.slice(-2)
    for (const wrong of ['', 'x', 0, null, {}, foreign, flipped, cursor + cursor])
      expect([wrong, (await wire.request(method, { cursor: wrong })).error?.code]).toEqual([
        wrong,
        -32602,
      ])
    expect((await wire.request(String(elsewhere), { cursor })).error?.code).toBe(-32602)
    expect((await wire.request(method, { cursor })).result).toBeDefined()
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching */
describe('caching hints', () => {
  const server = serverOf({
    pageSize: 1,
    tools: ['a', 'b'].map((name) => tool({ name, run: () => name })),
    prompts: [
      prompt({ name: 'p', build: () => '' }),
      prompt({ name: 'secret', visible: () => false, build: () => '' }),
    ],
    resources: [
      resource({ uri: 'a://b', read: () => 'x' }),
      resource({ uri: 'c://{d}', read: () => 'x' }),
    ],
  })
  const cacheable = {
    'server/discover': {},
    'tools/list': {},
    'prompts/list': {},
    'resources/list': {},
    'resources/templates/list': {},
    'resources/read': { uri: 'a://b' },
  }

  it.each(Object.entries(cacheable))(
    'of %s are private and 0 by default, never negative',
    async (method, params) => {
      proves('caching.hints', 'caching.ttl', 'caching.public')
      const wire = await Wire.open(server, modern)
      const { result } = await wire.request(method, params)
      expect(result).toMatchObject({ ttlMs: expect.any(Number) as number, cacheScope: 'private' })
      expect(Number(result?.['ttlMs'])).toBeGreaterThanOrEqual(0)
    },
  )

  it('are the same on all pages', async () => {
    proves('caching.pages')
    const wire = await Wire.open(server, modern)
    const first = (await wire.request('tools/list')).result
    const second = (await wire.request('tools/list', { cursor: first?.['nextCursor'] })).result
    expect([first?.['cacheScope'], second?.['cacheScope']]).toEqual(['private', 'private'])
  })

  it('do not affect visibility', async () => {
    proves('caching.access')
    const wire = await Wire.open(server, modern)
    expect((await wire.request('prompts/get', { name: 'secret' })).error?.code).toBe(-32602)
  })

  it.each(handshakes)('are not sent in %s', async (revision) => {
    const wire = await Wire.open(server, revision)
    for (const method of ['tools/list', 'resources/list'])
      expect((await wire.request(method)).result).not.toHaveProperty('ttlMs')
  })
})
