import { describe, expect, it, vi } from 'vitest'
import { connect, memory } from '../../src/client.js'
import {
  type CacheHint,
  type Server,
  createServer,
  prompt,
  resource,
  result,
  tool,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { answers, call, initialize } from '../drive.js'
import { checkServer } from '../../src/server/context.js'
import { ToolSlot } from '../../src/server/tool-slot.js'

const ALL = revisions.map(({ id }) => id)
const NEWEST = ALL.at(-1) ?? ''
const DESCRIBED = revisions.filter(({ typedResults }) => typedResults).map(({ id }) => id)
const LINKS = new Set(
  revisions
    .filter(({ contentTypes: contentKinds }) => contentKinds.includes('resource_link'))
    .map(({ id }) => id),
)

const serverOf = (...tools: Parameters<typeof createServer>[0]['tools'] & object) =>
  createServer({ name: 'limits', version: '1', tools })
const text = (given: { content: readonly unknown[] }) => (given.content[0] as { text: string }).text

describe('a bounded queue', () => {
  it('rejects calls beyond it and serves the rest in order', async () => {
    let open = () => {}
    const gate = new Promise<void>((resolve) => (open = resolve))
    const server = serverOf(
      tool({
        name: 'slow',
        input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
        concurrency: 1,
        queue: 2,
        run: async ({ n }) => (await gate, String(n)),
      }),
    )
    await using client = await connect(memory(server))
    const calls = [1, 2, 3, 4].map((n) => client.callTool('slow', { n }))
    expect(await calls[3]).toMatchObject({
      isError: true,
      content: [{ text: 'slow is busy: 1 calls are running and 2 are waiting. Try again later' }],
    })
    open()
    expect((await Promise.all(calls.slice(0, 3))).map(text)).toEqual(['1', '2', '3'])
    expect(text(await client.callTool('slow', { n: 5 }))).toBe('5')
  })

  it.each([-1, 1.5, Number.NaN])('rejects queue %s', (queue) => {
    expect(() => serverOf(tool({ name: 'x', concurrency: 1, queue, run: () => '' }))).toThrow(
      '"queue" must be a non-negative integer',
    )
  })
})

describe.each(ALL)('a result that is too large, in %s', (revision) => {
  const server = serverOf(
    tool({ name: 'text', maxResult: 1000, run: () => 'ä😀'.repeat(1000) }),
    tool({
      name: 'image',
      maxResult: 1000,
      run: () => ({ type: 'image', data: 'A'.repeat(4000), mimeType: 'image/png' }) as const,
    }),
    tool({
      name: 'value',
      maxResult: 100,
      output: { type: 'object', properties: { all: { type: 'string' } }, required: ['all'] },
      run: () => ({ all: 'x'.repeat(200) }),
    }),
    tool({
      name: 'failure',
      maxResult: 300,
      run: () => result({ content: 'e'.repeat(400), isError: true }),
    }),
    tool({ name: 'small', maxResult: 1000, run: async () => await Promise.resolve('ok') }),
  )
  const linkOf = (given: { content: readonly unknown[] }) => {
    const uri = /overflow:\/\/\/[\w-]+/.exec(JSON.stringify(given.content))?.[0] ?? ''
    expect((given.content[1] as { type: string }).type).toBe(
      LINKS.has(revision) ? 'resource_link' : 'text',
    )
    return uri
  }

  it('is truncated, with a link to the whole result', async () => {
    await using client = await connect(memory(server), { revision })
    const given = await client.callTool('text')
    expect(given.isError).toBe(false)
    expect(text(given)).toMatch(
      /^(ä😀)+ä?\n\[The result has 6000 bytes, more than the 1000 that are sent\. Read the complete result at overflow:/,
    )
    expect(new TextEncoder().encode(text(given)).length).toBeLessThanOrEqual(1000)
    const read = await client.request('resources/read', { uri: linkOf(given) })
    expect(read).toMatchObject({ contents: [{ text: 'ä😀'.repeat(1000), mimeType: 'text/plain' }] })
  })

  it('of other content is stored as JSON', async () => {
    await using client = await connect(memory(server), { revision })
    const read = await client.request('resources/read', {
      uri: linkOf(await client.callTool('image')),
    })
    const [contents] = read.contents
    expect(contents?.mimeType).toBe('application/json')
    expect(JSON.parse(contents?.text ?? '')).toEqual([
      { type: 'image', data: 'A'.repeat(4000), mimeType: 'image/png' },
    ])
  })

  it('with an output schema is an error with the link', async () => {
    await using client = await connect(memory(server), { revision })
    const given = await client.callTool('value')
    expect(given.isError).toBe(true)
    expect(given.structuredContent).toBeUndefined()
    expect(await client.request('resources/read', { uri: linkOf(given) })).toMatchObject({
      contents: [{ text: `{"all":"${'x'.repeat(200)}"}` }],
    })
  })

  it('stays an error if it was one; a small result is unchanged', async () => {
    await using client = await connect(memory(server), { revision })
    expect((await client.callTool('failure')).isError).toBe(true)
    expect(text(await client.callTool('small'))).toBe('ok')
  })

  it('is kept when the clock of the machine is set', async () => {
    await using client = await connect(memory(server), { revision })
    const uri = linkOf(await client.callTool('text'))
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000)
    try {
      expect((await client.request('resources/read', { uri })).contents).toHaveLength(1)
    } finally {
      vi.restoreAllMocks()
    }
  })

  it('is not found by an unknown overflow URI', async () => {
    await using client = await connect(memory(server), { revision })
    await expect(client.request('resources/read', { uri: 'overflow:///1' })).rejects.toThrow(
      'Resource not found',
    )
  })
})

describe('maxResult', () => {
  it('rejects invalid values', () => {
    expect(() => serverOf(tool({ name: 'x', maxResult: 0, run: () => '' }))).toThrow(
      '"maxResult" must be a number of bytes greater than 0',
    )
  })
  it('counts UTF-8 bytes of the JSON', async () => {
    const server = serverOf(
      tool({ name: 'x', maxResult: 1000, run: () => '\u0000"\n'.repeat(2000) }),
    )
    await using client = await connect(memory(server), { revision: NEWEST })
    const shown = JSON.stringify(text(await client.callTool('x')))
    expect(shown.length).toBeLessThanOrEqual(1000)
    expect(shown.length).toBeGreaterThan(800)
  })
  it('works for a tool added later', async () => {
    const server = serverOf(tool({ name: 'x', run: () => '' }))
    await using client = await connect(memory(server), { revision: NEWEST })
    server.tools.add(
      tool({ name: 'late', maxResult: 300, run: () => 'y'.repeat(400) }),
      tool({ name: 'later', maxResult: 300, run: () => '' }),
    )
    expect(text(await client.callTool('late'))).toContain('overflow:///')
  })
})

describe.each(DESCRIBED)('caching hints in %s', (revision) => {
  const hints = async (
    server: Server,
    method: string,
    params?: Record<string, unknown>,
  ): Promise<CacheHint> => {
    await using client = await connect(memory(server), { revision })
    const { ttlMs, cacheScope } = (await client.request(method, params)) as unknown as CacheHint
    return { ttlMs, cacheScope }
  }
  const LISTS = [
    'server/discover',
    'tools/list',
    'resources/list',
    'resources/templates/list',
    'prompts/list',
  ]
  const full = (cache?: Partial<CacheHint>, visible?: () => boolean) =>
    createServer({
      name: 'cached',
      version: '1',
      ...(cache && { cache }),
      tools: [tool({ name: 't', run: () => '', ...(visible && { visible }) })],
      resources: [
        resource({ uri: 'a:it', read: () => '' }),
        resource({ uri: 'b:it', read: () => '', cache: { ttlMs: 5000, cacheScope: 'public' } }),
        resource({ uri: 'c:{x}', read: () => '', cache: { ttlMs: 7 } }),
      ],
      prompts: [prompt({ name: 'p', build: () => '' })],
    })

  it.each(LISTS)('of %s are private and 0 unless the server sets them', async (method) => {
    expect(await hints(full(), method)).toEqual({ ttlMs: 0, cacheScope: 'private' })
    expect(await hints(full({ ttlMs: 60_000 }), method)).toEqual({
      ttlMs: 60_000,
      cacheScope: 'private',
    })
    expect(await hints(full({ ttlMs: 60_000, cacheScope: 'public' }), method)).toEqual({
      ttlMs: 60_000,
      cacheScope: 'public',
    })
  })
  it.each(LISTS)('of %s are never public if the list depends on the caller', async (method) => {
    expect(
      await hints(
        full({ ttlMs: 60_000, cacheScope: 'public' }, () => true),
        method,
      ),
    ).toEqual({ ttlMs: 60_000, cacheScope: 'private' })
  })
  it('of a resource are its own', async () => {
    const read = (uri: string) =>
      hints(full({ ttlMs: 60_000, cacheScope: 'public' }), 'resources/read', { uri })
    expect(await read('a:it')).toEqual({ ttlMs: 0, cacheScope: 'private' })
    expect(await read('b:it')).toEqual({ ttlMs: 5000, cacheScope: 'public' })
    expect(await read('c:1')).toEqual({ ttlMs: 7, cacheScope: 'private' })
  })
  it('are not sent for results that depend on answers', async () => {
    const read = await hints(full(), 'resources/read', { uri: 'b:it', inputResponses: {} })
    expect(read).toEqual({ ttlMs: 0, cacheScope: 'private' })
  })
  it.each([
    [{ ttlMs: -1 }, '"cache.ttlMs" must be a non-negative integer, in milliseconds'],
    [{ ttlMs: 0.5 }, '"cache.ttlMs" must be a non-negative integer, in milliseconds'],
    [{ cacheScope: 'shared' }, '"cache.cacheScope" must be "public" or "private"'],
    [5, '"cache" must be an object'],
  ])('cannot be %j', (cache, problem) => {
    const wrong = cache as Partial<CacheHint>
    expect(() => full(wrong)).toThrow(`createServer: ${problem}`)
    expect(() =>
      createServer({
        name: 'x',
        version: '1',
        resources: [resource({ uri: 'a:b', read: () => '', cache: wrong })],
      }),
    ).toThrow(`Resource "a:b": ${problem}`)
  })
})

describe('x-mcp-header', () => {
  const named = (properties: Record<string, unknown>, more: Record<string, unknown> = {}) =>
    checkServer(
      serverOf({
        name: 'x',
        input: { type: 'object', properties, ...more },
        run: () => '',
      }),
    ).tools.get('x')?.headers
  const at = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name })

  it('lists the parameters that are repeated in headers', () => {
    expect(
      named({
        region: at('Region'),
        n: at('N-1', 'integer'),
        deep: { type: 'object', properties: { yes: at('Yes', 'boolean') } },
        plain: { type: 'string' },
      }),
    ).toEqual([
      { name: 'Region', path: ['region'], type: 'string' },
      { name: 'N-1', path: ['n'], type: 'integer' },
      { name: 'Yes', path: ['deep', 'yes'], type: 'boolean' },
    ])
    expect(named({ region: { type: 'string' } })).toEqual([])
    expect(named({ 'x-mcp-header': { type: 'string' } })).toEqual([])
    expect(named({ a: { type: 'string', default: '"x-mcp-header"' } })).toEqual([])
  })
  it.each([
    ['empty', { a: at('') }],
    ['with a space', { a: at('a b') }],
    ['with a colon', { a: at('a:b') }],
    ['with a control character', { a: at('a\nb') }],
    ['not ASCII', { a: at('ä') }],
    ['no string', { a: at(5) }],
    ['on a number', { a: at('A', 'number') }],
    ['on an object', { a: at('A', 'object') }],
    ['on an array', { a: at('A', 'array') }],
    ['twice', { a: at('A'), b: at('A') }],
    ['twice, in another case', { a: at('Aa'), b: at('aA') }],
    ['in the items of an array', { a: { type: 'array', items: at('A') } }],
    ['in a choice', { a: { anyOf: [at('A')] } }],
    ['in a choice of objects', { a: { oneOf: [{ type: 'object', properties: { b: at('B') } }] } }],
  ])('is rejected by createServer: %s', (_, properties) => {
    expect(() => named(properties)).toThrow(/^Tool "x": its input schema has /)
  })
  it('is rejected at the root and behind a $ref', () => {
    expect(() => named({}, { 'x-mcp-header': 'A' })).toThrow(
      'on a schema that is not a (nested) property of the input schema',
    )
    expect(() => named({ a: { $ref: '#/$defs/a' } }, { $defs: { a: at('A') } })).toThrow(
      'on a schema that is not a (nested) property of the input schema',
    )
  })
})

describe('middleware', () => {
  const plain = () =>
    createServer({ name: 'm', version: '1', tools: [tool({ name: 't', run: () => 'ok' })] })

  it.each(ALL)('wraps every method in %s, the first one outermost', async (revision) => {
    const server = plain()
    const seen: string[] = []
    for (const name of ['a', 'b'])
      server.use(async (call, next) => {
        seen.push(`${name} ${call.method}`)
        const given = await next()
        seen.push(`${name} done`)
        return given
      })
    await using client = await connect(memory(server), { revision })
    const opening = seen.splice(0)
    expect(opening[0]).toMatch(/^a (initialize|server\/discover)$/)
    await client.callTool('t')
    expect(seen).toEqual(['a tools/call', 'b tools/call', 'b done', 'a done'])
  })

  it.each(ALL)('can change results and respond itself in %s', async (revision) => {
    const server = plain()
    server.use(async (call, next) => {
      if (call.method !== 'tools/call') return await next()
      if (call.params['name'] === 'mine')
        return { content: [{ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }] }
      const given = await next()
      return { ...given, content: [{ type: 'text', text: 'changed' }] }
    })
    await using client = await connect(memory(server), { revision })
    expect(text(await client.callTool('t'))).toBe('changed')
    // Converted to the revision like any other result.
    const [block] = (await client.callTool('mine')).content
    expect(block?.type).toBe(revision === ALL[0] ? 'text' : 'audio')
  })

  it('of initialize that is asynchronous delays later messages', async () => {
    const server = plain()
    server.use(async (_, next) => {
      await new Promise((resolve) => setImmediate(resolve))
      return await next()
    })
    const came = (await answers(server, [...initialize(ALL[1] ?? ''), call('t')])) as {
      id: unknown
      result?: object
    }[]
    expect(came.map(({ id }) => id)).toEqual(['init', 1])
    const cancelled =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}'
    const [opened] = (await answers(server, [
      ...initialize(ALL[1] ?? '').slice(0, 1),
      cancelled,
    ])) as { result?: object }[]
    expect(opened?.result).toMatchObject({ protocolVersion: ALL[1] })
    expect(came[1]).toMatchObject({ result: { content: [{ text: 'ok' }] } })
  })

  it('that rejects initialize leaves the session uninitialized', async () => {
    const server = plain()
    server.use((call, next) => {
      if (call.method === 'initialize') throw new RangeError('not today')
      return next()
    })
    await expect(connect(memory(server), { revision: ALL[1] ?? '' })).rejects.toThrow(
      'Internal error',
    )
  })

  it.each([
    [
      'calls next twice',
      async (_: unknown, next: () => Promise<object>) => (await next(), await next()),
    ],
    ['returns nothing', () => undefined],
    ['throws', () => Promise.reject(new Error('secret'))],
  ])('that %s is an internal error without its message', async (_, middleware) => {
    const server = plain()
    await using client = await connect(memory(server), { revision: NEWEST })
    server.use(middleware as never)
    await expect(client.callTool('t')).rejects.toMatchObject({
      code: -32603,
      message: 'Internal error',
    })
  })
})

describe('mistakes with advice', () => {
  it('names of the wire format in a definition', () => {
    const wrong = {
      name: 'x',
      inputSchema: { type: 'object' },
      run: () => '',
    } as unknown as Parameters<typeof serverOf>[0]
    expect(() => serverOf(wrong)).toThrow('Tool "x": "inputSchema" is called "input" here')
  })
  it('missing options, server or target', async () => {
    expect(() => createServer(undefined as never)).toThrow(
      'createServer: pass an object with a "name"',
    )
    await expect(answers({} as Server, [])).rejects.toThrow(
      'Not a server: pass the return value of createServer()',
    )
    await expect(connect('http://localhost' as never)).rejects.toThrow(
      'connect: the target must have an "open" method, as those of stdio(…), http(…) and memory(…) do',
    )
  })
})

it('the timeout of a call does not follow the clock of the machine', async () => {
  vi.useFakeTimers()
  try {
    const expired = vi.fn()
    const slot = new ToolSlot(undefined)
    slot.limit(1000, expired)
    vi.advanceTimersByTime(400)
    vi.setSystemTime(Date.now() + 3_600_000)
    slot.pause()
    await slot.resume(new AbortController().signal)
    vi.advanceTimersByTime(599)
    expect(expired).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(expired).toHaveBeenCalledTimes(1)
  } finally {
    vi.useRealTimers()
  }
})
