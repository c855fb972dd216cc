import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { z as zod3 } from 'zod/v3'
import { type StandardSchema, withJsonSchema } from '../../src/index.js'
import { validator } from '../../src/schema/standard.js'

describe('in a process that an unhandled rejection ends', () => {
  it('functions of zod schemas run once, and their rejections fail the call', async () => {
    const program = fileURLToPath(new URL('programs/async-schemas.mjs', import.meta.url))
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      '--unhandled-rejections=throw',
      program,
    ])
    expect(stderr).toBe('')
    const cases = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as [name: string, runs: number, text: string])
    expect(cases).toHaveLength(2 * 3 * (4 + 4 + 3 + 3))
    for (const [name, runs, text] of cases) {
      expect([name, runs]).toEqual([name, 1])
      const [, expected] = TEXTS.find(([pattern]) => pattern.test(name)) ?? []
      expect([name, text]).toEqual([name, expect.stringMatching(expected ?? /^$/)])
    }
  })
})

const TEXTS: readonly (readonly [name: RegExp, text: RegExp])[] = [
  [/Rome$/, /^(?:Rome|\{"city":"Rome"\})$/],
  [/input down$/, /^Internal error$/],
  [/down$/, /^Tool find failed: no database$/],
  [/Atlantis$/, /\bcity is no city$/],
]

/** What a function returns, counted. */
function counted(): { calls: number; later: (value: unknown) => Promise<boolean> } {
  const counter = {
    calls: 0,
    // Not declared as asynchronous.
    later: (value: unknown) => {
      counter.calls++
      return Promise.resolve(value !== 'no')
    },
  }
  return counter
}

type Place = (later: (value: unknown) => Promise<boolean>) => readonly [StandardSchema, unknown]

/** Schemas with a function in each place, and a value that has something there. */
const PLACES: Record<string, Place> = {
  'a root': (later) => [z.string().refine(later), 'a'],
  'an object': (later) => [
    z.object({ a: z.string(), b: z.string().refine(later) }),
    { a: '', b: '' },
  ],
  'a whole object': (later) => [z.object({ a: z.string() }).refine(later), { a: '' }],
  'an array': (later) => [z.array(z.string().refine(later)), ['a']],
  'a tuple': (later) => [z.tuple([z.string().refine(later)]), ['a']],
  'the rest of a tuple': (later) => [z.tuple([z.string()], z.string().refine(later)), ['a', 'b']],
  'a record': (later) => [z.record(z.string(), z.string().refine(later)), { a: 'b' }],
  'a union': (later) => [z.union([z.number(), z.string().refine(later)]), 'a'],
  'a discriminated union': (later) => [
    z.discriminatedUnion('k', [z.object({ k: z.literal('a'), s: z.string().refine(later) })]),
    { k: 'a', s: '' },
  ],
  'an intersection': (later) => [
    z.intersection(z.object({ a: z.string() }), z.object({ b: z.string().refine(later) })),
    { a: '', b: '' },
  ],
  'an optional member': (later) => [
    z.object({ a: z.string().refine(later).optional() }),
    { a: '' },
  ],
  'a default': (later) => [z.string().refine(later).default('a'), 'b'],
  'a readonly catch': (later) => [z.string().refine(later).catch('a').readonly(), 'b'],
  'a catchall': (later) => [z.object({}).catchall(z.string().refine(later)), { a: '' }],
  'a lazy schema': (later) => [z.lazy(() => z.string().refine(later)), 'a'],
  'a recursive schema': (later) => {
    const node = z.object({
      get next() {
        return node.optional()
      },
      name: z.string().refine(later),
    })
    return [node, { name: 'a' }]
  },
  'a pipe': (later) => [z.string().pipe(z.string().refine(later)), 'a'],
  'a preprocessing function': (later) => [z.preprocess(later, z.boolean()), 'a'],
  'a codec': (later) => [
    z.codec(z.string(), z.boolean(), { decode: later, encode: () => '' }),
    'a',
  ],
  'a custom schema': (later) => [z.custom(later), 'a'],
  'a check': (later) => [
    z.string().check(async (payload) => {
      if (!(await later(payload.value))) payload.issues.push({ code: 'custom', input: '' })
    }),
    'a',
  ],
  'zod/mini': (later) => [mini.object({ a: mini.string().check(mini.refine(later)) }), { a: '' }],
  'zod 3: an object': (later) => [zod3.object({ a: zod3.string().refine(later) }), { a: '' }],
  'zod 3: an array': (later) => [zod3.array(zod3.string().refine(later)), ['a']],
  'zod 3: a tuple': (later) => [zod3.tuple([zod3.string().refine(later)]), ['a']],
  'zod 3: a record': (later) => [zod3.record(zod3.string().refine(later)), { a: '' }],
  'zod 3: a union': (later) => [zod3.union([zod3.number(), zod3.string().refine(later)]), 'a'],
  'zod 3: an intersection': (later) => [
    zod3.intersection(
      zod3.object({ a: zod3.string() }),
      zod3.object({ b: zod3.string().refine(later) }),
    ),
    { a: '', b: '' },
  ],
  'zod 3: an optional member': (later) => [
    zod3.object({ a: zod3.string().refine(later).optional() }),
    { a: '' },
  ],
  'zod 3: a lazy schema': (later) => [zod3.lazy(() => zod3.string().refine(later)), 'a'],
  'zod 3: a pipe': (later) => [zod3.string().pipe(zod3.string().refine(later)), 'a'],
  'zod 3: a brand': (later) => [zod3.string().refine(later).brand('a'), 'a'],
  'zod 3: a preprocessing function': (later) => [zod3.preprocess(later, zod3.boolean()), 'a'],
  'zod 3: a custom schema': (later) => [zod3.custom(later), 'a'],
  valibot: (later) => [
    v.pipeAsync(
      v.string(),
      v.checkAsync((text: string) => later(text)),
    ),
    'a',
  ],
}

it.each(Object.entries(PLACES))('runs an asynchronous function once: %s', async (_, make) => {
  const counter = counted()
  const [schema, value] = make(counter.later)
  for (const each of [schema, withJsonSchema(schema, () => ({}))]) {
    const check = validator(each)
    for (let call = 0; call < 2; call++) {
      counter.calls = 0
      expect(await check(value)).toHaveProperty('value')
      expect(counter.calls).toBe(1)
    }
  }
})

it.each(Object.entries(PLACES))('a rejected promise rejects: %s', async (_, make) => {
  const [schema, value] = make(() => Promise.reject(new Error('no database')))
  await expect(validator(schema)(value)).rejects.toThrow('no database')
})

it.each([
  ['zod', z.object({ a: z.string().trim().min(1).default('b'), b: z.array(z.email()).optional() })],
  ['zod with messages', z.object({ a: z.string({ error: () => 'is missing' }).max(3, 'is long') })],
  [
    'a recursive zod schema',
    z.object({
      a: z.lazy(() => z.string()),
      get b() {
        return z.unknown().optional()
      },
    }),
  ],
  ['zod 3', zod3.object({ a: zod3.string().trim().min(1), b: zod3.lazy(() => zod3.unknown()) })],
])('a schema without functions is validated synchronously: %s', (_, schema) => {
  expect(validator(schema)({ a: 'b' })).toEqual({ value: { a: 'b' } })
})

it('schemas without end are validated asynchronously', async () => {
  const make = (): z.ZodType => z.lazy(() => z.object({ next: make().optional() }))
  expect(await validator(make())({ next: { next: {} } })).toEqual({ value: { next: { next: {} } } })
})
