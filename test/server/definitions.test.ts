import { type } from 'arktype'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connect, memory } from '../../src/client.js'
import {
  type TokenVerifier,
  type StaticToken,
  httpHandler,
  listen,
  tokens,
} from '../../src/http.js'
import {
  type Prompt,
  type PromptArgument,
  type Resource,
  createServer,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'

/* Invalid definitions are rejected when they are created, with a message that says what to do. */

const base = { name: 's', version: '1' }

describe('the arguments of a prompt', () => {
  const define = (args: unknown) => () =>
    createServer({
      ...base,
      prompts: [
        prompt({ name: 'p', arguments: args as Record<string, PromptArgument>, build: () => '' }),
      ],
    })

  it.each<[string, unknown, string]>([
    [
      'an array',
      [{ name: 'code', required: true }],
      '"arguments" must be an object with a member for each argument, not an array. The arguments of a prompt are strings: name each',
    ],
    [
      'a schema',
      z.object({ code: z.string() }),
      '"arguments" must be an object with a member for each argument, not a schema',
    ],
    ['a schema that is a function', type({ code: 'string' }), 'not a schema'],
    [
      'a JSON Schema',
      { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] },
      '"arguments" looks like a JSON Schema',
    ],
    ['a string', 'code', 'not string'],
    ['null', null, 'not null'],
    [
      'schemas by name',
      { code: z.string() },
      'the argument "code" is a schema. The arguments of a prompt are strings',
    ],
    [
      'JSON Schemas by name',
      { code: { type: 'string' } },
      'the argument "code" has the unknown member "type"; expected one of title, description, required, values, complete. The arguments',
    ],
    [
      'descriptions by name',
      { code: 'What to review' },
      'the argument "code" must be an object, not string',
    ],
    [
      'an unknown member',
      { code: { require: false } },
      'the argument "code" has the unknown member "require"; expected one of',
    ],
    [
      'a wrong member',
      { code: { required: 'yes' } },
      '"required" of the argument "code" must be true or false',
    ],
    ['a wrong title', { code: { title: 5 } }, '"title" of the argument "code" must be a string'],
    [
      'no values',
      { code: { values: [] } },
      '"values" of the argument "code" must be an array of strings',
    ],
    [
      'a value twice',
      { code: { values: ['a', 'b', 'a'] } },
      '"values" of the argument "code" has the same value twice',
    ],
    [
      'an invalid complete',
      { code: { complete: ['a'] } },
      '"complete" of the argument "code" must be a function',
    ],
    ['an empty name', { '': {} }, 'an argument needs a name'],
  ])('cannot be %s', (_, args, message) => {
    expect(define(args)).toThrow(`Prompt "p": `)
    expect(define(args)).toThrow(message)
  })

  it.each([{}, { type: {} }, { a: { title: undefined, values: ['x'], complete: () => [] } }])(
    'may be %j',
    (args) => {
      expect(define(args)).not.toThrow()
    },
  )
})

describe('the members of a resource', () => {
  it.each<[object, string]>([
    [{ size: '12' }, '"size" must be a non-negative integer'],
    [{ size: -1 }, '"size" must be a non-negative integer'],
    [{ mimeType: 5 }, '"mimeType" must be a string'],
    [{ name: 5 }, '"name" must be a string'],
    [{ name: null }, '"name" must be a string'],
    [{ read: 'x' }, '"read" must be a function'],
    [{ list: [] }, '"list" must be a function'],
    [
      { complete: { x: ['a'] } },
      '"complete" must be an object of functions, each under a variable of the URI',
    ],
    [
      { complete: () => [] },
      '"complete" must be an object of functions, each under a variable of the URI',
    ],
  ])('are checked: %j', (members, message) => {
    const made = { uri: 'a://{x}', read: () => '', ...members } as Resource
    expect(() => createServer({ ...base, resources: [made] })).toThrow(
      `Resource "a://{x}": ${message}`,
    )
  })

  it('may be undefined', () => {
    const made = { uri: 'a://{x}', read: () => '', name: undefined, complete: { x: undefined } }
    expect(() => createServer({ ...base, resources: [made as unknown as Resource] })).not.toThrow()
  })
})

describe('duplicate definitions', () => {
  const [one, two] = [tool({ name: 'add', run: () => '' }), tool({ name: 'add', run: () => '' })]
  const made = (uri: string) => resource({ uri, read: () => '' })
  const said = prompt({ name: 'p', build: () => '' })
  it.each<[string, object, string]>([
    ['a tool', { tools: [one, two] }, 'Tool "add" is defined twice; give one of them another name'],
    ['the same tool', { tools: [one, one] }, 'Tool "add" is defined twice'],
    [
      'a resource',
      { resources: [made('a://b'), made('A://B')] },
      'Resource "A://B" is the same as "a://b", which is defined already',
    ],
    [
      'a template',
      { resources: [made('a://{b}'), made('a://{b}')] },
      'Resource "a://{b}" is defined twice',
    ],
    [
      'a template by its shape',
      { resources: [made('a://{b}'), made('a://{c}')] },
      'it matches the same URIs as a://{b}',
    ],
    ['a prompt', { prompts: [said, said] }, 'Prompt "p" is defined twice'],
    ['nothing', { prompts: [undefined] }, 'A prompt must be an object, as prompt({ … }) makes it'],
    [
      'no resource',
      { resources: [undefined] },
      'A resource must be an object, as resource({ … }) makes it',
    ],
  ])('rejects %s', (_, options, message) => {
    expect(() => createServer({ ...base, ...options })).toThrow(message)
  })
})

describe('auth of a server', () => {
  const token = 'alice-0123456789abcdef'
  it.each<[unknown, string]>([
    [{}, 'tokens: the argument must be an array such as [{ token: "…", id: "alice"'],
    [undefined, 'tokens: the argument must be an array'],
    [token, 'tokens: the argument must be an array'],
    [[token], 'tokens: each entry must be an object with "token"'],
    [
      [{ token, id: 'alice', scope: ['admin'] }],
      'tokens: unknown member "scope"; an entry has "token", "id" and "scopes"',
    ],
    [
      [
        { token, id: 'alice' },
        { token, id: 'bob' },
      ],
      'tokens: "alice" and "bob" have the same token; give each entry its own',
    ],
  ])('tokens() rejects %j', (list, message) => {
    expect(() => tokens(list as StaticToken[])).toThrow(message)
  })

  it.each<[string, unknown, string]>([
    ['a function', () => true, 'not a function: write auth: { verify: (token) => … }'],
    ['true', true, 'not boolean'],
    ['null', null, 'not null'],
    ['an array', [{ token, id: 'alice' }], 'not an array'],
    ['a string', token, 'not string'],
    ['an object without verify', { scopes: [] }, 'it has no "verify"'],
    [
      'an object with invalid scopes',
      { verify: () => undefined, scopes: 'admin' },
      '"auth.scopes" must be an array of strings',
    ],
  ])('listen() rejects an auth that is %s', async (_, auth, message) => {
    const server = createServer(base)
    expect(() => httpHandler(server, { auth: auth as TokenVerifier })).toThrow(message)
    await expect(
      listen(server, { port: 0, host: '0.0.0.0', auth: auth as TokenVerifier }),
    ).rejects.toThrow(message)
  })
})

describe.each(revisions.map(({ id }) => id))('in %s', (revision) => {
  const notes = new Map([['a', 'A']])
  const serving = (more: Partial<Resource> = {}) =>
    createServer({
      ...base,
      resources: [
        {
          uri: 'note://{name}',
          mimeType: 'text/markdown',
          read: ({ name }) => notes.get(String(name)),
          list: () =>
            [...notes.keys()].map((name) => ({
              uri: `note://${name}`,
              name,
              ...(name === 'b' ? { mimeType: 'text/plain' } : {}),
            })),
          ...more,
        },
      ],
    })

  it('an entry of list() inherits the mimeType of its template', async () => {
    notes.set('b', 'B')
    await using client = await connect(memory(serving()), { revision })
    const { resources } = await client.request('resources/list')
    expect(resources).toEqual([
      { uri: 'note://a', name: 'a', mimeType: 'text/markdown' },
      { uri: 'note://b', name: 'b', mimeType: 'text/plain' },
    ])
    notes.delete('b')
  })

  it('changed() sends list_changed for tools, resources and prompts', async () => {
    const server = serving()
    const offer: [tool: ReturnType<typeof tool>, prompt: Prompt] = [
      tool({ name: 't', run: () => '' }),
      prompt({ name: 'p', build: () => '' }),
    ]
    server.tools.add(offer[0])
    server.prompts.add(offer[1])
    await using client = await connect(memory(server), { revision })
    const heard: string[] = []
    for (const list of ['tools', 'resources', 'prompts'])
      client.on(`notifications/${list}/list_changed`, () => heard.push(list))
    const all = { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true }
    const stop = new AbortController()
    if (revision === '2026-07-28')
      void client
        .request('subscriptions/listen', { notifications: all }, { signal: stop.signal })
        .catch(() => {})
    await client.request('resources/list')
    server.resources.changed()
    server.resources.changed()
    await client.request('resources/list')
    expect(heard.splice(0)).toEqual(['resources'])
    server.tools.changed()
    server.prompts.changed()
    await client.request('resources/list')
    expect(heard).toEqual(['tools', 'prompts'])
    stop.abort()
  })
})
