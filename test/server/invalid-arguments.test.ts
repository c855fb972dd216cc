import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { z as zod3 } from 'zod/v3'
import { connect, memory } from '../../src/client.js'
import { type Schema, createServer, tool, withJsonSchema } from '../../src/index.js'

/* What a model reads if the arguments of its call are invalid. */

async function textFor(input: Schema, args: Record<string, unknown>): Promise<string> {
  const server = createServer({
    name: 's',
    version: '1',
    tools: [tool({ name: 't', input, run: () => 'done' })],
  })
  await using client = await connect(memory(server))
  const { content } = await client.callTool('t', args)
  const [block] = content
  return block?.type === 'text' ? block.text.replace('Invalid arguments for t: ', '') : ''
}

const city = { type: 'string' } as const
const OURS = {
  type: 'object',
  properties: {
    city,
    unit: { enum: ['C', 'F'] },
    days: { type: 'integer', minimum: 1 },
    at: { type: 'object', properties: { hour: { type: 'number' } }, required: ['hour'] },
  },
  required: ['city', 'unit', 'at'],
} as const
const ZOD_3 = zod3.object({
  city: zod3.string(),
  unit: zod3.enum(['C', 'F']),
  days: zod3.number().int().min(1).optional(),
  at: zod3.object({ hour: zod3.number() }),
})

/** The same schema in each library. */
const SCHEMAS: Record<string, Schema> = {
  'JSON Schema': OURS,
  // `not` is left to the validator that interprets schemas.
  'JSON Schema, interpreted': { ...OURS, not: false },
  'zod 4': z.object({
    city: z.string(),
    unit: z.enum(['C', 'F']),
    days: z.number().int().min(1).optional(),
    at: z.object({ hour: z.number() }),
  }),
  'zod 3': withJsonSchema(ZOD_3, () => OURS),
  valibot: toStandardJsonSchema(
    v.object({
      city: v.string(),
      unit: v.picklist(['C', 'F']),
      days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
      at: v.object({ hour: v.number() }),
    }),
  ),
  arktype: type({
    city: 'string',
    unit: "'C'|'F'",
    'days?': 'number.integer>=1',
    at: { hour: 'number' },
  }),
}

describe.each(Object.entries(SCHEMAS))('%s', (name, schema) => {
  const parts = async (args: Record<string, unknown>) =>
    (await textFor(schema, args)).split('; ').toSorted()

  it('a missing member is required', async () => {
    expect(await parts({})).toEqual(['at is required', 'city is required', 'unit is required'])
    expect(await parts({ city: 'Rome', unit: 'C', at: {} })).toEqual(['at.hour is required'])
  })

  it('a path is followed by a verb or a colon', async () => {
    const texts = await parts({ city: 5, unit: 'C', days: 0, at: { hour: '1' } })
    expect(texts).toHaveLength(3)
    const ours = /^(?:at\.hour|city|days) must be /
    const theirs = /^(?:at\.hour|city|days): [A-Z]/
    const isSentence = name.startsWith('JSON Schema') || name === 'arktype'
    for (const text of texts) expect(text).toMatch(isSentence ? ours : theirs)
  })

  it('an unknown argument is named, with the one that was probably meant', async () => {
    const at = { hour: 1 }
    const text = await textFor(schema, { citty: 'Rome', unit: 'C', at })
    expect(text).toBe('city is required; unknown argument "citty"; did you mean city?')
    expect(await textFor(schema, { zone: 1, unit: 'C', at })).toBe(
      'city is required; unknown argument "zone"',
    )
    // One that is given was not meant.
    expect(await textFor(schema, { units: 1, unit: 'C', at })).toBe(
      'city is required; unknown argument "units"',
    )
  })

  it('an unknown argument is no error by itself', async () => {
    expect(await textFor(schema, { city: 'Rome', unit: 'C', at: { hour: 1 }, zone: 1 })).toBe(
      'done',
    )
  })
})

describe('texts of libraries', () => {
  it.each<[string, Schema, Record<string, unknown>, string]>([
    ['a message of a type', z.object({ a: z.string('Give a city') }), {}, 'a: Give a city'],
    [
      'a message of a refinement',
      z.object({ a: z.string().optional() }).refine(({ a }) => a !== undefined, { path: ['a'] }),
      {},
      'a: Invalid input',
    ],
    [
      'a message that begins with a verb',
      z.object({ a: z.string().refine((a) => a === 'b', 'must be b') }),
      { a: 'c' },
      'a must be b',
    ],
    [
      'a member of a record',
      z.object({ a: z.record(z.string(), z.number()) }),
      { a: { b: '' } },
      'a.b: Invalid input: expected number, received string',
    ],
    ['a union', z.object({ a: z.union([z.string(), z.number()]) }), {}, 'a is required'],
    ['a literal', z.object({ a: z.literal('b') }), {}, 'a is required'],
    ['an inherited member', z.object({ toString: z.string() }), {}, 'toString is required'],
    [
      'an item',
      z.object({ a: z.array(z.string()) }),
      { a: [null] },
      'a[0]: Invalid input: expected string, received null',
    ],
    [
      'a strict object',
      z.strictObject({ city: z.string() }),
      { citty: '' },
      'city is required; Unrecognized key: "citty"',
    ],
    [
      'a loose object',
      z.looseObject({ city: z.string() }),
      { citty: '' },
      'city is required; unknown argument "citty"; did you mean city?',
    ],
    [
      'a strict object of arktype',
      type({ '+': 'reject', a: 'string' }),
      { b: 1 },
      'a is required; b must be removed',
    ],
  ])('%s', async (_, schema, args, text) => {
    expect(await textFor(schema, args)).toBe(text)
  })
})

describe('unknown arguments', () => {
  const object = { type: 'object', properties: { city }, required: ['city'] } as const
  const NAMED = 'city is required; unknown argument "zone"'
  const MEANT = 'city is required; unknown argument "citty"; did you mean city?'
  it.each<[string, Schema, far: string]>([
    ['with additionalProperties: true', { ...object, additionalProperties: true }, NAMED],
    // These may be what the schema expects under any name.
    ['with a schema for others', { ...object, additionalProperties: city }, 'city is required'],
    ['with patternProperties', { ...object, patternProperties: { z: city } }, 'city is required'],
    [
      'with alternatives',
      { ...object, anyOf: [{ properties: { zone: city } }] },
      'city is required',
    ],
  ])('%s', async (_, schema, far) => {
    expect(await textFor(schema, { zone: '' })).toBe(far)
    expect(await textFor(schema, { citty: '' })).toBe(MEANT)
  })

  it('are not named twice', async () => {
    const text = await textFor({ ...object, additionalProperties: false }, { citty: '' })
    expect(text).toBe('city is required; citty is an unknown property; expected one of city')
  })

  it('are truncated', async () => {
    const long = 'x'.repeat(100_000)
    expect(await textFor(object, { [long]: 1 })).toBe(
      `city is required; unknown argument "${'x'.repeat(100)}…"`,
    )
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`${long}${n}`, 1]))
    const text = await textFor(object, many)
    expect(text.length).toBeLessThan(4000)
    expect(text).toMatch(/^city is required; unknown argument .*; and more$/)
  })

  it('are issues in a JSON-RPC error', async () => {
    const server = createServer({
      name: 's',
      version: '1',
      invalidArguments: 'protocol',
      tools: [tool({ name: 't', input: object, run: () => 'done' })],
    })
    await using client = await connect(memory(server))
    await expect(client.callTool('t', { citty: '' })).rejects.toMatchObject({
      code: -32602,
      message: `Invalid arguments for t: ${MEANT}`,
      data: {
        issues: [
          { path: 'city', message: 'is required' },
          { path: '', message: 'unknown argument "citty"; did you mean city?' },
        ],
      },
    })
  })
})
