import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { type ExtensionDefinition, extension as made } from '../../src/extensions.js'
import { type Tool, createServer } from '../../src/index.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION, SUBSCRIPTION_ID } from '../../src/protocol/meta.js'
import { handshakeRevisions, newest, revisions } from '../../src/protocol/revisions/index.js'
import { httpHandler } from '../../src/http.js'
import { answers } from '../drive.js'
import { extensionNames } from '../official/schema-validator.js'

/* An example extension that uses every part of the extension point. */

const ID = 'com.example/receipts'
const DECLARED = { extensions: { [ID]: { colour: 'red' } } }

extensionNames.add('receipt').add('notifications/receipts')

type Listener = (method: string, params: object) => void

function receipts(more: Partial<ExtensionDefinition> = {}) {
  const events: string[] = []
  const listeners = new Set<Listener>()
  const extension: ExtensionDefinition = {
    id: ID,
    settings: { version: 1 },
    methods: {
      'receipts/get': {
        nameParam: 'receipt',
        serve: ({ receipt }, { client }) => {
          if (receipt === 'notify')
            for (const notify of listeners) notify('notifications/receipts', { receipt })
          return { receipt, revision: client.revision }
        },
      },
    },
    resultTypes: ['receipt'],
    toolFields: {
      receipt: (value) =>
        value === 'may' || value === 'must' ? undefined : 'must be "may" or "must"',
    },
    listTool: (listing, tool, { settings }) =>
      settings === undefined && receiptOf(tool) === 'must'
        ? undefined
        : { ...listing, _meta: { ...listing._meta, [`${ID}/field`]: receiptOf(tool) ?? 'none' } },
    callTool: ({ tool, settings, input, caller }, run) => {
      if (receiptOf(tool) === undefined || settings === undefined) return run()
      if (caller.revision !== newest.id) return { content: [{ type: 'text', text: 'receipt 7' }] }
      return { resultType: 'receipt', number: 7, input, ...settings }
    },
    listen: {
      receipts: (value) => {
        let listener: Listener
        return {
          acknowledged: value,
          start: (notify) => {
            listener = notify
            listeners.add(notify)
            notify('notifications/receipts', { receipt: 'first' })
          },
          stop: () => void listeners.delete(listener),
        }
      },
    },
    start: ({ info }) => void events.push(`start ${info.name}`),
    stop: () => void events.push('stop'),
    ...more,
  }
  return { extension, events, listeners }
}

const receiptOf = (tool: Tool) => (tool as { receipt?: unknown }).receipt

const plain = { name: 'plain', input: { type: 'object' }, run: () => 'done' } as const
const tools: Tool[] = [
  plain,
  { ...plain, name: 'may', receipt: 'may' } as Tool,
  { ...plain, name: 'must', receipt: 'must' } as Tool,
]
const serverOf = (extension: ExtensionDefinition) =>
  createServer({ name: 'x', version: '1', tools, extensions: [made(extension)] })

interface Answer {
  id?: unknown
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; data?: unknown }
}
type Ask = [method: string, params?: Record<string, unknown>]

/** Sends requests in one revision; the response 0 is that of initialize or server/discover. */
async function ask(
  extension: ExtensionDefinition,
  revision: string,
  capabilities: object,
  requests: readonly Ask[],
): Promise<Answer[]> {
  const handshake = handshakeRevisions.some(({ id }) => id === revision)
  const _meta = { [PROTOCOL_VERSION]: revision, [CLIENT_CAPABILITIES]: capabilities }
  const opening: Ask = handshake
    ? [
        'initialize',
        { protocolVersion: revision, capabilities, clientInfo: { name: 't', version: '1' } },
      ]
    : ['server/discover', {}]
  const lines = [opening, ...requests].map(([method, params], id) =>
    JSON.stringify({
      jsonrpc: '2.0',
      id,
      method,
      params: handshake ? params : { ...params, _meta },
    }),
  )
  if (handshake) lines.splice(1, 0, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
  return (await answers(serverOf(extension), lines)) as Answer[] // what our server writes
}

const byId = (all: readonly Answer[], id: number) => all.find((each) => each.id === id)

describe.each(revisions.map(({ id }) => id))('an extension in %s', (revision) => {
  const call = (name: string): Ask => ['tools/call', { name, arguments: {} }]

  it('is declared, and serves a client that has declared it', async () => {
    const { extension } = receipts()
    const all = await ask(extension, revision, DECLARED, [
      ['receipts/get', { receipt: 'r1' }],
      ['tools/list'],
    ])
    expect(byId(all, 0)?.result?.['capabilities']).toMatchObject({
      extensions: { [ID]: { version: 1 } },
    })
    expect(byId(all, 1)?.result).toMatchObject({ receipt: 'r1', revision })
    const listed = byId(all, 2)?.result?.['tools'] as { name: string; _meta?: object }[]
    expect(listed.map(({ name }) => name)).toEqual(['plain', 'may', 'must'])
    const hasMeta = revisions.find(({ id }) => id === revision)?.fields.tool.includes('_meta')
    expect(listed[1]?._meta).toEqual(hasMeta === true ? { [`${ID}/field`]: 'may' } : undefined)
    expect(listed.every((each) => !('receipt' in each))).toBe(true)
  })

  it('rejects its methods and hides its tools for a client that has not declared it', async () => {
    const { extension } = receipts()
    const all = await ask(extension, revision, { extensions: { 'com.example/other': {} } }, [
      ['receipts/get', { receipt: 'r1' }],
      ['tools/list'],
      call('may'),
    ])
    expect(byId(all, 1)?.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [ID]: {} } } },
    })
    expect(byId(all, 2)?.result?.['tools']).toMatchObject([{ name: 'plain' }, { name: 'may' }])
    expect(byId(all, 3)?.result?.['content']).toEqual([{ type: 'text', text: 'done' }])
  })

  it('serves a client that has not declared it, if clients need not', async () => {
    const { extension } = receipts({ clientDeclares: false })
    const all = await ask(extension, revision, {}, [['receipts/get', { receipt: 'r1' }]])
    expect(byId(all, 1)?.result).toMatchObject({ receipt: 'r1', revision })
  })

  it('does not exist in other revisions', async () => {
    const others = revisions.map(({ id }) => id).filter((id) => id !== revision)
    const { extension } = receipts({ revisions: others })
    const all = await ask(extension, revision, DECLARED, [
      ['receipts/get', { receipt: 'r1' }],
      call('may'),
      ['tools/list'],
    ])
    expect(byId(all, 0)?.result?.['capabilities']).not.toHaveProperty('extensions')
    expect(byId(all, 1)?.error?.code).toBe(-32601)
    expect(byId(all, 2)?.result?.['content']).toEqual([{ type: 'text', text: 'done' }])
    expect(byId(all, 3)?.result?.['tools']).toHaveLength(2)
  })

  it('wraps tools/call', async () => {
    const { extension } = receipts()
    const all = await ask(extension, revision, DECLARED, [call('plain'), call('may')])
    expect(byId(all, 1)?.result?.['content']).toEqual([{ type: 'text', text: 'done' }])
    if (revision === newest.id) {
      expect(byId(all, 2)?.result).toMatchObject({
        resultType: 'receipt',
        number: 7,
        colour: 'red',
      })
      expect(byId(all, 2)?.result).not.toHaveProperty('content')
    } else expect(byId(all, 2)?.result?.['content']).toEqual([{ type: 'text', text: 'receipt 7' }])
  })

  it('sends its result type only in revisions with result types', async () => {
    const { extension } = receipts({ callTool: () => ({ resultType: 'receipt' }) })
    const all = await ask(extension, revision, DECLARED, [call('plain')])
    if (revision === newest.id)
      expect(byId(all, 1)?.result).toMatchObject({ resultType: 'receipt' })
    else expect(byId(all, 1)?.error?.code).toBe(-32603)
  })

  it('never sends its result type to a client that has not declared it', async () => {
    const { extension } = receipts({ callTool: () => ({ resultType: 'receipt' }) })
    const all = await ask(extension, revision, {}, [call('plain')])
    expect(byId(all, 1)?.error?.code).toBe(-32021)
  })
})

it('wraps the tools of others first if it is the outermost', async () => {
  const order: string[] = []
  const wrapper = (name: string, outermost?: boolean) =>
    made({
      id: `com.example/${name}`,
      ...(outermost === undefined ? {} : { outermost }),
      callTool(_, run) {
        order.push(name)
        return run()
      },
    })
  const extensions = [wrapper('a'), wrapper('b', true), wrapper('c', false), wrapper('d', true)]
  const tools: Tool[] = [{ name: 'plain', input: { type: 'object' }, run: () => 'done' }]
  const server = createServer({ name: 'x', version: '1', tools, extensions })
  const client = await connect(memory(server))
  await client.callTool('plain')
  await client.close()
  expect(order).toEqual(['b', 'd', 'a', 'c'])
})

describe('before initialize', () => {
  it.each([
    [handshakeRevisions.map(({ id }) => id), -32002],
    [[newest.id], -32602],
  ])('a method of an extension in %j gets %i', async (ids, code) => {
    const { extension } = receipts({ revisions: ids })
    const line = '{"jsonrpc":"2.0","id":1,"method":"receipts/get","params":{"receipt":"r"}}'
    expect(await answers(serverOf(extension), [line])).toMatchObject([{ error: { code } }])
  })
})

describe('a field of subscriptions/listen', () => {
  const listen: Ask = ['subscriptions/listen', { notifications: { receipts: ['r1'] } }]

  it('is acknowledged, and its notifications carry the id of the stream', async () => {
    const { extension, listeners } = receipts()
    const all = await ask(extension, newest.id, DECLARED, [
      listen,
      ['receipts/get', { receipt: 'notify' }],
    ])
    const sent = all.filter(({ method }) => method !== undefined)
    const _meta = { [SUBSCRIPTION_ID]: 1 }
    expect(sent.slice(0, 2)).toMatchObject([
      {
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: { receipts: ['r1'] }, _meta },
      },
      { method: 'notifications/receipts', params: { receipt: 'first', _meta } },
    ])
    // The server has stopped, so there are no listeners.
    expect(listeners.size).toBe(0)
  })

  it('is rejected for a client that has not declared the extension', async () => {
    const all = await ask(receipts().extension, newest.id, {}, [listen])
    expect(byId(all, 1)?.error?.code).toBe(-32021)
  })
})

it('starts with the first transport and stops with the last', async () => {
  const { extension, events } = receipts()
  const server = serverOf(extension)
  const [one, other] = [httpHandler(server), httpHandler(server)]
  expect(events).toEqual(['start x'])
  await one.close(0)
  await one.close(0)
  expect(events).toEqual(['start x'])
  await other.close(0)
  expect(events).toEqual(['start x', 'stop'])
  await answers(server, [])
  expect(events).toEqual(['start x', 'stop', 'start x', 'stop'])
})

it('requires Mcp-Name for a method with a name parameter', async () => {
  const handler = httpHandler(serverOf(receipts().extension))
  const post = (name: string) =>
    handler(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': newest.id,
          'mcp-method': 'receipts/get',
          'mcp-name': name,
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'receipts/get',
          params: {
            receipt: 'r1',
            _meta: { [PROTOCOL_VERSION]: newest.id, [CLIENT_CAPABILITIES]: DECLARED },
          },
        }),
      }),
    )
  expect(await (await post('r1')).json()).toMatchObject({ result: { receipt: 'r1' } })
  expect(await (await post('r2')).json()).toMatchObject({ error: { code: -32020 } })
  await handler.close(0)
})

const stream = { acknowledged: true, start: () => {}, stop: () => {} }

describe('createServer rejects', () => {
  const { extension } = receipts()
  const other = { id: 'com.example/other' }
  it.each<[string, ExtensionDefinition[], string]>([
    ['an id without a prefix', [{ id: 'receipts' }], 'extension "receipts": "id" must be'],
    ['the same id twice', [other, other], 'the id "com.example/other" is taken'],
    [
      'a missing dependency',
      [{ ...other, requires: [ID] }],
      `Extension com.example/other requires ${ID}; add it to "extensions"`,
    ],
    [
      'a method of the protocol',
      [{ ...other, methods: { 'tools/call': { serve: () => ({}) } } }],
      'the method "tools/call" is taken by the core protocol',
    ],
    [
      'a method of another extension',
      [extension, { ...extension, ...other }],
      `the method "receipts/get" is taken by ${ID}`,
    ],
    [
      'a result type of the protocol',
      [{ ...other, resultTypes: ['complete'] }],
      'the result type "complete" is taken by the core protocol',
    ],
    [
      'a field of tools of the protocol',
      [{ ...other, toolFields: { timeout: () => undefined } }],
      'the tool field "timeout" is taken by the core protocol',
    ],
    [
      'a field of subscriptions/listen of the protocol',
      [{ ...other, listen: { resourceSubscriptions: () => stream } }],
      'the listen field "resourceSubscriptions" is taken by the core protocol',
    ],
    [
      'a field of tools of another extension',
      [extension, { ...other, toolFields: { receipt: () => undefined } }],
      'the tool field "receipt" is taken',
    ],
  ])('%s', (_, extensions, message) => {
    expect(() =>
      createServer({ name: 'x', version: '1', extensions: extensions.map(made) }),
    ).toThrow(message)
  })

  it.each<[string, object, string]>([
    ['an unknown member', { setings: {} }, 'unknown option "setings"; did you mean "settings"?'],
    ['an unknown revision', { revisions: ['1999-01-01'] }, 'unknown protocol revision'],
    ['no revision', { revisions: [] }, '"revisions" must list'],
    ['an id with a space', { id: 'com.example/a b' }, '"id" must be a prefix'],
    ['a wrong clientDeclares', { clientDeclares: 'no' }, '"clientDeclares" must be true or false'],
    ['a wrong outermost', { outermost: 1 }, '"outermost" must be true or false'],
    ['settings that are no object', { settings: 1 }, '"settings" must be an object'],
    ['"requires" that is no list', { requires: ID }, '"requires" must be a list of strings'],
    ['a method without serve', { methods: { 'x/y': {} } }, '"methods.x/y": "serve" must be'],
    ['a method that is no object', { methods: { 'x/y': () => ({}) } }, '"methods.x/y" must be'],
    [
      'an unknown property of a method',
      { methods: { 'x/y': { mayAsk: true, serve: () => ({}) } } },
      '"methods.x/y": unknown option "mayAsk"',
    ],
    ['a check that is no function', { toolFields: { cost: 1 } }, '"toolFields.cost" must be'],
    ['a listen field that is no function', { listen: { x: {} } }, '"listen.x" must be a function'],
    ['methods that are a list', { methods: [] }, '"methods" must be an object'],
    ['a callTool that is no function', { callTool: true }, '"callTool" must be a function'],
  ])('%s', (_, more, message) => {
    expect(() => made({ ...other, ...more })).toThrow(message)
  })

  it('an object that extension() has not made', () => {
    expect(() =>
      createServer({ name: 'x', version: '1', extensions: [made(other), other as never] }),
    ).toThrow('"extensions[1]" must be made with extension({ … }) of ccmcp/extensions')
  })

  it('a tool with an invalid extension field', () => {
    expect(() =>
      createServer({
        name: 'x',
        version: '1',
        extensions: [made(extension)],
        tools: [{ ...plain, receipt: 'never' } as Tool],
      }),
    ).toThrow('Tool "plain": "receipt" must be "may" or "must"')
  })
})

it('adds the resources that an extension needs for a tool, once and also later', () => {
  const uri = 'receipts://form'
  const form = { uri, read: () => 'x' }
  const needs = { toolResources: (each: Tool) => (each.name === 'plain' ? [] : [form]) }
  const extensions = [made({ id: ID, ...needs })]
  const other = (name: string): Tool => ({ ...plain, name })
  const server = createServer({ name: 'x', version: '1', extensions, tools: [plain] })
  expect(server.resources.has(uri)).toBe(false)
  server.tools.add(other('a'), other('b'))
  expect([...server.resources.keys()]).toEqual([uri])
  expect(() =>
    createServer({
      name: 'x',
      version: '1',
      extensions,
      tools: [other('a')],
      resources: [{ ...form }],
    }),
  ).toThrow('"receipts://form" is defined twice')
})

it('makes lists private if the extension lists tools by client', async () => {
  const server = createServer({
    name: 'x',
    version: '1',
    tools,
    extensions: [made(receipts().extension)],
    cache: { ttlMs: 1000, cacheScope: 'public' },
  })
  const _meta = { [PROTOCOL_VERSION]: newest.id, [CLIENT_CAPABILITIES]: {} }
  const line = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })
  expect(await answers(server, [line])).toMatchObject([{ result: { cacheScope: 'private' } }])
})
