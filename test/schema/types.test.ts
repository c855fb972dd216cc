import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import type * as clients from '../../src/client.js'
import type { Client, Requests } from '../../src/client.js'
import {
  type Call,
  type CallToolResult,
  type GetPromptResult,
  type JsonSchema,
  type LogLevel,
  type PromptMessage,
  type ReadResourceResult,
  type ResourceContents,
  type Schema,
  type StandardSchema,
  type Tool,
  type ToolDefinition,
  createServer,
  form,
  prompt,
  resource,
  result,
  sample,
  tool,
} from '../../src/index.js'
import type { Params } from '../../src/jsonrpc/message.js'
import type { Infer, InferInput } from '../../src/schema/infer.js'
import { ENTRY, ROOT, compile } from './compiler.js'

/*
 * Vitest does not look at types: the compiler does, over this file, in the
 * last test (and with the rest of the project). The handlers are never called.
 */

const name = 't'

describe('a JSON Schema written in place', () => {
  it('gives the handler its types', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          text: { type: 'string', minLength: 1 },
          count: { type: 'integer' },
          ratio: { type: 'number' },
          deep: { type: 'boolean' },
          none: { type: 'null' },
        },
        required: ['text', 'none'],
      },
      run(input, call) {
        expectTypeOf(input).toEqualTypeOf<{
          text: string
          none: null
          count?: number
          ratio?: number
          deep?: boolean
        }>()
        expectTypeOf(call).toEqualTypeOf<Call>()
        // @ts-expect-error there is no such member
        void input.other
        // @ts-expect-error it may be missing
        void input.count.toFixed()
        return input.text.length
      },
    })
  })

  it('makes every member optional where none is required', () => {
    tool({
      name,
      input: { type: 'object', properties: { a: { type: 'string' } } },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ a?: string }>()
      },
    })
    tool({
      name,
      input: { type: 'object', properties: { a: { type: 'string' } }, required: [] },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ a?: string }>()
      },
    })
  })

  it('infers enums, consts and lists of types', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          mode: { enum: ['fast', 'slow'] },
          level: { type: 'integer', enum: [1, 2, null] },
          fixed: { const: 'on' },
          either: { type: ['string', 'null'] },
          both: { type: ['integer', 'number'] },
        },
        required: ['mode', 'level', 'fixed', 'either', 'both'],
      },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{
          mode: 'fast' | 'slow'
          level: 1 | 2 | null
          fixed: 'on'
          either: string | null
          both: number
        }>()
      },
    })
  })

  it('infers nested objects and arrays', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          user: {
            type: 'object',
            properties: {
              id: { type: 'integer' },
              tags: { type: 'array', items: { type: 'string' } },
            },
            required: ['id'],
          },
          grid: { type: 'array', items: { type: 'array', items: { type: 'number' } } },
          rows: {
            type: 'array',
            items: { type: 'object', properties: { key: { enum: ['a', 'b'] } }, required: ['key'] },
          },
          any: { type: 'array' },
          map: { type: 'object' },
          open: {},
          yes: true,
        },
        required: ['user', 'rows'],
        additionalProperties: false,
      },
      run(input) {
        expectTypeOf(input.user).toEqualTypeOf<{ id: number; tags?: string[] }>()
        expectTypeOf(input.grid).toEqualTypeOf<number[][] | undefined>()
        expectTypeOf(input.rows).toEqualTypeOf<{ key: 'a' | 'b' }[]>()
        expectTypeOf(input.any).toEqualTypeOf<unknown[] | undefined>()
        expectTypeOf(input.map).toEqualTypeOf<Record<string, unknown> | undefined>()
        expectTypeOf(input.open).toEqualTypeOf<unknown>()
        expectTypeOf(input.yes).toEqualTypeOf<unknown>()
        // The input of a handler is not readonly.
        input.user.tags = ['a']
        input.rows.push({ key: 'b' })
        input.user.id = 2
      },
    })
  })

  it('follows references to definitions and to the root', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          point: { $ref: '#/$defs/point' },
          old: { $ref: '#/definitions/text' },
          list: { type: 'array', items: { $ref: '#/$defs/point' } },
        },
        required: ['point', 'old', 'list'],
        $defs: {
          point: { type: 'object', properties: { x: { $ref: '#/$defs/number' } }, required: ['x'] },
          number: { type: 'number' },
        },
        definitions: { text: { type: 'string' } },
      },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{
          point: { x: number }
          old: string
          list: { x: number }[]
        }>()
      },
    })
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          value: { type: 'number' },
          children: { type: 'array', items: { $ref: '#' } },
        },
        required: ['value', 'children'],
      },
      output: {
        $ref: '#/$defs/node',
        $defs: {
          node: {
            type: 'object',
            properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
            required: ['next'],
          },
        },
      },
      run(input) {
        expectTypeOf(input.children[0]?.children[0]?.value).toEqualTypeOf<number | undefined>()
        // @ts-expect-error no such member, however deep
        void input.children[0]?.children[0]?.values
        return { next: { next: { next: null } } }
      },
    })
  })

  it('infers anyOf and oneOf', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          any: { anyOf: [{ type: 'string' }, { type: 'null' }] },
          one: {
            oneOf: [
              {
                type: 'object',
                properties: { kind: { const: 'a' }, n: { type: 'number' } },
                required: ['kind', 'n'],
              },
              { type: 'object', properties: { kind: { const: 'b' } }, required: ['kind'] },
            ],
          },
          either: {
            type: 'object',
            properties: { x: { type: 'string' } },
            anyOf: [{ required: ['x'] }, { minProperties: 2 }],
          },
        },
        required: ['any', 'one', 'either'],
      },
      run(input) {
        expectTypeOf(input.any).toEqualTypeOf<string | null>()
        expectTypeOf(input.one).toEqualTypeOf<{ kind: 'a'; n: number } | { kind: 'b' }>()
        if (input.one.kind === 'a') expectTypeOf(input.one.n).toEqualTypeOf<number>()
        expectTypeOf(input.either).toEqualTypeOf<{ x?: string }>()
      },
    })
  })

  it('infers additionalProperties', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          counts: { type: 'object', additionalProperties: { type: 'integer' } },
          open: { type: 'object', additionalProperties: true },
          mixed: {
            type: 'object',
            properties: { id: { type: 'string' } },
            required: ['id'],
            additionalProperties: { type: 'number' },
          },
        },
        required: ['counts', 'open', 'mixed'],
      },
      run({ counts, open, mixed }) {
        expectTypeOf(counts).toEqualTypeOf<Record<string, number>>()
        expectTypeOf(open).toEqualTypeOf<Record<string, unknown>>()
        expectTypeOf(mixed.id).toEqualTypeOf<string>()
        expectTypeOf(mixed['other']).toEqualTypeOf<string | number | undefined>()
      },
    })
    const output = {
      type: 'object',
      properties: { id: { type: 'string' } },
      required: ['id'],
      additionalProperties: { type: 'number' },
    } as const
    tool({ name, output, run: () => ({ id: 'a', other: 1 }) })
    // @ts-expect-error a wrong member
    tool({ name, output, run: () => ({ id: 'a', other: true }) })
    tool({
      name,
      output: { type: 'object', additionalProperties: { type: 'number' } },
      // @ts-expect-error a wrong value
      run: () => ({ a: 'x' }),
    })
  })

  it('is unknown for other keywords', () => {
    tool({
      name,
      input: {
        type: 'object',
        properties: {
          far: { $ref: '#/properties/odd' },
          lost: { $ref: '#/$defs/none' },
          all: { allOf: [{ type: 'string' }] },
          odd: { type: 'text' },
        },
        required: ['far', 'lost', 'all', 'odd'],
      },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{
          far: unknown
          lost: unknown
          all: unknown
          odd: unknown
        }>()
      },
    })
  })
})

describe('a JSON Schema in a variable', () => {
  const SCHEMA = {
    type: 'object',
    properties: {
      mode: { enum: ['a', 'b'] },
      list: {
        type: 'array',
        items: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      },
    },
    required: ['mode'],
  } as const

  it('gives its types where it is const', () => {
    tool({
      name,
      input: SCHEMA,
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ mode: 'a' | 'b'; list?: { n: number }[] }>()
      },
    })
    const satisfying = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
    } as const satisfies JsonSchema
    tool({
      name,
      input: satisfying,
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ a: string }>()
      },
    })
  })

  it('can be put together of parts', () => {
    const id = { type: 'integer', minimum: 1 } as const
    tool({
      name,
      input: {
        type: 'object',
        properties: { id, ids: { type: 'array', items: id } },
        required: ['id'],
      },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ id: number; ids?: number[] }>()
      },
    })
  })

  it('gives unknown where its type is lost', () => {
    const schema: JsonSchema = SCHEMA
    tool({
      name,
      input: schema,
      run(input) {
        expectTypeOf(input).toBeUnknown()
      },
    })
  })
})

describe('schema libraries', () => {
  it('zod: infers the output type', () => {
    tool({
      name,
      input: z.object({
        a: z.string().transform(Number),
        b: z.string().default('x'),
        c: z.enum(['u', 'v']).optional(),
        d: z.array(z.object({ n: z.int() })),
      }),
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{
          a: number
          b: string
          c?: 'u' | 'v' | undefined
          d: { n: number }[]
        }>()
      },
    })
  })

  it('valibot: infers the output type', () => {
    tool({
      name,
      input: toStandardJsonSchema(
        v.object({
          a: v.pipe(v.string(), v.transform(Number)),
          b: v.optional(v.string(), 'x'),
          c: v.optional(v.picklist(['u', 'v'])),
        }),
      ),
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ a: number; b: string; c?: 'u' | 'v' | undefined }>()
      },
    })
  })

  it('arktype: infers the output type', () => {
    tool({
      name,
      input: type({
        a: 'string.numeric.parse',
        b: "string = 'x'",
        'c?': "'u' | 'v'",
        d: type({ n: 'number' }).array(),
      }),
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{
          a: number
          b: string
          c?: 'u' | 'v'
          d: { n: number }[]
        }>()
      },
    })
  })

  it('any Standard Schema', () => {
    const schema = {} as StandardSchema<{ raw: string }, { cooked: number }>
    expectTypeOf<Infer<typeof schema>>().toEqualTypeOf<{ cooked: number }>()
    expectTypeOf<InferInput<typeof schema>>().toEqualTypeOf<{ raw: string }>()
  })
})

describe('output', () => {
  const OUTPUT = {
    type: 'object',
    properties: { sum: { type: 'number' }, note: { type: 'string' } },
    required: ['sum'],
  } as const

  it('of a JSON Schema types what the handler returns', () => {
    tool({ name, output: OUTPUT, run: () => ({ sum: 1 }) })
    tool({ name, output: OUTPUT, run: async () => ({ sum: 1, note: 'n' }) })
    tool({ name, output: OUTPUT, run: () => result({ value: { sum: 1 }, content: 'one' }) })
    tool({ name, output: { type: 'array', items: { type: 'string' } }, run: () => ['a'] })
    tool({ name, output: { enum: ['a', 'b'] }, run: () => 'a' as const })
    // @ts-expect-error a wrong type
    tool({ name, output: OUTPUT, run: () => ({ sum: '1' }) })
    // @ts-expect-error a wrong type, later
    tool({ name, output: OUTPUT, run: async () => ({ sum: '1' }) })
    // @ts-expect-error a missing member
    tool({ name, output: OUTPUT, run: () => ({ note: 'n' }) })
    // @ts-expect-error a string is not the value
    tool({ name, output: OUTPUT, run: () => 'text' })
    // @ts-expect-error nothing is not the value
    tool({ name, output: OUTPUT, run: () => {} })
    // @ts-expect-error a wrong value in full
    tool({ name, output: OUTPUT, run: () => result({ value: { sum: '1' } }) })
    // @ts-expect-error none of the enum
    tool({ name, output: { enum: ['a', 'b'] }, run: () => 'c' })
    // @ts-expect-error a wrong item
    tool({ name, output: { type: 'array', items: { type: 'string' } }, run: () => [1] })
  })

  it('is not needed for a failure', () => {
    tool({ name, output: OUTPUT, run: () => result({ isError: true, content: 'It failed.' }) })
    tool({
      name,
      output: OUTPUT,
      run: async () => result({ isError: true, content: [{ type: 'text', text: 'It failed.' }] }),
    })
    tool({
      name,
      output: z.object({ n: z.number() }),
      run: (_, call) => (call.id === 1 ? result({ isError: true, content: 'no' }) : { n: 1 }),
    })
    // @ts-expect-error no value, and no failure
    tool({ name, output: OUTPUT, run: () => result({ content: 'one' }) })
    // @ts-expect-error no value, and no failure
    tool({ name, output: OUTPUT, run: () => result({ content: 'one', isError: false }) })
    // @ts-expect-error no such content
    tool({ name, output: OUTPUT, run: () => result({ isError: true, content: 5 }) })
  })

  it('is given as JSON carries it: a date is a string', () => {
    tool({
      name,
      output: z.object({ at: z.string() }),
      run: () => ({ at: new Date(0).toISOString() }),
    })
    // @ts-expect-error what would become a string is none
    tool({ name, output: z.object({ at: z.string() }), run: () => ({ at: new Date(0) }) })
  })

  it('of a library types what goes into its schema', () => {
    tool({
      name,
      output: z.object({ a: z.string().default('x'), n: z.number() }),
      run: () => ({ n: 1 }),
    })
    tool({
      name,
      output: z.object({ a: z.string().transform(Number).pipe(z.number()) }),
      run: () => ({ a: '1' }),
    })
    tool({ name, output: toStandardJsonSchema(v.object({ n: v.number() })), run: () => ({ n: 1 }) })
    tool({ name, output: type({ n: 'number' }), run: () => ({ n: 1 }) })
    tool({
      name,
      output: z.object({ a: z.string().transform(Number).pipe(z.number()) }),
      // @ts-expect-error what comes out of it is not what goes in
      run: () => ({ a: 1 }),
    })
    // @ts-expect-error a wrong type
    tool({ name, output: z.object({ n: z.number() }), run: () => ({ n: '1' }) })
    tool({
      name,
      output: toStandardJsonSchema(v.object({ n: v.number() })),
      // @ts-expect-error a wrong type
      run: () => ({ n: '1' }),
    })
    // @ts-expect-error a wrong type
    tool({ name, output: type({ n: 'number' }), run: () => ({ n: '1' }) })
  })

  it('may be left out: then anything is returned', () => {
    tool({ name, run: () => 'text' })
    tool({ name, run: () => {} })
    tool({ name, run: async () => ({ type: 'text', text: 'x' }) })
    tool({ name, run: () => [1, 2] })
    tool({ name, run: () => result({ content: 'x', isError: true }) })
    // @ts-expect-error no such content
    tool({ name, run: () => result({ content: 5 }) })
  })

  it('is typed beside an input', () => {
    tool({
      name,
      input: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
      output: OUTPUT,
      run({ a }) {
        expectTypeOf(a).toEqualTypeOf<number>()
        return { sum: a }
      },
    })
    tool({
      name,
      input: z.object({ a: z.number() }),
      output: OUTPUT,
      // @ts-expect-error a wrong type
      run: ({ a }) => ({ sum: String(a) }),
    })
  })
})

describe('tool', () => {
  it('without input has an input of unknown members', () => {
    tool({
      name,
      run(input) {
        expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>()
      },
    })
  })

  it('returns a tool without type parameters', () => {
    const tools = [
      tool({ name, input: z.object({ a: z.number() }), run: ({ a }) => a }),
      tool({ name, run: () => '' }),
    ]
    expectTypeOf(tools).toEqualTypeOf<Tool[]>()
    expect(tools).toHaveLength(2)
    createServer({ name, version: '1', tools: [{ name, run: () => '' }] })
  })

  it('needs a name and a run, and rejects unknown members', () => {
    // @ts-expect-error no name
    tool({ run: () => '' })
    // @ts-expect-error no run
    tool({ name })
    // @ts-expect-error no such field
    tool({ name, inputSchema: {}, run: () => '' })
    // @ts-expect-error no schema
    tool({ name, input: 'object', run: () => '' })
    tool({
      name,
      input: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      // @ts-expect-error no handler of this input
      run: ({ a }: { a: number }) => a,
    })
  })
})

describe('a function that defines tools', () => {
  it('passes on the types of a definition', () => {
    function traced<const Input extends Schema>(
      definition: ToolDefinition<Input, undefined>,
    ): Tool {
      return tool<Input>({
        ...definition,
        run(input, call) {
          call.log.debug(`${definition.name} was called`)
          return definition.run(input, call)
        },
      })
    }
    traced({
      name,
      input: z.object({ city: z.string() }),
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ city: string }>()
      },
    })
    traced({
      name,
      input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{ n: number }>()
      },
    })
  })

  it('passes on the types of a definition with output', () => {
    function traced<const Input extends Schema, const Output extends Schema>(
      definition: ToolDefinition<Input, Output>,
    ): Tool {
      return tool<Input, Output>({
        ...definition,
        run: (input, call) => definition.run(input, call),
      })
    }
    traced({
      name,
      input: z.object({ city: z.string() }),
      output: z.object({ degrees: z.number() }),
      run: ({ city }) => ({ degrees: city.length }),
    })
    traced({
      name,
      input: z.object({ city: z.string() }),
      output: z.object({ degrees: z.number() }),
      // @ts-expect-error -- the wrong type
      run: ({ city }) => ({ degrees: city }),
    })
  })

  it('takes a schema of zod and a handler of its type', () => {
    function checked<Value>(input: z.ZodType<Value>, run: (value: Value) => string): Tool {
      return tool({ name, input, run: (value) => run(value) })
    }
    checked(z.object({ city: z.string() }), ({ city }) => city)
  })
})

describe('a step', () => {
  interface Booking {
    id: string
    seats?: number[]
    paid: { by: 'card' | 'cash' } | null
  }

  it('has the type of its result: JSON, also of an interface, or nothing', () => {
    tool({
      name,
      async run(_, call) {
        const booking: Booking = { id: 'a', paid: null }
        expectTypeOf(await call.step('a', () => booking)).toEqualTypeOf<Booking>()
        expectTypeOf(await call.step('b', async () => [booking])).toEqualTypeOf<Booking[]>()
        expectTypeOf(await call.step('c', () => {})).toEqualTypeOf<void>()
        expectTypeOf(await call.step('d', async () => {})).toEqualTypeOf<void>()
        expectTypeOf(
          await call.step('e', (signal) => (signal.aborted ? undefined : 5)),
        ).toEqualTypeOf<5 | undefined>()
        expectTypeOf(await call.step('f', () => ({ list: ['a', null] }))).toEqualTypeOf<{
          list: (string | null)[]
        }>()
        // @ts-expect-error a date is no JSON
        await call.step('g', () => new Date())
        // @ts-expect-error nor is a map
        await call.step('h', async () => new Map<string, string>())
        // @ts-expect-error nor is a function
        await call.step('i', () => [() => 5])
        // @ts-expect-error nor is a large integer
        await call.step('j', () => 5n)
      },
    })
  })
})

describe('a client', () => {
  it('types the requests of the protocol', () => {
    const typed = async (client: Client) => {
      const { resources, nextCursor } = await client.request('resources/list')
      expectTypeOf(resources[0]?.mimeType).toEqualTypeOf<string | undefined>()
      expectTypeOf(
        await client.request('resources/list', { cursor: nextCursor }, { timeout: 5 }),
      ).toEqualTypeOf<Requests['resources/list']['result']>()
      expectTypeOf(
        (await client.request('tools/call', { name: 'a', arguments: { b: 1 } })).isError,
      ).toEqualTypeOf<boolean | undefined>()
      expectTypeOf(
        (await client.request('prompts/get', { name: 'a' })).messages[0]?.role,
      ).toEqualTypeOf<'user' | 'assistant' | undefined>()
      expectTypeOf(await client.request('example.com/own', { a: 1 })).toEqualTypeOf<Params>()
      expectTypeOf(await client.request(String('x'))).toEqualTypeOf<Params>()
      // @ts-expect-error no name
      void client.request('tools/call', { arguments: {} })
      // @ts-expect-error no params
      void client.request('tools/call')
      // @ts-expect-error no such level
      void client.request('logging/setLevel', { level: 'loud' })
      // @ts-expect-error no such member
      void (await client.request('tools/list')).resources
    }
    expect(typed).toBeTypeOf('function')
  })

  it('types the notifications of the protocol', () => {
    const typed = (client: Client) => {
      client.on('notifications/message', ({ level, data }) => {
        expectTypeOf(level).toEqualTypeOf<LogLevel>()
        expectTypeOf(data).toBeUnknown()
      })
      client.on('notifications/resources/updated', ({ uri }) =>
        expectTypeOf(uri).toEqualTypeOf<string>(),
      )
      client.on('notifications/example.com/own', (params) =>
        expectTypeOf(params).toEqualTypeOf<Params>(),
      )
      // @ts-expect-error no such member
      client.on('notifications/resources/updated', ({ url }) => url)
      client.notify('notifications/roots/list_changed')
      client.notify('notifications/cancelled', { requestId: 1 })
      client.notify('notifications/example.com/own', { a: 1 })
      // @ts-expect-error of which request?
      client.notify('notifications/cancelled', {})
    }
    expect(typed).toBeTypeOf('function')
  })
})

describe('a raw shape', () => {
  it('is not a schema', () => {
    // @ts-expect-error it must be wrapped
    tool({ name, input: { city: z.string() }, run: () => '' })
    tool({
      name,
      // @ts-expect-error it must be wrapped
      output: { city: z.string(), count: z.number().optional() },
      run: () => ({ city: '' }),
    })
    // @ts-expect-error it must be wrapped
    form({ message: 'Where?', schema: { city: z.string() } })
    form({ message: 'Where?', schema: z.object({ city: z.string() }) })
  })
})

describe('results of the protocol', () => {
  it('are what handlers may return and clients receive', () => {
    const called = async (failed?: boolean): Promise<CallToolResult> => ({
      content: [{ type: 'text', text: '' }],
      isError: failed,
    })
    const contents: ResourceContents[] = [{ uri: 'a://b', text: '' }]
    const read = (): ReadResourceResult => ({ contents, _meta: undefined })
    const messages: PromptMessage[] = [{ role: 'user', content: { type: 'text', text: '' } }]
    const built = (description?: string): GetPromptResult => ({ messages, description })
    tool({ name, run: () => called() })
    resource({ uri: 'a://b', read })
    prompt({ name, build: () => built() })
    expectTypeOf<Awaited<ReturnType<Client['readResource']>>>().toEqualTypeOf<ReadResourceResult>()
    expectTypeOf<Awaited<ReturnType<Client['getPrompt']>>>().toEqualTypeOf<GetPromptResult>()
    expectTypeOf<clients.CallToolResult>().toEqualTypeOf<CallToolResult>()
    expectTypeOf<clients.ReadResourceResult>().toEqualTypeOf<ReadResourceResult>()
    expectTypeOf<clients.GetPromptResult>().toEqualTypeOf<GetPromptResult>()
  })
})

describe('sampling', () => {
  it('accepts strings as content', () => {
    sample({ messages: [{ role: 'user', content: 'hi' }], maxTokens: 5 })
    sample({
      messages: [{ role: 'user', content: ['hi', { type: 'text', text: '' }] }],
      maxTokens: 5,
    })
    // @ts-expect-error no content
    void (() => sample({ messages: [{ role: 'user', content: 5 }], maxTokens: 5 }))
    // @ts-expect-error no maxTokens
    void (() => sample({ messages: [] }))
  })
})

describe('for the compiler', { timeout: 600_000 }, () => {
  it('this file has no errors', () => {
    expect(compile({ files: [fileURLToPath(import.meta.url)] })).toEqual({ output: '', status: 0 })
  })

  it('wrong types are reported', () => {
    const { output, status } = compile({
      program: `import { tool } from ${JSON.stringify(ENTRY)}\ntool({ name: 't', output: { type: 'string' }, run: () => 5 })`,
    })
    expect(output).toContain("Type 'number' is not assignable to type")
    expect(status).not.toBe(0)
  })

  it('a raw shape is reported with the advice to wrap it', () => {
    const { output } = compile({
      program: `
      import { tool } from ${JSON.stringify(ENTRY)}
      import { z } from ${JSON.stringify(join(ROOT, 'node_modules/zod/index.js'))}
      tool({ name: 't', input: { city: z.string() }, run: () => '' })`,
    })
    expect(output).toContain('This is a raw shape, not a schema. Wrap it: z.object({ … })')
  })

  it('a handler can return a literal without `as const`', () => {
    const program = `
      import { tool } from ${JSON.stringify(ENTRY)}
      import { z } from ${JSON.stringify(join(ROOT, 'node_modules/zod/index.js'))}
      const output = { type: 'object', properties: { mode: { enum: ['a', 'b'] } }, required: ['mode'] } as const
      tool({ name: 't', output: { enum: ['a', 'b'] }, run: () => 'a' })
      tool({ name: 't', output, run: () => ({ mode: 'a' }) })
      tool({ name: 't', output, run: async () => ({ mode: 'a' }) })
      tool({ name: 't', output, run: (_, call) => ({ mode: call.id === 1 ? 'a' : 'b' }) })
      tool({ name: 't', output: z.object({ mode: z.enum(['a', 'b']) }), run: () => ({ mode: 'a' }) })`
    expect(compile({ program }).output).toBe('')
  })

  it('a handler can return a complete array', () => {
    const program = `import { result, tool } from ${JSON.stringify(ENTRY)}\ntool({ name: 't', output: { type: 'array', items: { type: 'string' } }, run: () => result({ value: ['a'] }) })`
    expect(compile({ program }).output).toBe('')
  })
})
