import { describe, expect, it } from 'vitest'
import { type Tool, createServer, tool } from '../../src/index.js'
import { proves } from './proves.js'
import { Wire, handshakes, ids, modern } from './wire.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/server/tools */

const namesOf = async (wire: Wire) =>
  (await wire.list<{ name: string }>('tools/list', 'tools')).map(({ name }) => name)
const make = (name: string, more: Partial<Tool> = {}) => tool({ name, run: () => name, ...more })
const serverOf = (...tools: Tool[]) => createServer({ name: 'tools', version: '1', tools })

describe.each(ids)('tools in %s', (revision) => {
  const capabilities = async (tools: Tool[]) => {
    const wire = new Wire(serverOf(...tools), revision)
    const { result } =
      revision === modern ? await wire.request('server/discover') : await wire.initialize()
    return result?.['capabilities']
  }

  it('are declared as a capability if there are any; otherwise their methods are not found', async () => {
    proves('tools.capability', 'prompts.respect-capabilities')
    expect(await capabilities([make('one')])).toMatchObject({ tools: { listChanged: true } })
    expect(await capabilities([])).not.toHaveProperty('tools')
    const wire = await Wire.open(serverOf(), revision)
    for (const method of [
      'tools/list',
      'tools/call',
      'resources/list',
      'prompts/list',
      'prompts/get',
      'completion/complete',
    ])
      expect((await wire.request(method)).error?.code).toBe(-32601)
  })

  it('are listed in the same order on every connection', async () => {
    proves('tools.list', 'tools.order')
    const server = serverOf(
      make('zeta'),
      make('alpha'),
      make('middle'),
      make('hidden', { visible: () => false }),
    )
    const [one, other] = [await Wire.open(server, revision), await Wire.open(server, revision)]
    const before = await namesOf(one)
    await one.request('tools/call', { name: 'alpha', arguments: {} })
    await one.request('tools/call', { name: 'nope', arguments: {} })
    expect(before).toEqual(['zeta', 'alpha', 'middle'])
    for (const wire of [one, other, one]) expect(await namesOf(wire)).toEqual(before)
  })

  it('validate input, respect visible, limit calls and drop unknown members of content', async () => {
    proves('tools.security')
    let running = 0
    let most = 0
    const server = createServer({
      name: 'tools',
      version: '1',
      tools: [
        tool({
          name: 'typed',
          input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
          run: ({ n }) => String(n),
        }),
        tool({ name: 'secret', visible: ({ info }) => info?.name === 'friend', run: () => 'psst' }),
        tool({ name: 'leaky', run: () => ({ type: 'text', text: 'x', password: 'hunter2' }) }),
        tool({ name: 'never', timeout: 20, run: () => new Promise(() => {}) }),
        tool({
          name: 'narrow',
          concurrency: 2,
          async run() {
            most = Math.max(most, ++running)
            await new Promise((resolve) => setImmediate(resolve))
            running--
            return 'done'
          },
        }),
      ],
    })
    const stranger = await Wire.open(server, revision)
    const friend = await Wire.open(server, revision, { name: 'friend' })
    const call = (wire: Wire, name: string, input = {}) =>
      wire.request('tools/call', { name, arguments: input })
    expect((await call(stranger, 'typed', { n: 'x' })).result).toMatchObject({ isError: true })
    expect((await call(stranger, 'secret')).error?.code).toBe(-32602)
    expect(await namesOf(stranger)).toEqual(['typed', 'leaky', 'never', 'narrow'])
    expect((await call(friend, 'secret')).result?.['content']).toEqual([
      { type: 'text', text: 'psst' },
    ])
    expect((await call(friend, 'leaky')).result?.['content']).toEqual([{ type: 'text', text: 'x' }])
    // At most two calls run at a time, each within its timeout.
    await Promise.all(Array.from({ length: 10 }, () => call(friend, 'narrow')))
    expect(most).toBe(2)
    expect((await call(friend, 'never')).result).toMatchObject({ isError: true })
  })
})

describe.each(handshakes)('tools in %s', (revision) => {
  it('send notifications/tools/list_changed', async () => {
    proves('tools.list-changed')
    const server = serverOf(make('one'))
    const wire = await Wire.open(server, revision)
    await wire.settle()
    server.tools.add(make('two'))
    expect(await wire.settle()).toEqual([
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
    ])
    server.tools.remove('two')
    expect(await wire.settle()).toHaveLength(1)
  })
})

describe.each(ids.slice(2))('structured content in %s', (revision) => {
  const output = {
    type: 'object',
    properties: { sum: { type: 'number' } },
    required: ['sum'],
  } as const

  it('is also sent as text, and never when it does not conform to the output schema', async () => {
    proves('tools.structured-as-text', 'tools.output-conforms')
    const server = createServer({
      name: 'tools',
      version: '1',
      tools: [
        tool({ name: 'good', output, run: () => ({ sum: 3 }) }),
        tool({ name: 'bad', output, run: () => ({ sum: 'three' }) as unknown as { sum: number } }),
      ],
    })
    const wire = await Wire.open(server, revision)
    expect(
      (await wire.request('tools/call', { name: 'good', arguments: {} })).result,
    ).toMatchObject({
      structuredContent: { sum: 3 },
      content: [{ type: 'text', text: '{"sum":3}' }],
    })
    const { result } = await wire.request('tools/call', { name: 'bad', arguments: {} })
    expect(result).toMatchObject({ isError: true })
    expect(result).not.toHaveProperty('structuredContent')
  })
})

describe(`tools in ${modern}`, () => {
  it('send notifications/tools/list_changed on streams that requested it', async () => {
    proves('tools.list-changed-stream')
    const server = serverOf(make('one'))
    const wire = await Wire.open(server, modern)
    void wire.request(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      'stream',
    )
    await wire.settle()
    server.tools.add(make('two'))
    expect(await wire.settle()).toMatchObject([
      {
        method: 'notifications/tools/list_changed',
        params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 'stream' } },
      },
    ])
  })
})

describe('a tool', () => {
  it('has a unique name of 1 to 128 letters, digits, _, - and .', () => {
    proves(
      'tools.name-length',
      'tools.name-characters',
      'tools.name-no-spaces',
      'tools.name-unique',
    )
    for (const name of ['a', 'get_user.v2-final', 'x'.repeat(128)])
      expect(() => serverOf(make(name))).not.toThrow()
    for (const name of ['', 'x'.repeat(129), 'a b', 'a,b', 'a/b', 'ä', 'a\n'])
      expect(() => serverOf(make(name))).toThrow('is not allowed')
    expect(() => serverOf(make('twice'), make('twice'))).toThrow('defined twice')
  })

  it('has a case-sensitive name', async () => {
    proves('tools.name-case')
    const wire = await Wire.open(serverOf(make('add'), make('Add')), '2025-11-25')
    for (const name of ['add', 'Add'])
      expect(
        (await wire.request('tools/call', { name, arguments: {} })).result?.['content'],
      ).toEqual([{ type: 'text', text: name }])
    expect((await wire.request('tools/call', { name: 'ADD', arguments: {} })).error?.code).toBe(
      -32602,
    )
  })

  it('has a valid input schema of type object, also when none was given', async () => {
    proves('tools.schema-valid')
    for (const input of [
      null,
      'x',
      [],
      { type: 'nope' },
      { type: 'object', properties: 5 },
      { type: 'string' },
    ])
      expect(() => serverOf({ name: 'bad', input: input as never, run: () => '' })).toThrow(
        'Tool "bad"',
      )
    const wire = await Wire.open(serverOf(make('none')), '2025-11-25')
    expect((await wire.request('tools/list')).result?.['tools']).toEqual([
      { name: 'none', inputSchema: { type: 'object', additionalProperties: false } },
    ])
  })
})

describe('x-mcp-header', () => {
  const refused = (properties: object) => {
    try {
      serverOf({ name: 'x', input: { type: 'object', properties }, run: () => '' })
    } catch (error) {
      return (error as Error).message
    }
    return 'taken'
  }
  const at = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name })

  it('must be a non-empty token without control characters', () => {
    proves('tools.header-empty', 'tools.header-token', 'tools.header-control')
    for (const name of ['Region', 'x-1', "!#$%&'*+-.^_`|~09az"])
      expect(refused({ a: at(name) })).toBe('taken')
    for (const name of [
      '',
      ' ',
      'a b',
      'a:b',
      'a/b',
      '(a)',
      'ä',
      'a\r\nX: 1',
      'a\0',
      'a\u007f',
      5,
      null,
    ])
      expect(refused({ a: at(name) })).toContain('Tool "x"')
  })

  it('must be unique regardless of case', () => {
    proves('tools.header-unique')
    expect(refused({ a: at('A'), b: at('B') })).toBe('taken')
    expect(refused({ a: at('Aa'), b: { type: 'object', properties: { c: at('aA') } } })).toContain(
      'Tool "x"',
    )
  })

  it('is allowed on strings, booleans and safe integers', () => {
    proves('tools.header-primitive')
    for (const type of ['string', 'boolean', 'integer'])
      expect(refused({ a: at('A', type) })).toBe('taken')
    for (const type of ['number', 'object', 'array', 'null'])
      expect(refused({ a: at('A', type) })).toContain('Tool "x"')
    expect(refused({ a: { 'x-mcp-header': 'A' } })).toContain('Tool "x"')
  })

  it('is allowed only on paths of properties', () => {
    proves('tools.header-reachable', 'tools.header-reachable-http')
    expect(refused({ a: { type: 'object', properties: { b: at('B') } } })).toBe('taken')
    const within = { type: 'object', properties: { b: at('B') } }
    const elsewhere = [
      { type: 'array', items: at('A') },
      { type: 'array', prefixItems: [at('A')] },
      { anyOf: [at('A')] },
      { oneOf: [within] },
      { allOf: [within] },
    ]
    const conditions = [
      { not: at('A') },
      { if: at('A') },
      { then: within },
      { else: within },
      { additionalProperties: at('A') },
      { patternProperties: { x: at('A') } },
    ]
    for (const place of [...elsewhere, ...conditions, { $ref: '#/$defs/a', $defs: { a: at('A') } }])
      expect([place, refused({ a: place })]).not.toEqual([place, 'taken'])
  })
})
