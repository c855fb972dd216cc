import { describe, expect, it } from 'vitest'
import {
  type JsonSchema,
  type ServerOptions,
  type Tool,
  createServer,
  tool,
} from '../../src/index.js'

/* What `createServer` rejects in the definition of a tool. For errors in schemas see test/schema/lint.test.ts. */

const run = () => 'ok'
const serve = (tools: readonly Tool[], more: Partial<ServerOptions> = {}) =>
  createServer({ name: 'x', version: '1', tools, ...more })
/** A tool as written in JavaScript, without types. */
const untyped = (definition: object) => serve([definition as Tool])

/** An input schema with one property of the given schema. */
const holding = (part: unknown): JsonSchema => ({ type: 'object', properties: { p: part } })
const serveInput = (input: JsonSchema) => serve([tool({ name: 't', input, run })])
const serveOutput = (output: JsonSchema) => serve([tool({ name: 't', output, run: () => ({}) })])

function serves(make: () => unknown): boolean {
  try {
    make()
    return true
  } catch {
    return false
  }
}

/** Expects exactly this message. */
function rejects(make: () => unknown, message: string): void {
  expect(make).toThrow(new TypeError(message))
}

describe('the name of a tool', () => {
  it.each(['a', 'Z9', 'a_b-c.d', '-', '.', 'x'.repeat(128)])('may be %j', (name) => {
    expect([...serve([tool({ name, run })]).tools.keys()]).toEqual([name])
  })

  it.each(['', 'a b', 'a/b', 'ä', 'a\n', '\na', 'a:b', '😀', 'a\u0000', 'x'.repeat(129)])(
    'cannot be %j',
    (name) => {
      rejects(
        () => serve([tool({ name, run })]),
        `Tool name ${JSON.stringify(name)} is not allowed: use 1 to 128 of the characters A-Z a-z 0-9 _ - .`,
      )
    },
  )

  it.each([[undefined], [null], [5], [['a']], [{}]])(
    'cannot be %j, which is not a string',
    (name) => {
      rejects(
        () => untyped({ name, input: { type: 'object' }, run }),
        `Tool name ${JSON.stringify(name)} is not allowed: use 1 to 128 of the characters A-Z a-z 0-9 _ - .`,
      )
    },
  )

  it('cannot be used twice', () => {
    const twice = [tool({ name: 'a', run }), tool({ name: 'b', run }), tool({ name: 'a', run })]
    rejects(() => serve(twice), 'Tool "a" is defined twice; give one of them another name')
    expect(serve([tool({ name: 'a', run }), tool({ name: 'A', run })]).tools.size).toBe(2)
  })

  it.each(['__proto__', 'constructor', 'toString'])(
    'may be %s, which every object inherits',
    (name) => {
      expect(serve([]).tools.has(name)).toBe(false)
      expect([...serve([tool({ name, run })]).tools.keys()]).toEqual([name])
    },
  )
})

describe('the definition of a tool', () => {
  it.each([0, -1, Number.NaN, -Infinity])('is rejected with timeout %d', (timeout) => {
    rejects(
      () => serve([tool({ name: 't', timeout, run })]),
      'Tool "t": "timeout" must be a number of milliseconds greater than 0 and less than 2147483648',
    )
  })

  it.each([0, -1, 1.5, Number.NaN, Infinity])('is rejected with concurrency %d', (concurrency) => {
    rejects(
      () => serve([tool({ name: 't', concurrency, run })]),
      'Tool "t": "concurrency" must be an integer greater than 0',
    )
  })

  it('accepts a timeout and a concurrency', () => {
    expect(serve([tool({ name: 't', timeout: 0.5, concurrency: 1, run })]).tools.size).toBe(1)
  })

  it('is rejected with a timeout beyond the range of timers', () => {
    const taken = [Infinity, 2 ** 31].filter((timeout) =>
      serves(() => serve([tool({ name: 't', timeout, run })])),
    )
    expect(taken).toEqual([])
    expect(serves(() => serve([tool({ name: 't', timeout: 2 ** 31 - 1, run })]))).toBe(true)
  })

  it('is rejected with a timeout that is not a number', () => {
    const taken = ['5', true, [5], {}, null].filter((timeout) =>
      serves(() => untyped({ name: 't', input: { type: 'object' }, timeout, run })),
    )
    expect(taken).toEqual([])
  })

  it('needs `run`, or `handle` of the server', () => {
    rejects(
      () => untyped({ name: 't', input: { type: 'object' } }),
      'Tool "t": it has no "run", and the server has no "handle" for it',
    )
    expect(serve([{ name: 't', input: { type: 'object' } }], { handle: run }).tools.size).toBe(1)
  })
})

describe('the top level of a tool schema', () => {
  const NOT_OBJECT =
    'Tool "t": its input schema must have "type": "object" at the top; otherwise hosts drop the whole list'
  it.each<[string, JsonSchema]>([
    ['no type', {}],
    ['another type', { type: 'string' }],
    ['several types', { type: ['object', 'null'] }],
    ['a list with object', { type: ['object'] }],
    ['only properties', { properties: { a: { type: 'string' } } }],
    ['a oneOf of objects', { oneOf: [{ type: 'object' }, { type: 'object' }] }],
    ['a $ref to an object', { $ref: '#/$defs/o', $defs: { o: { type: 'object' } } }],
  ])('is rejected in an input schema with %s', (_, input) => {
    rejects(() => serveInput(input), NOT_OBJECT)
  })

  it('may have any type in an output schema', () => {
    for (const output of [
      { type: 'string' },
      {},
      { oneOf: [{ type: 'string' }, { type: 'array' }] },
    ])
      expect(serveOutput(output).tools.size).toBe(1)
  })

  it('cannot be an array', () => {
    rejects(
      () => untyped({ name: 't', input: [], run }),
      'Tool "t": its input schema is not valid: a JSON Schema must be an object',
    )
  })

  it('cannot be anything but an object', () => {
    for (const input of [null, 'object', 5, true])
      rejects(
        () => untyped({ name: 't', input, run }),
        'Tool "t": its input schema is not valid: a JSON Schema must be an object',
      )
  })

  it('is named input or output in the error', () => {
    const bad = holding({ type: 'text' })
    const problem =
      'schema is not valid: properties/p/type: must be one of string, number, integer, boolean, null, array, object, or a list of them'
    rejects(() => serveInput(bad), `Tool "t": its input ${problem}`)
    rejects(() => serveOutput(bad), `Tool "t": its output ${problem}`)
  })
})
