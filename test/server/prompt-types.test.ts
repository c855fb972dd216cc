import { expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { createServer, prompt } from '../../src/index.js'

/* The types of a prompt's handler are inferred from its arguments. */

it('types required and optional arguments', () => {
  const made = prompt({
    name: 'p',
    arguments: { a: {}, b: { required: false }, c: { required: true, values: ['x'] } },
    build(given) {
      expectTypeOf(given.a).toEqualTypeOf<string>()
      expectTypeOf(given.b).toEqualTypeOf<string | undefined>()
      expectTypeOf(given.c).toEqualTypeOf<string>()
      // @ts-expect-error it was not declared
      return String(given.d)
    },
  })
  expect(made.name).toBe('p')
})

it('types complete functions', () => {
  const made = prompt({
    name: 'p',
    arguments: {
      a: { complete: (typed, others) => [typed.toUpperCase(), others['b']?.trim() ?? ''] },
      b: { required: false, complete: async (typed) => [typed.trim()] },
    },
    build(given) {
      expectTypeOf(given.a).toEqualTypeOf<string>()
      expectTypeOf(given.b).toEqualTypeOf<string | undefined>()
      return given.a
    },
  })
  expect(made.arguments?.['a']?.complete?.('x', {})).toEqual(['X', ''])
})

it('rejects unknown arguments', () => {
  // @ts-expect-error a slip of the pen
  expect(prompt({ name: 'p', arguments: { a: { requird: false } }, build: () => '' }).name).toBe(
    'p',
  )
  // @ts-expect-error it has no arguments
  expect(prompt({ name: 'p', build: ({ a }) => String(a) }).name).toBe('p')
})

it('rejects schemas and arrays', () => {
  const make = (made: ReturnType<typeof prompt>) => () =>
    createServer({ name: 's', version: '1', prompts: [made] })
  // @ts-expect-error a schema is no description of an argument
  expect(make(prompt({ name: 'p', arguments: { a: z.string() }, build: () => '' }))).toThrow(
    'the argument "a" is a schema',
  )
  expect(
    // @ts-expect-error an argument has no type: it is a string
    make(prompt({ name: 'p', arguments: { a: { type: 'string' } }, build: () => '' })),
  ).toThrow('unknown member "type"; expected one of')
  expect(
    // @ts-expect-error arguments are named, not listed
    make(prompt({ name: 'p', arguments: [{ name: 'a', required: true }], build: () => '' })),
  ).toThrow('not an array')
  expect(
    // @ts-expect-error nor are they a schema
    make(prompt({ name: 'p', arguments: z.object({ a: z.string() }), build: () => '' })),
  ).toThrow('not a schema')
})
