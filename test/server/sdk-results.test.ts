import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Client as OfficialClient } from '@modelcontextprotocol/sdk/client/index.js'
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import type {
  CallToolResult,
  GetPromptResult,
  ListResourcesResult,
  ReadResourceResult,
} from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { httpHandler } from '../../src/http.js'
import {
  type Prompt,
  type Resource,
  RpcError,
  type Server,
  type Tool,
  ToolError,
  createServer,
  prompt,
  resource,
  result,
  tool,
} from '../../src/index.js'
import { serve } from '../../src/stdio.js'
import { statelessRequest } from '../http/caller.js'

/* Handlers that were written for the official SDK return complete results, which are sent unchanged. */

const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const
const hi = { type: 'text', text: 'hi' } as const

async function officially(server: McpServer): Promise<OfficialClient> {
  const client = new OfficialClient({ name: 'c', version: '1' })
  const [one, other] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(one), client.connect(other)])
  return client
}

const make = (more: { tools?: Tool[]; resources?: Resource[]; prompts?: Prompt[] }) =>
  createServer({ name: 's', version: '1', ...more })

/** Sends requests over a local channel; returns the first response and the log. */
async function ask(
  server: Server,
  method: string,
  ...each: Record<string, unknown>[]
): Promise<{ answer: unknown; log: string }> {
  let log = ''
  const frames = [
    {
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'c', version: '1' },
      },
    },
    { method: 'notifications/initialized' },
    ...each.map((params, index) => ({ id: 2 + index, method, params })),
  ]
  const input = new Blob(
    frames.map((frame) => `${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`),
  ).stream()
  let output = ''
  const { Readable, Writable } = await import('node:stream')
  const collect = (add: (text: string) => void) =>
    new Writable({
      write(chunk: Buffer, _, done) {
        add(chunk.toString())
        done()
      },
    })
  await serve(server, {
    input: Readable.fromWeb(input as never),
    output: collect((text) => (output += text)),
    log: collect((text) => (log += text)),
  })
  const answers = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: number; result?: unknown; error?: unknown })
  const { result: found, error } = answers.find(({ id }) => id === 2) ?? {}
  return { answer: found ?? error, log: log.replaceAll('\\"', '"') }
}

/** Sends a request over HTTP; returns the body of the response and the log. */
async function askRemotely(
  server: Server,
  method: string,
  params: Record<string, unknown>,
): Promise<{ text: string; log: string }> {
  let log = ''
  const handler = httpHandler(server, {
    log: {
      write(text: string) {
        log += text
        return true
      },
    },
  })
  const { body, headers } = statelessRequest(method, params)
  const request = {
    method: 'POST',
    body: String(body),
    headers: headers as Record<string, string>,
  }
  const response = await handler(new Request('http://localhost/mcp', request))
  const text = (await response.text()).replaceAll('\\"', '"')
  await handler.close(0)
  return { text, log: log.replaceAll('\\"', '"') }
}

describe('a result as handlers of the official SDK return it', () => {
  const good: Record<string, CallToolResult> = {
    failure: { content: [{ type: 'text', text: 'failed' }], isError: true },
    success: { content: [hi, image] },
    nothing: { content: [] },
    structured: { content: [hi], structuredContent: { a: 1 } },
    'with _meta': { content: [hi], isError: false, _meta: { 'x/y': 1 } },
  }
  it.each(Object.entries(good))('of a tool is sent unchanged: %s', async (_, value) => {
    const official = new McpServer({ name: 's', version: '1' })
    official.registerTool('it', {}, () => value)
    await using ours = await connect(
      memory(make({ tools: [tool({ name: 'it', run: () => value })] })),
      { revision: '2025-11-25' },
    )
    const theirs = await officially(official)
    const expected = await theirs.callTool({ name: 'it' })
    expect(await ours.callTool('it')).toEqual({ isError: false, ...expected })
    await theirs.close()
  })

  it('of a resource is sent unchanged', async () => {
    const value: ReadResourceResult = {
      contents: [
        { uri: 'a://1', text: 'one' },
        { uri: 'a://2', blob: 'AAAA', mimeType: 'image/png' },
      ],
      _meta: { a: 1 },
    }
    const official = new McpServer({ name: 's', version: '1' })
    official.registerResource(
      'a',
      new ResourceTemplate('a://{id}', { list: undefined }),
      {},
      () => value,
    )
    await using ours = await connect(
      memory(make({ resources: [resource({ uri: 'a://{id}', read: () => value })] })),
      {
        revision: '2025-11-25',
      },
    )
    const theirs = await officially(official)
    expect(await ours.readResource('a://1')).toEqual(await theirs.readResource({ uri: 'a://1' }))
    await theirs.close()
  })

  it('of a prompt is sent unchanged', async () => {
    const value: GetPromptResult = {
      description: 'Now',
      messages: [
        { role: 'assistant', content: hi },
        { role: 'user', content: image },
      ],
      _meta: { a: 1 },
    }
    const official = new McpServer({ name: 's', version: '1' })
    official.registerPrompt('p', { description: 'Before' }, () => value)
    await using ours = await connect(
      memory(make({ prompts: [prompt({ name: 'p', description: 'Before', build: () => value })] })),
      {
        revision: '2025-11-25',
      },
    )
    const theirs = await officially(official)
    expect(await ours.getPrompt('p')).toEqual(await theirs.getPrompt({ name: 'p' }))
    await theirs.close()
  })

  it('may use strings and bytes, and structured content without content', async () => {
    const server = make({
      tools: [
        tool({ name: 'strings', run: () => ({ content: ['a', image], isError: true }) }),
        tool({ name: 'structured', run: () => ({ structuredContent: { at: new Date(0) } }) }),
      ],
      resources: [
        resource({
          uri: 'a://b',
          mimeType: 'x/y',
          read: () => ({ contents: ['a', { blob: new Uint8Array([1]) }] }),
        }),
      ],
      prompts: [
        prompt({
          name: 'p',
          description: 'Its own',
          build: () => ({ messages: [{ role: 'user', content: 'a' }] }),
        }),
      ],
    })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    expect(await client.callTool('strings')).toEqual({
      content: [{ type: 'text', text: 'a' }, image],
      isError: true,
    })
    const at = '1970-01-01T00:00:00.000Z'
    expect(await client.callTool('structured')).toEqual({
      content: [{ type: 'text', text: `{"at":"${at}"}` }],
      structuredContent: { at },
      isError: false,
    })
    expect(await client.readResource('a://b')).toEqual({
      contents: [
        { uri: 'a://b', mimeType: 'x/y', text: 'a' },
        { uri: 'a://b', mimeType: 'x/y', blob: 'AQ==' },
      ],
    })
    expect(await client.getPrompt('p')).toEqual({
      description: 'Its own',
      messages: [{ role: 'user', content: { type: 'text', text: 'a' } }],
    })
  })

  it('may have the resultType of a complete result, and caching hints of its contents', async () => {
    const resultType = 'complete' as const
    const server = make({
      tools: [tool({ name: 'it', run: () => ({ resultType, content: [hi], isError: true }) })],
      resources: [
        resource({
          uri: 'a://b',
          cache: { ttlMs: 5, cacheScope: 'public' },
          read: () => ({ resultType, contents: ['a'], ttlMs: 7 }),
        }),
        resource({
          uri: 'a://c',
          cache: { ttlMs: 5 },
          read: () => ({ contents: ['a'], cacheScope: 'public' as const }),
        }),
      ],
      prompts: [prompt({ name: 'p', build: () => ({ resultType, messages: [] }) })],
    })
    for (const revision of ['2025-11-25', '2026-07-28'] as const) {
      const stateless = revision === '2026-07-28'
      const typed = (hint = {}) =>
        stateless ? { resultType, _meta: expect.anything() as unknown, ...hint } : {}
      await using client = await connect(memory(server), { revision })
      expect(await client.request('tools/call', { name: 'it' })).toEqual({
        content: [hi],
        isError: true,
        ...typed(),
      })
      expect(await client.request('resources/read', { uri: 'a://b' })).toEqual({
        contents: [{ uri: 'a://b', text: 'a' }],
        ...typed({ ttlMs: 7, cacheScope: 'public' }),
      })
      expect(await client.request('resources/read', { uri: 'a://c' })).toEqual({
        contents: [{ uri: 'a://c', text: 'a' }],
        ...typed({ ttlMs: 5, cacheScope: 'public' }),
      })
      expect(await client.request('prompts/get', { name: 'p' })).toEqual({
        messages: [],
        ...typed(),
      })
    }
  })

  it('has members that are undefined only where they count as absent', async () => {
    const none = undefined
    const server = make({
      tools: [
        tool({
          name: 'it',
          run: () => ({
            content: [
              { ...hi, annotations: none },
              { type: 'resource', resource: { uri: 'a://b', text: 'x', mimeType: none } },
            ],
            isError: none,
          }),
        }),
      ],
      resources: [
        resource({
          uri: 'a://{id}',
          mimeType: 'x/y',
          // As written for the SDK, where the first argument is a URL.
          read: (uri) => ({
            contents: [
              { uri: (uri as { href?: string }).href, mimeType: none, text: 'x', blob: none },
            ],
          }),
          list: () => [{ uri: 'a://1', name: 'one', mimeType: none, description: none }],
        }),
      ],
    })
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    expect(await client.callTool('it')).toEqual({
      content: [hi, { type: 'resource', resource: { uri: 'a://b', text: 'x' } }],
      isError: false,
    })
    expect(await client.readResource('a://1')).toEqual({
      contents: [{ uri: 'a://1', mimeType: 'x/y', text: 'x' }],
    })
    expect(await client.request('resources/list')).toEqual({
      resources: [{ uri: 'a://1', name: 'one', mimeType: 'x/y' }],
    })
  })

  it('has members that are null where they count as absent', async () => {
    const none = null as never // as from a database
    const link = { type: 'resource_link' as const, uri: 'a://b', name: 'x' }
    const embedded = { uri: 'a://b', text: 'x' }
    const content = [
      { ...hi, annotations: none, deleted: none },
      { ...link, title: none },
      { type: 'resource' as const, resource: { ...embedded, mimeType: none } },
    ]
    const server = make({
      tools: [tool({ name: 'it', run: () => ({ content }) })],
      prompts: [
        prompt({
          name: 'p',
          build: () => ({ messages: [{ role: 'user', content: content[0] ?? hi }] }),
        }),
      ],
    })
    await using client = await connect(memory(server))
    expect((await client.callTool('it')).content).toEqual([
      hi,
      link,
      { type: 'resource', resource: embedded },
    ])
    expect((await client.getPrompt('p')).messages).toEqual([{ role: 'user', content: hi }])
  })

  it('is not looked for in other values', async () => {
    class Lazy {
      id = 1
      get content(): string {
        throw new Error('not loaded')
      }
    }
    class Page {
      get content() {
        return 'text'
      }
    }
    const values = [
      new Lazy(),
      Object.assign(new Lazy(), { toJSON: () => ({ id: 1 }) }),
      new Page(),
      { title: undefined, content: 'text' },
      { title: undefined, content: ['a', 'b'] },
      { data: undefined, _meta: {} },
    ]
    for (const value of values) {
      const server = make({ tools: [tool({ name: 'it', run: () => value })] })
      await using client = await connect(memory(server))
      expect(await client.callTool('it')).toMatchObject({
        isError: false,
        content: [{ type: 'text', text: JSON.stringify(value) }],
      })
    }
  })

  it('has the types of the official SDK', () => {
    const read = async (): Promise<ReadResourceResult> => ({ contents: [] })
    const build = async (): Promise<GetPromptResult> => ({ messages: [] })
    const list = async (): Promise<ListResourcesResult> => ({ resources: [] })
    expect(resource({ uri: 'a://b', read }).read).toBe(read)
    expect(resource({ uri: 'a://{b}', read, list }).list).toBe(list)
    expect(prompt({ name: 'p', build }).build).toBe(build)
    // @ts-expect-error contents are a list
    expect(resource({ uri: 'a://b', read: () => ({ contents: 'nope' }) }).uri).toBe('a://b')
    // @ts-expect-error messages have a role
    expect(prompt({ name: 'p', build: () => ({ messages: [{ content: 'x' }] }) }).name).toBe('p')
    // @ts-expect-error these messages too
    expect(prompt({ name: 'p', build: () => ({ messages: ['x'] }) }).name).toBe('p')
    // @ts-expect-error a content block has a type
    expect(prompt({ name: 'p', build: () => ['x', { text: 'y' }] }).name).toBe('p')
  })
})

describe('malformed results', () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  it.each<[unknown, string]>([
    [
      { content: 'nope' },
      'its result looks like a CallToolResult, but its "content" is not an array of content blocks',
    ],
    [{ content: null }, 'its "content" is not an array of content blocks'],
    [{ isError: true }, 'it has no "content"'],
    [{ _meta: {} }, 'it has no "content"'],
    [{ content: [], isError: 'yes' }, 'its "isError" is not true or false'],
    [{ content: [], _meta: 5 }, 'its "_meta" is not an object'],
    [
      { content: [hi, { type: 'video' }] },
      'content[1] is neither a string nor a content block: its "type" is "video"; it must be one of text',
    ],
    [
      { content: [{ type: 'text', text: 5 }] },
      'content[0] is neither a string nor a content block: one of type "text" needs a string "text"',
    ],
    [
      { content: [{ type: 'image', data: 'x' }] },
      'one of type "image" needs strings "data" (base64) and "mimeType"',
    ],
    [{ content: [null] }, 'its "type" is missing'],
    [{ content: [{ type: 5n }] }, 'its "type" is a bigint'],
    [
      { content: [hi], isError: true, code: 3 },
      'looks like a CallToolResult, but "code" is not a member of one',
    ],
    [{ content: [], isError: true, code: 3 }, '"code" is not a member of one'],
    [
      { resultType: 'input_required', inputRequests: {}, requestState: 'x' },
      'its result is "input_required"; use call.ask to ask for input',
    ],
    [
      { ...image, data: 'data:image/png;base64,AAAA' },
      'content[0]: "data" must be base64 without "data:" before it',
    ],
    [new TypeError('it broke'), 'it broke'],
    [new Map([['a', 1]]), 'its result is not JSON; return a plain object or an array'],
    [new Set([1]), 'its result is not JSON; return a plain object or an array'],
    [{ content: [], structuredContent: circular }, 'failed'],
    [{ content: [], structuredContent: 5n }, 'its result cannot be written as JSON'],
  ])('of a tool are an error result with the reason: %#', async (value, problem) => {
    const server = make({ tools: [tool({ name: 'it', run: () => value })] })
    const { answer, log } = await ask(server, 'tools/call', { name: 'it', arguments: {} })
    expect(answer).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('Tool it failed: ') as unknown }],
    })
    expect(JSON.stringify(answer).replaceAll('\\"', '"')).toContain(problem)
    expect(log).toContain(problem.slice(0, 40))
    const { text: remote } = await askRemotely(server, 'tools/call', { name: 'it', arguments: {} })
    expect(remote).toMatch(/Tool it failed \(reference [0-9a-f]{8}\)"/)
  })

  it.each<[unknown, string]>([
    [{ content: [hi], other: 1 }, '{"content":[{"type":"text","text":"hi"}],"other":1}'],
    [{}, '{}'],
    [{ a: undefined }, '{}'],
    [{ resultType: 'vector' }, '{"resultType":"vector"}'],
    [{ content: [], other: 1 }, '{"content":[],"other":1}'],
    [Object.assign(new Map(), { toJSON: () => 6 }), '6'],
    [{ toJSON: () => 5, content: [] }, '5'],
  ])('with other members or none are a value: %#', async (value, text) => {
    await using client = await connect(
      memory(make({ tools: [tool({ name: 'it', run: () => value })] })),
    )
    expect(await client.callTool('it')).toMatchObject({
      content: [{ type: 'text', text }],
      isError: false,
    })
  })

  it('with another member beside content blocks are sent as JSON text, with one warning', async () => {
    const run = () => ({ content: [hi], meta: {} })
    const { answer, log } = await ask(
      make({ tools: [tool({ name: 'it', run })] }),
      'tools/call',
      { name: 'it', arguments: {} },
      { name: 'it', arguments: {} },
    )
    expect(answer).toEqual({
      content: [{ type: 'text', text: JSON.stringify(run()) }],
      isError: false,
    })
    const warning =
      'Tool it returned what looks like a CallToolResult, but "meta" is not a member of one; it was sent as JSON text'
    expect(log.split(warning)).toHaveLength(2)
  })

  it('that are errors count as thrown', async () => {
    const server = make({
      tools: [
        tool({ name: 'model', run: () => new ToolError('for the model') }),
        tool({ name: 'rpc', run: async () => new RpcError(7, 'for the client') }),
        tool({ name: 'out', output: { type: 'object' }, run: () => new Error('x') as never }),
      ],
    })
    await using client = await connect(memory(server))
    const said = (text: string) => ({ content: [{ type: 'text', text }], isError: true })
    expect(await client.callTool('model')).toMatchObject(said('for the model'))
    expect(await client.callTool('out')).toMatchObject(said('Tool out failed: x'))
    await expect(client.callTool('rpc')).rejects.toMatchObject({ code: 7 })
  })

  it.each<[string, unknown, string]>([
    ['read', { contents: 'nope' }, 'its result has "contents" that are not an array'],
    [
      'read',
      { contents: [{ uri: 'a://b' }] },
      'contents[0] must be a string, bytes, or an object with a "text" or a "blob"',
    ],
    [
      'read',
      { contents: ['a', { text: 'b', mimeType: 5 }] },
      'contents[1].mimeType must be a string',
    ],
    [
      'read',
      { contents: [], text: 'a' },
      'its result has "contents" and "text", which is not a member of a ReadResourceResult',
    ],
    ['read', { contents: [], _meta: 1 }, 'its result has a "_meta" that is not an object'],
    ['read', { contents: [], ttlMs: '5' }, '"cache.ttlMs" must be a non-negative integer'],
    ['read', { contents: [], resultType: 'other' }, 'its result has "contents" and "resultType"'],
    ['read', { contents: [{ uri: null, text: 'a' }] }, 'contents[0].uri must be a string'],
    ['read', { resultType: 'input_required', inputRequests: {} }, 'use call.ask to ask for input'],
    ['build', { resultType: 'input_required', inputRequests: {} }, 'use call.ask to ask for input'],
    ['read', 5, 'contents[0] must be a string, bytes'],
    ['build', { messages: 'nope' }, 'its result has "messages" that are not an array'],
    [
      'build',
      { messages: [{ role: 'system', content: hi }] },
      'messages[0] must have a "role", "user" or "assistant", and a "content"',
    ],
    [
      'build',
      { messages: [{ role: 'user', content: { type: 'video' } }] },
      'its "type" is "video"',
    ],
    [
      'build',
      { messages: [], description: 5 },
      'its result has a "description" that is not a string',
    ],
    ['build', { messages: [], other: 5 }, 'which is not a member of a GetPromptResult'],
    ['build', { messages: ['a'] }, 'messages[0] must have a "role"'],
    ['build', ['a', { role: 'system', content: hi }], 'messages[1] must have a "role"'],
    ['build', ['a', { role: 'user' }], 'messages[1] must have a "role"'],
    ['build', ['a', 5], 'neither a string nor a content block'],
    ['build', ['a', ['b']], 'messages[1] must have a "role"'],
  ])('of %s are an internal error with the reason: %j', async (kind, value, problem) => {
    const server = make({
      resources: [resource({ uri: 'a://b', read: () => value as string })],
      prompts: [prompt({ name: 'p', build: () => value as string })],
    })
    const [method, params, what] =
      kind === 'read'
        ? ['resources/read', { uri: 'a://b' }, 'Resource a://b']
        : ['prompts/get', { name: 'p' }, 'Prompt p']
    const { answer, log } = await ask(server, String(method), params)
    const text = `${String(what)} returned a malformed result`
    expect(answer).toEqual({
      code: -32603,
      message: expect.stringContaining(String(problem)) as string,
    })
    expect(answer).toMatchObject({ message: expect.stringContaining(`${text}: `) as string })
    expect(log).toContain(text)
    expect(log).toContain(problem)
  })

  it.each<[string, Record<string, unknown>, what: string, reason: string]>([
    ['resources/read', { uri: 'a://b' }, 'Resource a://b', 'contents[0] must be a string, bytes'],
    ['prompts/get', { name: 'p' }, 'Prompt p', 'content[0] is neither a string nor'],
    ['resources/list', {}, '"list" of resource a://{id}', 'it must be an array'],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
      '"complete" of "a" in "p"',
      'it must be an array of strings',
    ],
  ])('have no reason for a remote caller: %s', async (method, params, what, reason) => {
    const odd = () => 5 as never
    const server = make({
      resources: [
        resource({ uri: 'a://b', read: odd }),
        resource({ uri: 'a://{id}', read: odd, list: odd }),
      ],
      prompts: [prompt({ name: 'p', arguments: { a: { complete: odd } }, build: odd })],
    })
    if (method === 'prompts/get') params = { ...params, arguments: { a: '' } }
    const local = await ask(server, method, params)
    expect(local.answer).toMatchObject({
      message: expect.stringContaining(`${what} returned a malformed result: ${reason}`) as string,
    })
    const { text, log } = await askRemotely(server, method, params)
    expect(text).toContain(`${what} returned a malformed result (reference `)
    expect(text).not.toContain(reason)
    const [reference = '?'] = /\(reference [0-9a-f]{8}\)/.exec(text) ?? []
    expect(log).toContain(reference)
    expect(log).toContain(reason)
  })
})

describe('the list of a template', () => {
  const listed = (value: unknown, mimeType?: string) =>
    ask(
      make({
        resources: [
          resource({
            uri: 'a://{id}',
            read: () => '',
            list: () => value as [],
            ...(mimeType === undefined ? {} : { mimeType }),
          }),
        ],
      }),
      'resources/list',
      {},
    )

  it('may be { resources }, or any iterable', async () => {
    const one = { uri: 'a://1', name: 'one' }
    for (const value of [[one], { resources: [one] }, new Set([one])])
      expect(await listed(value)).toEqual({ answer: { resources: [one] }, log: '' })
  })

  it('is sent without members that are null', async () => {
    const none = null
    const entry = {
      uri: 'a://1',
      name: 'one',
      title: none,
      description: none,
      mimeType: none,
      size: none,
      annotations: { lastModified: none, priority: 1 },
      icons: [{ src: 'data:,', mimeType: none }],
      _meta: none,
    }
    const annotations = { priority: 1 }
    const shown = { uri: 'a://1', name: 'one', annotations, icons: [{ src: 'data:,' }] }
    expect((await listed([entry])).answer).toEqual({ resources: [shown] })
    expect((await listed([entry], 'x/y')).answer).toEqual({
      resources: [{ ...shown, mimeType: 'x/y' }],
    })
  })

  it.each<[unknown, string]>([
    [undefined, 'it must be an array'],
    [null, 'it must be an array'],
    [{ items: [] }, 'it must be an array'],
    [{ resources: 5 }, 'it must be an array'],
    ['a', 'an item of it is without a "uri" and a "name"'],
    [[{ uri: 'a://1', name: null }], 'an item of it is without a "uri" and a "name"'],
  ])('is an error that names the template: %j', async (value, problem) => {
    const { answer, log } = await listed(value)
    const text = '"list" of resource a://{id} returned a malformed result'
    expect(answer).toEqual({ code: -32603, message: `${text}: ${problem}` })
    expect(log).toContain(text)
    expect(log).toContain(problem)
  })
})

describe('completions', () => {
  const complete = () => ({ values: ['a'] }) as never
  it.each<[object, string]>([
    [{ type: 'ref/resource', uri: 'a://{id}' }, 'a://{id}'],
    [{ type: 'ref/prompt', name: 'p' }, 'p'],
  ])('that are not an array of strings are an error that names them: %j', async (ref, of) => {
    for (const value of [complete, () => [5] as never, async () => undefined as never]) {
      const server = make({
        resources: [resource({ uri: 'a://{id}', read: () => '', complete: { id: value } })],
        prompts: [prompt({ name: 'p', arguments: { id: { complete: value } }, build: () => '' })],
      })
      const argument = { name: 'id', value: '' }
      const { answer, log } = await ask(server, 'completion/complete', { ref, argument })
      const text = `"complete" of "id" in "${of}" returned a malformed result`
      const reason = 'it must be an array of strings'
      expect(answer).toEqual({ code: -32603, message: `${text}: ${reason}` })
      expect(log).toContain(text)
      expect(log).toContain(reason)
    }
  })
})

describe('with an output schema, a value that looks like a result', () => {
  const value = { content: [hi], structuredContent: { sum: 3 } }
  const sum = {
    type: 'object',
    properties: { sum: { type: 'number' } },
    required: ['sum'],
  } as const
  const own = {
    type: 'object',
    properties: { content: { type: 'array' } },
    required: ['content'],
  } as const
  const call = (output: Tool['output'], run = () => value as unknown) =>
    ask(
      make({
        tools: [
          tool({
            name: 'it',
            output: output as { type: 'object' },
            run: run as () => Record<string, unknown>,
          }),
        ],
      }),
      'tools/call',
      {
        name: 'it',
        arguments: {},
      },
    )

  it('is an error with a hint if it is invalid', async () => {
    const { answer, log } = await call(sum)
    const hint =
      'With an "output" schema, return the value itself, or result({ value, content }) to send content beside it; for a failure, throw a ToolError or return result({ isError: true, content })'
    expect(answer).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining(hint) as unknown }],
    })
    expect(log).toContain(hint)
  })

  it('is used if it is valid, with one warning', async () => {
    const { answer, log } = await call(own)
    expect(answer).toMatchObject({ isError: false, structuredContent: value })
    expect(
      log.match(/returned what looks like a CallToolResult; it was used as the value/g),
    ).toHaveLength(1)
    const branded = await call(own, () => result({ value: { content: [] }, content: 'x' }))
    expect(branded).toMatchObject({
      answer: { content: [{ text: 'x' }], structuredContent: { content: [] } },
      log: '',
    })
  })
})
