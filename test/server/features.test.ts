import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import {
  RpcError,
  type Server,
  type ServerOptions,
  ToolError,
  createServer,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import type { ResourceListing } from '../../src/protocol/model.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { matrix } from '../../src/testing.js'
import { checkServer } from '../../src/server/context.js'

const icon = { src: 'https://example.com/i.png' }

function full(options: Partial<ServerOptions> = {}): Server {
  return createServer({
    name: 'full',
    version: '1',
    tools: [
      tool({
        name: 'log',
        run(_, { log }) {
          log.debug('too low')
          log.info({ a: 1 }, 'db')
          log.emergency(1n)
          return 'done'
        },
      }),
    ],
    resources: [
      resource({
        uri: 'config://app',
        name: 'app',
        title: 'App',
        mimeType: 'application/json',
        size: 2,
        icons: [icon],
        read: () => '{}',
      }),
      resource({ uri: 'bin://x', read: () => new Uint8Array([1, 2, 255]) }),
      resource({
        uri: 'file:///{+path}',
        name: 'files',
        description: 'Any file',
        icons: [icon],
        read: ({ path }) => ({ text: path, mimeType: 'text/plain' }),
        list: () => [{ uri: 'file:///a.txt', name: 'a.txt' }],
        complete: { path: (typed) => ['a.txt', 'b.txt'].filter((each) => each.startsWith(typed)) },
      }),
      resource({ uri: 'user://{id}', read: ({ id }, { client }) => `${id} ${client.revision}` }),
      resource({ uri: 'bad://x', read: () => 5 as unknown as string }),
    ],
    prompts: [
      prompt({
        name: 'greet',
        title: 'Greet',
        description: 'Greets.',
        icons: [icon],
        arguments: {
          name: { description: 'Who' },
          tone: { required: false, values: ['warm', 'cool'] },
        },
        build: ({ name, tone }) => `Greet ${name}${tone === undefined ? '' : `, ${tone}`}.`,
      }),
      prompt({
        name: 'talk',
        build: () => [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' } },
        ],
      }),
    ],
    ...options,
  })
}

type PromptResult = Awaited<ReturnType<Parameters<typeof prompt>[0]['build']>>
const text = (said: string) => ({ type: 'text' as const, text: said })
const block = { type: 'resource' as const, resource: { uri: 'note://1', text: 'one' } }
const user = (said: string | typeof block) => ({
  role: 'user',
  content: typeof said === 'string' ? text(said) : said,
})

const modern = '2026-07-28'
const since = (revision: string, first: string) => revision >= first
const cells = matrix({ memory: memory(full()) })

describe.each(cells.map((cell) => [cell.revision, cell] as const))('%s', (revision, cell) => {
  const ask = async (method: string, params?: Record<string, unknown>) => {
    const client = await cell.connect()
    try {
      const { resultType, ttlMs, cacheScope, _meta, ...result } = await client.request(
        method,
        params,
      )
      expect([resultType, ttlMs ?? 0, cacheScope ?? 'private', _meta === undefined]).toEqual(
        revision === modern ? ['complete', 0, 'private', false] : [undefined, 0, 'private', true],
      )
      return result
    } finally {
      await client.close()
    }
  }
  const title = (text: string) => (since(revision, '2025-06-18') ? { title: text } : {})
  const icons = since(revision, '2025-11-25') ? { icons: [icon] } : {}

  it('declares capabilities', async () => {
    const client = await cell.connect()
    const completions = since(revision, '2025-03-26') ? { completions: {} } : {}
    expect(client.capabilities).toEqual({
      logging: {},
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      ...completions,
    })
    await client.close()
  })

  it('lists and reads resources', async () => {
    expect(await ask('resources/list')).toEqual({
      resources: [
        {
          uri: 'config://app',
          name: 'app',
          ...title('App'),
          mimeType: 'application/json',
          size: 2,
          ...icons,
        },
        { uri: 'bin://x', name: 'bin://x' },
        { uri: 'file:///a.txt', name: 'a.txt' },
        { uri: 'bad://x', name: 'bad://x' },
      ],
    })
    expect(await ask('resources/templates/list')).toEqual({
      resourceTemplates: [
        { uriTemplate: 'file:///{+path}', name: 'files', description: 'Any file', ...icons },
        { uriTemplate: 'user://{id}', name: 'user://{id}' },
      ],
    })
    expect(await ask('resources/read', { uri: 'config://app' })).toEqual({
      contents: [{ uri: 'config://app', mimeType: 'application/json', text: '{}' }],
    })
    expect(await ask('resources/read', { uri: 'bin://x' })).toEqual({
      contents: [{ uri: 'bin://x', blob: 'AQL/' }],
    })
    expect(await ask('resources/read', { uri: 'file:///a/b%20c' })).toEqual({
      contents: [{ uri: 'file:///a/b%20c', mimeType: 'text/plain', text: 'a/b c' }],
    })
    expect(await ask('resources/read', { uri: 'user://7' })).toEqual({
      contents: [{ uri: 'user://7', text: `7 ${revision}` }],
    })
  })

  it('rejects unknown resources', async () => {
    const code = revision === modern ? -32602 : -32002
    for (const uri of [
      'nope://x',
      'file:///../etc/passwd',
      'file:///a/%2e%2e/b',
      'user://..',
      'user://a%00',
      'user://a/b',
    ])
      await expect(ask('resources/read', { uri })).rejects.toMatchObject({
        code,
        message: `Resource not found: ${uri}`,
        data: { uri },
      })
    await expect(ask('resources/read', {})).rejects.toMatchObject({ code: -32602 })
    await expect(ask('resources/read', { uri: 'bad://x' })).rejects.toMatchObject({
      code: -32603,
      message:
        'Resource bad://x returned a malformed result: contents[0] must be a string, bytes, or an object with a "text" or a "blob"',
    })
  })

  it('lists and gets prompts', async () => {
    const args = [
      { name: 'name', description: 'Who', required: true },
      { name: 'tone', required: false },
    ]
    expect(await ask('prompts/list')).toEqual({
      prompts: [
        { name: 'greet', ...title('Greet'), description: 'Greets.', arguments: args, ...icons },
        { name: 'talk' },
      ],
    })
    expect(
      await ask('prompts/get', { name: 'greet', arguments: { name: 'Alice', tone: 'warm' } }),
    ).toEqual({
      description: 'Greets.',
      messages: [{ role: 'user', content: { type: 'text', text: 'Greet Alice, warm.' } }],
    })
    const audio =
      revision === '2024-11-05'
        ? (expect.objectContaining({ type: 'text' }) as unknown)
        : { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }
    expect(await ask('prompts/get', { name: 'talk' })).toEqual({
      messages: [
        { role: 'user', content: { type: 'text', text: 'Hi' } },
        { role: 'assistant', content: audio },
      ],
    })
  })

  it.each<[string, PromptResult, object[]]>([
    ['a string', 'a', [user('a')]],
    ['a content block', block, [user(block)]],
    ['a message', { role: 'assistant', content: 'a' }, [{ role: 'assistant', content: text('a') }]],
    ['strings', ['a', 'b'], [user('a'), user('b')]],
    ['content blocks', [block, text('a')], [user(block), user('a')]],
    [
      'strings, content blocks and messages',
      ['a', block, { role: 'assistant', content: block }, { role: 'user', content: 'b' }],
      [user('a'), user(block), { role: 'assistant', content: block }, user('b')],
    ],
    ['an empty array', [], []],
  ])('a prompt may be built as %s', async (_, built, messages) => {
    const server = createServer({
      name: 's',
      version: '1',
      prompts: [prompt({ name: 'p', build: () => built })],
    })
    await using client = await connect(memory(server), { revision })
    expect((await client.getPrompt('p')).messages).toEqual(messages)
  })

  it.each([
    [{ name: 'nope' }, 'Unknown prompt: nope'],
    [{}, 'Invalid params: "name" must be the name of a prompt'],
    [{ name: 'greet' }, 'Invalid arguments for prompt greet: name is required'],
    [
      { name: 'greet', arguments: { name: 5, tone: 'loud', more: '1' } },
      'Invalid arguments for prompt greet: name must be a string; tone must be one of warm, cool; more is an unknown argument',
    ],
    [{ name: 'greet', arguments: [] }, 'Invalid params: "arguments" must be an object'],
  ])('rejects a prompt request with %j', async (params, message) => {
    await expect(ask('prompts/get', params)).rejects.toMatchObject({ code: -32602, message })
  })

  it('gives a prompt its arguments as an ordinary object, whatever their names are', async () => {
    const names = {
      arguments: JSON.parse('{"__proto__":{},"valueOf":{"required":false}}') as object,
    }
    const build = (given: Record<string, string>) =>
      JSON.stringify([
        Object.entries(given),
        given['__proto__'],
        // oxlint-disable-next-line no-prototype-builtins -- as users write it
        given.hasOwnProperty('valueOf'),
        Object.getPrototypeOf(given) === Object.prototype,
      ])
    await using client = await connect(
      memory(
        createServer({
          name: 'x',
          version: '1',
          prompts: [prompt({ name: 'p', ...names, build })],
        }),
      ),
    )
    const given = JSON.parse('{"__proto__":"v"}') as Record<string, string>
    expect(await client.request('prompts/get', { name: 'p', arguments: given })).toMatchObject({
      messages: [{ content: { text: '[[["__proto__","v"]],"v",false,true]' } }],
    })
  })

  it('completes arguments', async () => {
    expect(
      await ask('completion/complete', {
        ref: { type: 'ref/prompt', name: 'greet' },
        argument: { name: 'tone', value: 'w' },
      }),
    ).toEqual({ completion: { values: ['warm'], total: 1, hasMore: false } })
    expect(
      await ask('completion/complete', {
        ref: { type: 'ref/prompt', name: 'greet' },
        argument: { name: 'name', value: 'w' },
      }),
    ).toEqual({ completion: { values: [], total: 0, hasMore: false } })
    expect(
      await ask('completion/complete', {
        ref: { type: 'ref/resource', uri: 'file:///{+path}' },
        argument: { name: 'path', value: 'b' },
      }),
    ).toEqual({ completion: { values: ['b.txt'], total: 1, hasMore: false } })
    for (const params of [
      {},
      { ref: { type: 'ref/prompt', name: 'nope' }, argument: { name: 'x', value: '' } },
      { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'nope', value: '' } },
      { ref: { type: 'ref/tool' }, argument: { name: 'x', value: '' } },
    ]) {
      await expect(ask('completion/complete', params)).rejects.toMatchObject({ code: -32602 })
    }
  })

  it('sends log messages', async () => {
    const client = await cell.connect()
    const heard: unknown[] = []
    client.on('notifications/message', (params) => heard.push(params))
    const both = [
      { level: 'info', logger: 'db', data: { a: 1 } },
      { level: 'emergency', data: 'a value that cannot be written as JSON' },
    ]
    await client.callTool('log')
    expect(heard.splice(0)).toEqual(revision === modern ? [] : both)
    if (revision === modern) {
      await client.request('tools/call', {
        name: 'log',
        arguments: {},
        _meta: { 'io.modelcontextprotocol/logLevel': 'info' },
      })
      expect(heard).toEqual(both)
      await expect(
        client.request('tools/list', { _meta: { 'io.modelcontextprotocol/logLevel': 'loud' } }),
      ).rejects.toMatchObject({
        code: -32602,
      })
      await expect(client.request('logging/setLevel', { level: 'info' })).rejects.toMatchObject({
        code: -32601,
      })
    } else {
      await client.request('logging/setLevel', { level: 'alert' })
      await client.callTool('log')
      expect(heard).toEqual(both.slice(1))
    }
    await client.close()
  })

  it('sends change notifications', async () => {
    const server = full()
    const client = await connect(memory(server), { revision })
    const heard: unknown[] = []
    for (const method of [
      'tools/list_changed',
      'resources/list_changed',
      'prompts/list_changed',
      'resources/updated',
      'subscriptions/acknowledged',
    ])
      client.on(`notifications/${method}`, (params) => heard.push([method, params]))
    const controller = new AbortController()
    const listening =
      revision === modern
        ? client
            .request(
              'subscriptions/listen',
              { notifications: { toolsListChanged: true, resourceSubscriptions: ['bin://x'] } },
              { signal: controller.signal },
            )
            .catch((error: unknown) => error)
        : client.request('resources/subscribe', { uri: 'bin://x' })
    if (revision !== modern) await listening
    await client.request('tools/list')
    const meta =
      revision === modern ? { _meta: { 'io.modelcontextprotocol/subscriptionId': 2 } } : {}
    expect(heard.splice(0)).toEqual(
      revision === modern
        ? [
            [
              'subscriptions/acknowledged',
              {
                ...meta,
                notifications: { toolsListChanged: true, resourceSubscriptions: ['bin://x'] },
              },
            ],
          ]
        : [],
    )
    server.tools.add(tool({ name: 'new', run: () => 'x' }))
    server.tools.disable('log')
    server.updated('bin://x')
    server.updated('other://x')
    server.prompts.remove('talk')
    const { tools } = await client.request('tools/list')
    expect((tools as { name: string }[]).map(({ name }) => name)).toEqual(['new'])
    await expect(client.callTool('log')).rejects.toMatchObject({ message: 'Unknown tool: log' })
    const prompts = revision === modern ? [] : [['prompts/list_changed', {}]]
    expect(heard.splice(0)).toEqual([
      ['tools/list_changed', meta],
      ...prompts,
      ['resources/updated', { ...meta, uri: 'bin://x' }],
    ])
    // No notifications after unsubscribing.
    if (revision === modern) controller.abort(new Error('enough'))
    else await client.request('resources/unsubscribe', { uri: 'bin://x' })
    await client.request('tools/list')
    server.updated('bin://x')
    await client.request('tools/list')
    expect(heard).toEqual([])
    await client.close()
  })

  it('paginates lists', async () => {
    const many = createServer({
      name: 'many',
      version: '1',
      pageSize: 3,
      tools: Array.from({ length: 8 }, (_, i) => tool({ name: `t${i}`, run: () => '' })),
    })
    const client = await connect(memory(many), { revision })
    const names: string[] = []
    for await (const { name } of client.tools()) names.push(name)
    expect(names).toEqual(['t0', 't1', 't2', 't3', 't4', 't5', 't6', 't7'])
    const { nextCursor } = await client.request('tools/list')
    const changed = String(nextCursor).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
    for (const cursor of ['x', '', 5, changed, `${String(nextCursor)}A`])
      await expect(client.request<string>('tools/list', { cursor })).rejects.toMatchObject({
        code: -32602,
      })
    many.tools.remove('t2')
    await expect(client.request('tools/list', { cursor: nextCursor })).rejects.toMatchObject({
      code: -32602,
    })
    await client.close()
  })
})

describe('a server', () => {
  it('declares only capabilities that it has, and rejects other methods', async () => {
    const client = await connect(memory(createServer({ name: 's', version: '1' })), {
      revision: '2025-11-25',
    })
    expect(client.capabilities).toEqual({ logging: {} })
    for (const method of [
      'tools/list',
      'resources/list',
      'resources/read',
      'prompts/list',
      'completion/complete',
    ])
      await expect(client.request(method, {})).rejects.toMatchObject({ code: -32601 })
    await client.close()
  })

  it('server.log is sent to every initialized client', async () => {
    const server = full()
    const clients = await Promise.all(
      revisions.map(({ id }) => connect(memory(server), { revision: id })),
    )
    const heard: string[] = []
    for (const client of clients)
      client.on('notifications/message', () => heard.push(client.revision))
    await Promise.all(clients.map((client) => client.request('tools/list')))
    server.log.warning('careful')
    await Promise.all(clients.map((client) => client.request('tools/list')))
    expect(heard.toSorted()).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
    await Promise.all(clients.map((client) => client.close()))
  })

  it('responds to subscriptions/listen when it closes', async () => {
    const { answers } = await import('../drive.js')
    const meta = {
      'io.modelcontextprotocol/protocolVersion': modern,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const listen = JSON.stringify({
      jsonrpc: '2.0',
      id: 'l',
      method: 'subscriptions/listen',
      params: { notifications: {}, _meta: meta },
    })
    expect(await answers(full(), [listen])).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } },
      {
        id: 'l',
        result: {
          resultType: 'complete',
          _meta: { 'io.modelcontextprotocol/subscriptionId': 'l' },
        },
      },
      { method: 'notifications/cancelled', params: { requestId: 'l' } },
    ])
  })

  it('preserves every digit of a stream id', async () => {
    const { drive } = await import('../drive.js')
    const meta = `{"io.modelcontextprotocol/protocolVersion":"${modern}","io.modelcontextprotocol/clientCapabilities":{}}`
    const listen = `{"jsonrpc":"2.0","id":9007199254740993,"method":"subscriptions/listen","params":{"notifications":{},"_meta":${meta}}}\n`
    const { output } = await drive(full(), listen)
    expect(output.match(/"io.modelcontextprotocol\/subscriptionId":\d+/g)).toEqual([
      '"io.modelcontextprotocol/subscriptionId":9007199254740993',
      '"io.modelcontextprotocol/subscriptionId":9007199254740993',
    ])
    expect(output).not.toContain('9007199254740992')
  })

  it.each<[string, () => unknown, string]>([
    [
      'a resource without a scheme',
      () => resource({ uri: 'x', read: () => '' }),
      'Resource "x": its URI must begin with a scheme',
    ],
    [
      'an ambiguous template',
      () => resource({ uri: 'x://{a}{b}', read: () => '' }),
      'adjacent variables are ambiguous',
    ],
    [
      'two templates of one shape',
      () => resource({ uri: 'user://{name}', read: () => '' }),
      'it matches the same URIs as user://{id}',
    ],
    [
      'a resource twice',
      () => resource({ uri: 'bin://x', read: () => '' }),
      'Resource "bin://x" is defined twice',
    ],
  ])('rejects %s', (_, make, message) => {
    expect(() => full().resources.add(make() as ReturnType<typeof resource>)).toThrow(message)
  })

  it('can be changed while it runs', () => {
    const server = full()
    expect(() => server.prompts.add(prompt({ name: '', build: () => '' }))).toThrow(
      'its name must be a non-empty string',
    )
    expect(() =>
      server.prompts.add(
        prompt({ name: 'good', build: () => '' }),
        prompt({ name: '', build: () => '' }),
      ),
    ).toThrow()
    expect(server.prompts.has('good')).toBe(false)
    expect(() => server.tools.remove('nope')).not.toThrow()
    expect(() => server.tools.enable('nope')).toThrow('There is no tool "nope"')
    expect(() => server.tools.update('log', { name: 'other' })).toThrow(
      'Tool "log" cannot be renamed',
    )
    server.tools.update('log', { description: 'New' })
    expect([...checkServer(server).tools.values()][0]?.listing.description).toBe('New')
    server.tools.disable('log')
    expect([server.tools.size, server.tools.has('log')]).toEqual([0, false])
    server.tools.enable('log')
    expect([...server.tools.keys()]).toEqual(['log'])
  })
})

describe.each(revisions.map((revision) => [revision.id, revision] as const))(
  'a resource in %s',
  (id, revision) => {
    it('whose read returns undefined gets the not-found code of the revision', async () => {
      const read = () => {
        throw new RpcError(-32002, 'No such row', { uri: 'row:1' })
      }
      const server = createServer({
        name: 's',
        version: '1',
        resources: [resource({ uri: 'row:{n}', read })],
      })
      await using client = await connect(memory(server), { revision: id })
      await expect(client.request('resources/read', { uri: 'row:1' })).rejects.toMatchObject({
        code: revision.resourceNotFound,
        message: 'No such row',
      })
    })
    it('reports a ToolError of read or build as a JSON-RPC error with its message', async () => {
      const refuse = () => {
        throw new ToolError('The database is closed on Sundays')
      }
      const server = createServer({
        name: 's',
        version: '1',
        resources: [resource({ uri: 'row:1', read: refuse })],
        prompts: [prompt({ name: 'p', build: refuse })],
      })
      await using client = await connect(memory(server), { revision: id })
      const refused = { code: -32603, message: 'The database is closed on Sundays' }
      await expect(client.request('resources/read', { uri: 'row:1' })).rejects.toMatchObject(
        refused,
      )
      await expect(client.request('prompts/get', { name: 'p' })).rejects.toMatchObject(refused)
    })
    it('with a list entry without a name is an internal error', async () => {
      const list = () => [{ uri: 'row:1' } as unknown as ResourceListing]
      const server = createServer({
        name: 's',
        version: '1',
        resources: [resource({ uri: 'row:{n}', read: () => '', list })],
      })
      await using client = await connect(memory(server), { revision: id })
      await expect(client.request('resources/list')).rejects.toMatchObject({ code: -32603 })
    })
  },
)
