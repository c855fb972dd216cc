import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { z as zod3 } from 'zod/v3'
import {
  type ServerOptions,
  type StandardSchema,
  type Tool,
  createServer,
  result,
  tool,
  withJsonSchema,
} from '../../src/index.js'
import { connectInMemory } from '../../src/testing.js'
import { checkServer } from '../../src/server/context.js'

interface Answer {
  result?: {
    content: { type: string; text: string }[]
    isError?: boolean
    structuredContent?: unknown
  }
  error?: { code: number; message: string; data?: unknown }
}
interface Listed {
  name: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
}

/** Calls a tool as a client does; returns the result and the listed tool. */
async function call(
  definition: Tool,
  args: unknown,
  options: Partial<ServerOptions> = {},
): Promise<{ answer: Answer; listed: Listed | undefined }> {
  const channel = connectInMemory(
    createServer({ name: 'x', version: '1', tools: [definition], ...options }),
  )
  const answers = new Map<unknown, Record<string, unknown>>()
  const done = new Promise<void>((resolve) => {
    channel.receive({
      frame(frame) {
        const message = JSON.parse(frame) as { id: unknown }
        answers.set(message.id, message)
        if (answers.size === 3) resolve()
      },
      malformed() {},
      closed: () => resolve(),
    })
  })
  const send = (id: number, method: string, params: object) =>
    channel.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  send(1, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  })
  send(2, 'tools/list', {})
  send(3, 'tools/call', { name: definition.name, arguments: args })
  await done
  await channel.close()
  const list = answers.get(2) as { result: { tools: Listed[] } }
  return { answer: answers.get(3) as Answer, listed: list.result.tools[0] }
}

/** The input of the handler, or the text of the error. */
async function inputOf(
  definition: (run: (input: unknown) => unknown) => Tool,
  args: unknown,
): Promise<unknown> {
  const seen: unknown[] = []
  const { answer } = await call(
    definition((input) => {
      seen.push(input)
      return 'done'
    }),
    args,
  )
  if (seen.length > 0) return seen[0]
  expect(answer.result?.isError).toBe(true)
  return answer.result?.content[0]?.text
}

const make = (definition: Tool) => () =>
  createServer({ name: 'x', version: '1', tools: [definition] })

interface Library {
  input: StandardSchema
  /** { id: string of digits -> number, tag = 'none' } */
  converting: StandardSchema
  output: StandardSchema
  vendor: string
}

const LIBRARIES: Record<string, Library> = {
  zod: {
    vendor: 'zod',
    input: z.object({ name: z.string(), list: z.array(z.object({ n: z.number() })).optional() }),
    converting: z.object({
      id: z.string().transform(Number).pipe(z.number()),
      tag: z.string().default('none'),
    }),
    output: z.object({ sum: z.number(), note: z.string().optional() }),
  },
  valibot: {
    vendor: 'valibot',
    input: toStandardJsonSchema(
      v.object({ name: v.string(), list: v.optional(v.array(v.object({ n: v.number() }))) }),
    ),
    converting: toStandardJsonSchema(
      v.object({
        id: v.pipe(v.string(), v.transform(Number), v.number()),
        tag: v.optional(v.string(), 'none'),
      }),
    ),
    output: toStandardJsonSchema(v.object({ sum: v.number(), note: v.optional(v.string()) })),
  },
  arktype: {
    vendor: 'arktype',
    input: type({ name: 'string', 'list?': type({ n: 'number' }).array() }),
    converting: type({ id: 'string.numeric.parse', tag: "string = 'none'" }),
    output: type({ sum: 'number', 'note?': 'string' }),
  },
}

describe.each(Object.entries(LIBRARIES))('%s', (_, { input, converting, output, vendor }) => {
  it('has the name of its library as vendor', () => {
    expect(input['~standard'].vendor).toBe(vendor)
  })

  it('shows its input as a JSON Schema', async () => {
    const { listed } = await call(tool({ name: 't', input, run: () => 'ok' }), { name: 'a' })
    expect(listed?.inputSchema).toMatchObject({
      type: 'object',
      properties: {
        name: { type: 'string' },
        list: {
          type: 'array',
          items: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
        },
      },
      required: ['name'],
    })
    expect(listed).not.toHaveProperty('outputSchema')
  })

  it('passes valid input to the handler', async () => {
    const define = (run: (given: unknown) => unknown) => tool({ name: 't', input, run })
    expect(await inputOf(define, { name: 'a' })).toEqual({ name: 'a' })
    expect(await inputOf(define, { name: 'a', list: [{ n: 1 }, { n: 2 }] })).toEqual({
      name: 'a',
      list: [{ n: 1 }, { n: 2 }],
    })
  })

  it('rejects invalid input with the path of each issue', async () => {
    const run = () => expect.fail('it must not run')
    const { answer } = await call(tool({ name: 't', input, run }), {
      name: 5,
      list: [{ n: 1 }, { n: 'x' }],
    })
    expect(answer.result?.isError).toBe(true)
    const text = answer.result?.content[0]?.text ?? ''
    expect(text).toMatch(/^Invalid arguments for t: name:? .+; list\[1\]\.n:? .+$/)
    const { answer: protocol } = await call(
      tool({ name: 't', input, run }),
      { name: 5, list: [{ n: 1 }, { n: 'x' }] },
      { invalidArguments: 'protocol' },
    )
    expect(protocol.error?.code).toBe(-32602)
    expect(protocol.error?.data).toEqual({
      issues: [
        { path: 'name', message: expect.any(String) },
        { path: 'list[1].n', message: expect.any(String) },
      ],
    })
  })

  it('names the path of an issue once', async () => {
    const { answer } = await call(tool({ name: 't', input, run: () => '' }), {
      name: 'a',
      list: [{ n: 1 }, { n: 'x' }],
    })
    expect(answer.result?.content[0]?.text.match(/list\[1\]\.n/g)).toHaveLength(1)
  })

  it('names a missing member', async () => {
    const { answer } = await call(
      tool({ name: 't', input, run: () => '' }),
      {},
      { invalidArguments: 'protocol' },
    )
    expect(answer.error?.data).toEqual({ issues: [{ path: 'name', message: 'is required' }] })
  })

  it('shows the input type of a conversion and passes its output', async () => {
    const { listed } = await call(tool({ name: 't', input: converting, run: () => 'ok' }), {
      id: '7',
    })
    expect(listed?.inputSchema).toMatchObject({
      type: 'object',
      properties: { id: { type: 'string' }, tag: { type: 'string' } },
      required: ['id'],
    })
    const define = (run: (given: unknown) => unknown) => tool({ name: 't', input: converting, run })
    expect(await inputOf(define, { id: '7' })).toEqual({ id: 7, tag: 'none' })
    expect(await inputOf(define, { id: '7', tag: 'x' })).toEqual({ id: 7, tag: 'x' })
    expect(await inputOf(define, { id: 'seven' })).toMatch(/^Invalid arguments for t: id:? /)
  })

  it('shows and checks its output', async () => {
    const { listed, answer } = await call(tool({ name: 't', output, run: () => ({ sum: 3 }) }), {})
    expect(listed?.outputSchema).toMatchObject({
      type: 'object',
      properties: { sum: { type: 'number' }, note: { type: 'string' } },
      required: ['sum'],
    })
    expect(answer.result).toEqual({
      content: [{ type: 'text', text: '{"sum":3}' }],
      isError: false,
      structuredContent: { sum: 3 },
    })
  })

  it('accepts a complete output', async () => {
    const { answer } = await call(
      tool({ name: 't', output, run: () => result({ value: { sum: 3 }, content: 'three' }) }),
      {},
    )
    expect(answer.result).toEqual({
      content: [{ type: 'text', text: 'three' }],
      isError: false,
      structuredContent: { sum: 3 },
    })
  })

  it('rejects an invalid output', async () => {
    const wrong = tool({ name: 't', output, run: () => ({ sum: '3' }) })
    const { answer } = await call(wrong, {})
    expect(answer.result?.isError).toBe(true)
    expect(answer.result).not.toHaveProperty('structuredContent')
    expect(answer.result?.content[0]?.text).toMatch(
      /^Tool t failed: its result does not match its output schema: sum:? /,
    )
    const { answer: protocol } = await call(wrong, {}, { unexpectedErrors: 'protocol' })
    expect(protocol.error?.code).toBe(-32603)
  })

  it('converts an output', async () => {
    const { listed, answer } = await call(
      tool({ name: 't', output: converting, run: async () => ({ id: '7' }) }),
      {},
    )
    expect(answer.result?.structuredContent).toEqual({ id: 7, tag: 'none' })
    expect(listed?.outputSchema).toMatchObject({
      type: 'object',
      properties: { id: { type: 'number' }, tag: { type: 'string' } },
    })
    // valibot does not list a member with a default in "required".
    expect(listed?.outputSchema?.['required']).toEqual(
      expect.arrayContaining(vendor === 'valibot' ? ['id'] : ['id', 'tag']),
    )
  })

  it('gives the same JSON Schema to every client', async () => {
    const definition = tool({ name: 't', input, output, run: () => ({ sum: 1 }) })
    const [first, second] = [
      await call(definition, { name: 'a' }),
      await call(definition, { name: 'a' }),
    ]
    expect(first.listed).toEqual(second.listed)
  })
})

describe('zod', () => {
  it('waits for an asynchronous refinement', async () => {
    const input = z.object({ code: z.string().refine(async (code) => code === 'ok', 'is unknown') })
    const define = (run: (given: unknown) => unknown) => tool({ name: 't', input, run })
    expect(await inputOf(define, { code: 'ok' })).toEqual({ code: 'ok' })
    expect(await inputOf(define, { code: 'no' })).toBe('Invalid arguments for t: code is unknown')
  })

  it('waits for an asynchronous transformation', async () => {
    const input = z.object({ code: z.string().transform(async (code) => code.toUpperCase()) })
    expect(await inputOf((run) => tool({ name: 't', input, run }), { code: 'ab' })).toEqual({
      code: 'AB',
    })
  })

  it('waits for an asynchronous refinement of an output', async () => {
    const output = z.object({
      code: z.string().refine(async (code) => code === 'ok', 'is unknown'),
    })
    const good = await call(tool({ name: 't', output, run: () => ({ code: 'ok' }) }), {})
    expect(good.answer.result?.structuredContent).toEqual({ code: 'ok' })
    const bad = await call(tool({ name: 't', output, run: () => ({ code: 'no' }) }), {})
    expect(bad.answer.result).toEqual({
      content: [
        {
          type: 'text',
          text: 'Tool t failed: its result does not match its output schema: code is unknown',
        },
      ],
      isError: true,
    })
  })

  it('reports a refinement of the whole value without a path', async () => {
    const input = z
      .object({ a: z.number(), b: z.number() })
      .refine(({ a, b }) => a < b, 'a must be less than b')
    expect(await inputOf((run) => tool({ name: 't', input, run }), { a: 2, b: 1 })).toBe(
      'Invalid arguments for t: a must be less than b',
    )
  })

  it('drops, keeps or rejects unknown members, as the schema specifies', async () => {
    const args = { a: 1, b: 2 }
    const shape = { a: z.number() }
    expect(await inputOf((run) => tool({ name: 't', input: z.object(shape), run }), args)).toEqual({
      a: 1,
    })
    expect(
      await inputOf((run) => tool({ name: 't', input: z.looseObject(shape), run }), args),
    ).toEqual(args)
    expect(
      await inputOf((run) => tool({ name: 't', input: z.strictObject(shape), run }), args),
    ).toMatch(/^Invalid arguments for t: .*b/)
    const { listed } = await call(
      tool({ name: 't', input: z.strictObject(shape), run: () => '' }),
      {},
    )
    expect(listed?.inputSchema['additionalProperties']).toBe(false)
  })

  it('names unusual paths', async () => {
    const input = z.object({
      map: z.record(z.string(), z.object({ n: z.number() })),
      pair: z.tuple([z.string(), z.number()]),
    })
    const { answer } = await call(
      tool({ name: 't', input, run: () => '' }),
      { map: { 'a.b': { n: 'x' } }, pair: ['a', 'b'] },
      { invalidArguments: 'protocol' },
    )
    expect(answer.error?.data).toMatchObject({
      issues: [{ path: 'map.a.b.n' }, { path: 'pair[1]' }],
    })
  })

  it('keeps hostile names out of the prototype', async () => {
    const input = z.looseObject({ a: z.number() })
    const given = await inputOf(
      (run) => tool({ name: 't', input, run }),
      JSON.parse('{"a":1,"__proto__":{"polluted":true}}'),
    )
    expect((given as { polluted?: boolean }).polluted).toBeUndefined()
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('reports what JSON Schema cannot express', () => {
    const SAYS = /^Tool "t": its (input|output) schema\b.* cannot be represented in JSON Schema$/
    expect(make(tool({ name: 't', input: z.object({ a: z.bigint() }), run: () => '' }))).toThrow(
      SAYS,
    )
    expect(make(tool({ name: 't', input: z.object({ a: z.date() }), run: () => '' }))).toThrow(SAYS)
    expect(
      make(
        tool({
          name: 't',
          output: z.object({ a: z.string().transform(Number) }),
          run: () => ({ a: '1' }),
        }),
      ),
    ).toThrow(SAYS)
  })

  it.each<[string, StandardSchema]>([
    ['a string', z.string()],
    ['an array', z.array(z.string())],
    ['a union', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    [
      'a discriminated union',
      z.discriminatedUnion('k', [z.object({ k: z.literal('a') }), z.object({ k: z.literal('b') })]),
    ],
    ['an optional object', z.object({}).nullable()],
  ])('rejects %s as input', (_, input) => {
    expect(make(tool({ name: 't', input, run: () => '' }))).toThrow(
      'Tool "t": its input schema must have "type": "object" at the top; otherwise hosts drop the whole list',
    )
  })

  const PARTS: Record<string, z.ZodType> = {
    email: z.email(),
    url: z.url(),
    uuid: z.uuid(),
    datetime: z.iso.datetime(),
    date: z.iso.date(),
    time: z.iso.time(),
    duration: z.iso.duration(),
    ipv4: z.ipv4(),
    ipv6: z.ipv6(),
    cidr: z.cidrv4(),
    base64: z.base64(),
    jwt: z.jwt(),
    emoji: z.emoji(),
    ulid: z.ulid(),
    e164: z.e164(),
    regex: z.string().regex(/^[a-z]+$/),
    'a template literal': z.templateLiteral(['v', z.number()]),
    'starts and ends': z.string().startsWith('a+(').endsWith(')').includes('*').lowercase(),
    int: z.int(),
    enum: z.enum(['a', 'b']),
    literals: z.literal([1, 'a', null]),
    tuple: z.tuple([z.string()]).rest(z.number()),
    record: z.record(z.string(), z.number()),
    union: z.union([z.string(), z.number()]),
    nullable: z.string().nullable(),
    lazy: z.lazy(() => z.string()),
    coerced: z.coerce.number(),
    stringbool: z.stringbool(),
    anything: z.any(),
  }
  it.each(Object.entries(PARTS))('can have %s as a part', (_, part) => {
    expect(make(tool({ name: 't', input: z.object({ part }), run: () => '' }))().tools.size).toBe(1)
  })

  it('can have a host name as a part', () => {
    expect(
      make(tool({ name: 't', input: z.object({ part: z.hostname() }), run: () => '' }))().tools
        .size,
    ).toBe(1)
  })

  it('can be recursive', async () => {
    const Node = z.object({
      value: z.number(),
      get children() {
        return z.array(Node).optional()
      },
    })
    const define = (run: (given: unknown) => unknown) => tool({ name: 't', input: Node, run })
    expect(await inputOf(define, { value: 1, children: [{ value: 2 }] })).toEqual({
      value: 1,
      children: [{ value: 2 }],
    })
    expect(await inputOf(define, { value: 1, children: [{}] })).toMatch(
      /^Invalid arguments for t: children\[0\]\.value /,
    )
  })
})

describe('zod without a JSON Schema', () => {
  const refusal = (input: StandardSchema) => {
    try {
      createServer({ name: 'x', version: '1', tools: [tool({ name: 't', input, run: () => '' })] })
    } catch (error) {
      return (error as Error).message
    }
    return 'nothing'
  }
  /** A schema as zod before 4.2 creates it. */
  const older = (
    schema: z.ZodType,
    [major = 4, minor = 0, patch = 0]: number[],
  ): StandardSchema => {
    const { version, vendor, validate } = schema['~standard']
    const made = {
      '~standard': { version, vendor, validate },
      _zod: { ...schema._zod, version: { major, minor, patch } },
    }
    return made
  }

  it('names its version, and the one to install', () => {
    const input = z.object({ city: z.string() })
    for (const version of [
      [4, 0, 17],
      [4, 1, 13],
    ])
      expect(refusal(older(input, version))).toBe(
        `Tool "t": its input schema comes from zod ${version.join('.')}, which does not provide a JSON Schema by itself; ` +
          'install zod 4.2 or later, or wrap it: withJsonSchema(schema, z.toJSONSchema), with withJsonSchema from ccmcp',
      )
    expect(refusal(mini.object({ city: mini.string() }))).toMatch(
      /comes from zod\/mini 4\.\d+\.\d+, which does not provide a JSON Schema by itself; import z from zod \(4\.2 or later\), or wrap it: /,
    )
    expect(refusal(zod3.object({ city: zod3.string() }))).toMatch(
      /comes from zod 3, .*; install zod 4\.2 or later, or use .*zod-to-json-schema/,
    )
    // Before 3.24 there was no Standard Schema.
    const { '~standard': _, ...ancient } = zod3.object({ city: zod3.string() })
    expect(refusal({ ...ancient, safeParse: () => 5 } as unknown as StandardSchema)).toMatch(
      /comes from zod 3, .*; install zod 4\.2 or later/,
    )
  })

  it('serves with the function of its library', async () => {
    const plain = z.object({
      city: z.string().default('Rome'),
      n: z.string().transform(Number).pipe(z.number()),
    })
    const small = mini.object({
      city: mini._default(mini.string(), 'Rome'),
      n: mini.pipe(mini.string(), mini.transform(Number)),
    })
    const schemas: [string, StandardSchema][] = [
      [
        '4.1',
        withJsonSchema(older(plain, [4, 1, 0]), (_, options) => z.toJSONSchema(plain, options)),
      ],
      ['zod/mini', withJsonSchema(small, mini.toJSONSchema)],
      [
        'zod 3',
        withJsonSchema(
          zod3.object({ city: zod3.string().default('Rome'), n: zod3.string().transform(Number) }),
          () => JSON_SCHEMA,
        ),
      ],
    ]
    for (const [name, input] of schemas) {
      const define = (run: (given: unknown) => unknown) => tool({ name: 't', input, run })
      expect([name, await inputOf(define, { n: '7' })]).toEqual([name, { city: 'Rome', n: 7 }])
      expect(await inputOf(define, { n: 7 })).toMatch(/^Invalid arguments for t: n: /)
      const { listed } = await call(tool({ name: 't', input, run: () => '' }), {})
      expect(listed?.inputSchema).toMatchObject({
        type: 'object',
        properties: { city: { type: 'string' }, n: { type: 'string' } },
      })
      expect(listed?.inputSchema['required']).toEqual(['n'])
    }
  })
  const JSON_SCHEMA = {
    type: 'object',
    properties: { city: { type: 'string' }, n: { type: 'string' } },
    required: ['n'],
  }
})

describe('a raw shape', () => {
  const refusal = (definition: object) => make(definition as Tool)
  it.each([
    ['zod', { city: z.string() }, 'city', 'z.object({ … })'],
    ['zod', { type: z.string(), properties: z.number() }, 'type', 'z.object({ … })'],
    ['zod', { city: mini.string() }, 'city', 'z.object({ … })'],
    ['zod', { city: zod3.string() }, 'city', 'z.object({ … })'],
    ['zod', { city: { _def: {}, safeParse: () => 5 } }, 'city', 'z.object({ … })'],
    ['valibot', { city: v.string() }, 'city', 'toStandardJsonSchema(v.object({ … }))'],
    ['arktype', { city: type('string') }, 'city', 'type({ … })'],
  ])('of %s is rejected with the advice to wrap it', (vendor, shape, member, wrapped) => {
    const says = `schema is a raw shape, not a schema: its member "${member}" is a schema of ${vendor}; wrap the shape: ${wrapped}`
    expect(refusal({ name: 't', input: shape, run: () => '' })).toThrow(
      `Tool "t": its input ${says}`,
    )
    expect(refusal({ name: 't', input: { type: 'object' }, output: shape, run: () => '' })).toThrow(
      `Tool "t": its output ${says}`,
    )
  })
})

describe('valibot', () => {
  it('without toStandardJsonSchema is rejected with advice', () => {
    const ADVICE =
      /^Tool "t": its (input|output) schema\b.*valibot.* does not provide a JSON Schema by itself; wrap it: toStandardJsonSchema\(schema\) from @valibot\/to-json-schema$/
    expect(make(tool({ name: 't', input: v.object({ a: v.string() }), run: () => '' }))).toThrow(
      ADVICE,
    )
    expect(
      make(tool({ name: 't', output: v.object({ a: v.string() }), run: () => ({ a: '' }) })),
    ).toThrow(ADVICE)
  })

  it('waits for an asynchronous check', async () => {
    const bare = v.objectAsync({
      code: v.pipeAsync(
        v.string(),
        v.checkAsync(async (code) => code === 'ok', 'is unknown'),
      ),
    })
    const input: StandardSchema<{ code: string }> = {
      '~standard': {
        ...bare['~standard'],
        jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
      },
    }
    const define = (run: (given: unknown) => unknown) => tool({ name: 't', input, run })
    expect(await inputOf(define, { code: 'ok' })).toEqual({ code: 'ok' })
    expect(await inputOf(define, { code: 'no' })).toBe('Invalid arguments for t: code is unknown')
  })

  it('can have formats, ranges and variants as parts', async () => {
    const input = toStandardJsonSchema(
      v.object({
        mail: v.pipe(v.string(), v.email()),
        n: v.pipe(v.number(), v.integer(), v.minValue(1)),
        kind: v.picklist(['a', 'b']),
        either: v.union([v.string(), v.null()]),
      }),
    )
    const define = (run: (given: unknown) => unknown) => tool({ name: 't', input, run })
    expect(await inputOf(define, { mail: 'a@b.org', n: 1, kind: 'a', either: null })).toEqual({
      mail: 'a@b.org',
      n: 1,
      kind: 'a',
      either: null,
    })
    expect(await inputOf(define, { mail: 'a', n: 0, kind: 'c', either: 1 })).toMatch(
      /: mail: .*; n: .*; kind: .*; either: /,
    )
  })
})

describe('arktype', () => {
  it.each([
    'string.email',
    'string.url',
    'string.uuid',
    'string.date.iso',
    'string.ip',
    'string.semver',
    '1 <= number.integer < 5',
    'string > 3',
    "'a' | 'b'",
    'string[]',
    'number | null',
    '/^a+$/',
  ] as const)('can have %s as a part', (part) => {
    const input: StandardSchema = type.raw({ part })
    expect(make(tool({ name: 't', input, run: () => '' }))().tools.size).toBe(1)
  })

  it('is a function, and still a schema', () => {
    const input = type({ a: 'string' })
    expect(typeof input).toBe('function')
    expect(
      checkServer(make(tool({ name: 't', input, run: () => '' }))()).tools.get('t')?.listing
        .inputSchema['type'],
    ).toBe('object')
  })
})

describe('any other library', () => {
  const custom = (vendor: string, more: object = {}): StandardSchema<{ a: number }> => ({
    '~standard': {
      version: 1,
      vendor,
      validate: (value) => {
        const { a } = value as { a?: unknown }
        return typeof a === 'number'
          ? { value: { a } }
          : {
              issues: [
                { message: 'is no number', path: [{ key: 'a' }, 0, Symbol.for('s')] },
                { message: 'all is lost' },
              ],
            }
      },
      ...more,
    },
  })
  const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) }

  it('without a JSON Schema is rejected with advice', () => {
    expect(make(tool({ name: 't', input: custom('homemade'), run: () => '' }))).toThrow(
      /^Tool "t": its input schema\b.*homemade.* does not provide a JSON Schema by itself; use a version that implements Standard JSON Schema, or write a JSON Schema$/,
    )
  })

  it('is called for 2020-12 and for input or output', async () => {
    const asked: unknown[] = []
    const input = custom('homemade', {
      jsonSchema: {
        input: (options: unknown) => (
          asked.push(['input', options]),
          { type: 'object', title: 'in' }
        ),
        output: (options: unknown) => (
          asked.push(['output', options]),
          { type: 'object', title: 'out' }
        ),
      },
    })
    const { listed } = await call(
      tool({ name: 't', input, output: input, run: ({ a }) => ({ a }) }),
      { a: 1 },
    )
    expect(asked).toEqual([
      ['input', { target: 'draft-2020-12' }],
      ['output', { target: 'draft-2020-12' }],
    ])
    expect(listed).toMatchObject({ inputSchema: { title: 'in' }, outputSchema: { title: 'out' } })
  })

  it('may have paths of keys, of segments, or none', async () => {
    const { answer } = await call(
      tool({ name: 't', input: custom('homemade', { jsonSchema }), run: () => '' }),
      { a: 'x' },
    )
    expect(answer.result?.content[0]?.text).toBe(
      'Invalid arguments for t: a[0].Symbol(s) is no number; all is lost',
    )
  })

  it('may validate asynchronously', async () => {
    const input = custom('homemade', { jsonSchema, validate: async () => ({ value: { a: 5 } }) })
    expect(await inputOf((run) => tool({ name: 't', input, run }), {})).toEqual({ a: 5 })
  })

  it('may return any thenable', async () => {
    const later = {
      // oxlint-disable-next-line unicorn/no-thenable
      then: (resolve: (result: unknown) => void) =>
        resolve({ issues: [{ message: 'is refused' }] }),
    }
    const input = custom('homemade', { jsonSchema, validate: () => later })
    expect(await inputOf((run) => tool({ name: 't', input, run }), {})).toBe(
      'Invalid arguments for t: is refused',
    )
  })

  it('that provides an invalid JSON Schema is rejected', () => {
    const bad = custom('homemade', {
      jsonSchema: {
        input: () => ({ type: 'object', properties: { a: { type: 'any' } } }),
        output: () => ({}),
      },
    })
    expect(make(tool({ name: 't', input: bad, run: () => '' }))).toThrow(
      'Tool "t": its input schema is not valid: properties/a/type: must be one of',
    )
  })
})
