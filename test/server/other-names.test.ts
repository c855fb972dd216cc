import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connect, memory } from '../../src/client.js'
import {
  type Call,
  type Prompt,
  type Resource,
  type Tool,
  createServer,
  form,
  prompt,
  resource,
  sample,
  tool,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'

/* Names and shapes of the wire format and of other SDKs, which JavaScript would ignore without an error. */

const base = { name: 's', version: '1' }
const asTool = (more: object) => tool({ name: 'x', run: () => '', ...more })
const asPrompt = (more: object) => prompt({ name: 'x', build: () => '', ...more })
const asResource = (more: object) => resource({ uri: 'a://{id}', read: () => '', ...more })

const WRONG: [kind: 'tools' | 'prompts' | 'resources', wrong: string, right: string][] = [
  ['tools', 'inputSchema', 'input'],
  ['tools', 'paramsSchema', 'input'],
  ['tools', 'argsSchema', 'input'],
  ['tools', 'parameters', 'input'],
  ['tools', 'outputSchema', 'output'],
  ['tools', 'handler', 'run'],
  ['tools', 'execute', 'run'],
  ['tools', 'callback', 'run'],
  ['tools', '_meta', 'meta'],
  ['prompts', 'argsSchema', 'arguments'],
  ['prompts', 'inputSchema', 'arguments'],
  ['prompts', 'parameters', 'arguments'],
  ['prompts', 'handler', 'build'],
  ['prompts', 'callback', 'build'],
  ['prompts', '_meta', 'meta'],
  ['resources', 'handler', 'read'],
  ['resources', 'callback', 'read'],
  ['resources', 'uriTemplate', 'uri'],
  ['resources', '_meta', 'meta'],
]

describe('a member with another name here', () => {
  it.each(WRONG)('is refused in %s: %s is %s', (kind, wrong, right) => {
    const message = `"${wrong}" is called "${right}" here`
    const more = { [wrong]: {} }
    const made = { tools: asTool, prompts: asPrompt, resources: asResource }[kind]
    expect(() => createServer({ ...base, [kind]: [made(more)] })).toThrow(message)
    const server = createServer({ ...base, [kind]: [made({})] })
    expect(() => server[kind].update(kind === 'resources' ? 'a://{id}' : 'x', more)).toThrow(
      message,
    )
  })

  it('is named, not what is missing because of it', () => {
    const prompts = [{ name: 'x', handler: () => '' } as unknown as Prompt]
    const resources = [{ uriTemplate: 'a://{id}', read: () => '' } as unknown as Resource]
    expect(() => createServer({ ...base, prompts })).toThrow('"handler" is called "build" here')
    expect(() => createServer({ ...base, resources })).toThrow('"uriTemplate" is called "uri" here')
  })

  it('is accepted beside the same value under its name here', () => {
    const other = { parameters: { type: 'object' }, execute: () => '', _meta: undefined }
    const made = asTool({ ...other, input: other.parameters, run: other.execute })
    expect(() => createServer({ ...base, tools: [made] })).not.toThrow()
  })

  it('is accepted where it has no other name, as any other member is', () => {
    const server = createServer({
      ...base,
      tools: [asTool({ uriTemplate: 1, category: 'a' })],
      prompts: [asPrompt({ outputSchema: 1, constructor: 1 })],
      resources: [asResource({ parameters: 1 })],
    })
    expect(server.tools.size + server.prompts.size + server.resources.size).toBe(3)
  })
})

describe('complete of a resource', () => {
  const define = (complete: unknown, uri = 'a://{id}/{+path}') => {
    const resources = [{ uri, read: () => '', complete } as unknown as Resource]
    return () => createServer({ ...base, resources })
  }
  const message =
    '"complete" must be an object of functions, each under a variable of the URI: id, path'

  it.each<[string, unknown]>([
    ['a function', () => []],
    ['an array', [() => []]],
    ['null', null],
    ['of a variable that does not exist', { wrong: () => [] }],
    ['of values instead of functions', { id: ['a'] }],
  ])('is refused if it is %s', (_, complete) => {
    expect(define(complete)).toThrow(message)
  })
  it('is refused for a fixed URI', () => {
    expect(define({ id: () => [] }, 'a://b')).toThrow('a variable of the URI: none')
  })
  it('may leave out variables', () => {
    expect(define({ id: () => [], path: undefined })).not.toThrow()
    expect(define({}, 'a://b')).not.toThrow()
  })
})

describe('a tool without tool({ … })', () => {
  it('needs no input, as with it', async () => {
    const listed = async (tools: Tool[]) => {
      await using client = await connect(memory(createServer({ ...base, tools })))
      await expect(client.callTool('x', { a: 1 })).resolves.toMatchObject({ isError: true })
      await expect(client.callTool('x')).resolves.toMatchObject({ content: [{ text: 'ok' }] })
      return (await client.request('tools/list')).tools
    }
    const plain = { name: 'x', run: () => 'ok' }
    expect(await listed([plain])).toEqual(await listed([tool(plain)]))
  })
  it('can be added later, and served by `handle`', () => {
    const server = createServer({ ...base, handle: () => '' })
    server.tools.add({ name: 'x', run: () => '' }, { name: 'y' })
    expect(server.tools.size).toBe(2)
  })
})

describe('arguments of another SDK', () => {
  it('createServer takes one object', () => {
    const create = createServer as (...given: unknown[]) => unknown
    expect(() => create(base, { instructions: 'x', capabilities: {} })).toThrow(
      'createServer takes one object: add "instructions" to it',
    )
    expect([base, base].map(createServer)).toHaveLength(2)
  })
  it.each([{ uri: 'a://b' }, new URL('a://b'), undefined])('updated(%j)', (uri) => {
    const server = createServer(base)
    expect(() => server.updated(uri as never)).toThrow('server.updated: the URI must be a string')
  })
  it('call.progress with an object', async () => {
    const run = (_: unknown, call: Call) => call.progress({ progress: 1, total: 2 } as never)
    const tools = [tool({ name: 'x', run })]
    await using client = await connect(memory(createServer({ ...base, tools })))
    await expect(client.callTool('x')).resolves.toMatchObject({
      isError: true,
      content: [
        { text: expect.stringContaining('call.progress(done, total, message)') as unknown },
      ],
    })
  })
})

describe('sample()', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a prompt', { prompt: 'x', maxTokens: 5 }],
    ['a string as messages', { messages: 'x', maxTokens: 5 }],
    ['no maxTokens', { messages }],
    ['maxTokens that is not an integer', { messages, maxTokens: '5' }],
  ])('rejects %s', (_, params) => {
    expect(() => sample(params as never)).toThrow(
      'sample: "messages" must be an array of { role, content }, and "maxTokens" an integer',
    )
  })
})

describe.each(revisions.map(({ id }) => id))('in %s', (revision) => {
  const ask = async (question: () => unknown) => {
    const seen: unknown[] = []
    const tools = [
      tool({
        name: 'x',
        run: (_, call) => call.ask({ q: question() as ReturnType<typeof sample> }),
      }),
    ]
    await using client = await connect(memory(createServer({ ...base, tools })), {
      revision,
      elicit: () => ({ action: 'accept', content: {} }),
      sample: ({ messages }) => {
        seen.push(...messages)
        return { role: 'assistant', model: 'm', content: { type: 'text', text: '' } }
      },
    })
    const { content } = await client.callTool('x')
    return { seen, text: JSON.stringify(content) }
  }

  it('strings are text blocks of a sampling message', async () => {
    const { seen } = await ask(() =>
      sample({
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: ['', { type: 'text', text: 'b' }] },
        ],
        maxTokens: 5,
      }),
    )
    const blocks = (seen as { content: unknown }[]).flatMap(({ content }) => content)
    expect(blocks).toEqual(['hi', '', 'b'].map((text) => ({ type: 'text', text })))
  })

  it.each([
    [null],
    ['hi'],
    [{ role: 'user' }],
    [{ content: 'hi' }],
    [{ role: 'user', content: 5 }],
  ])('the sampling message %j is rejected', async (message) => {
    const { text } = await ask(() => sample({ messages: [message as never], maxTokens: 5 }))
    expect(text).toContain('each of \\"messages\\" must have a \\"role\\" and a \\"content\\"')
  })

  it.each<[string, object, string]>([
    [
      'requestedSchema',
      { message: 'x', requestedSchema: { type: 'object', properties: {} } },
      'form: it has no \\"schema\\" (the \\"requestedSchema\\" of the protocol)',
    ],
    [
      'a raw shape',
      { message: 'x', schema: { a: z.string() } },
      'form: its schema is a raw shape, not a schema',
    ],
    [
      'an array as schema',
      { message: 'x', schema: [] },
      'form: its schema is not valid: a JSON Schema must be an object',
    ],
    ['no message', { schema: z.object({ a: z.string() }) }, 'form: \\"message\\" must be a string'],
  ])('form() with %s is an error with advice', async (_, question, message) => {
    const { text } = await ask(() => form(question as Parameters<typeof form>[0]))
    expect(text).toContain(message)
  })
})
