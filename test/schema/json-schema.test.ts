import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { fc } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { type Issue, Issues, type JsonSchema } from '../../src/schema/issue.js'
import { check } from '../../src/schema/json-schema.js'
import { lint } from '../../src/schema/lint.js'
import { compileSimple } from '../../src/schema/simple.js'
import { checker } from '../../src/schema/standard.js'
import { valueFor } from './values.js'

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#'
const json = (text: string): unknown => JSON.parse(text)

function issuesOf(schema: JsonSchema, value: unknown): readonly Issue[] {
  const outcome = check(schema, value)
  if (outcome instanceof Promise) throw new Error('the validator is not loaded at once')
  if (outcome.issues !== undefined) return outcome.issues
  expect(outcome.value).toBe(value)
  return []
}

function pathsOf(schema: JsonSchema, value: unknown): string[] {
  return issuesOf(schema, value).map(({ path }) => path)
}

interface Row {
  schema: JsonSchema
  valid: unknown[]
  invalid: unknown[]
}

const KIND = (name: string, more: object) => ({
  type: 'object',
  properties: { kind: { const: name }, ...more },
  required: ['kind', ...Object.keys(more)],
})
const TREE = {
  type: 'object',
  properties: { value: { type: 'number' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['value'],
}

const ROWS: Record<string, Row> = {
  oneOf: {
    schema: { oneOf: [{ type: 'string' }, { type: 'number' }, { minimum: 3 }] },
    valid: [1, 2.5, null, true],
    invalid: ['a', 5, 3],
  },
  'oneOf by a discriminator': {
    schema: {
      type: 'object',
      oneOf: [
        KIND('circle', { radius: { type: 'number' } }),
        KIND('box', { width: { type: 'number' }, height: { type: 'number' } }),
      ],
    },
    valid: [
      { kind: 'circle', radius: 1 },
      { kind: 'box', width: 1, height: 2 },
    ],
    invalid: [
      {},
      { kind: 'circle' },
      { kind: 'box', radius: 1 },
      { kind: 'line' },
      { kind: 'circle', radius: '1' },
    ],
  },
  anyOf: {
    schema: {
      anyOf: [
        { type: 'string', maxLength: 2 },
        { type: 'number', minimum: 5 },
      ],
    },
    valid: ['', 'ab', 5],
    invalid: ['abc', 4, null],
  },
  allOf: {
    schema: {
      allOf: [{ type: 'object', required: ['a'] }, { properties: { a: { type: 'string' } } }],
    },
    valid: [{ a: '' }, { a: 'x', b: 1 }],
    invalid: [{}, { a: 1 }, 'x'],
  },
  not: { schema: { not: { type: 'string' } }, valid: [1, null, {}], invalid: ['', 'a'] },
  'not of not': { schema: { not: { not: { type: 'string' } } }, valid: ['a'], invalid: [1] },
  'if, then, else': {
    schema: {
      type: 'object',
      if: { properties: { country: { const: 'US' } }, required: ['country'] },
      then: { required: ['zip'] },
      else: { required: ['postcode'] },
    },
    valid: [{ country: 'US', zip: 1 }, { country: 'DE', postcode: 1 }, { postcode: 1 }],
    invalid: [{ country: 'US' }, { country: 'US', postcode: 1 }, { country: 'DE', zip: 1 }, {}],
  },
  'if without then': {
    schema: { if: { type: 'string' }, else: { type: 'number' } },
    valid: ['a', 1],
    invalid: [null, {}],
  },
  'then without if': {
    schema: { then: { type: 'number' }, else: { type: 'string' } },
    valid: [null, 1, 'a'],
    invalid: [],
  },
  '$ref to $defs': {
    schema: {
      type: 'object',
      properties: { from: { $ref: '#/$defs/point' }, to: { $ref: '#/$defs/point' } },
      $defs: {
        point: { type: 'array', items: { $ref: '#/$defs/number' }, minItems: 2, maxItems: 2 },
        number: { type: 'number' },
      },
    },
    valid: [{}, { from: [0, 0], to: [1, 2] }],
    invalid: [{ from: [0] }, { to: ['0', 1] }, { from: null }],
  },
  '$ref beside other keywords': {
    schema: { $ref: '#/$defs/text', maxLength: 2, $defs: { text: { type: 'string' } } },
    valid: ['ab'],
    invalid: ['abc', 1],
  },
  '$ref with escapes': {
    schema: { $ref: '#/$defs/a~1b~0c%20d', $defs: { 'a/b~c d': { type: 'string' } } },
    valid: ['a'],
    invalid: [1],
  },
  '$ref to the root': {
    schema: TREE,
    valid: [{ value: 1 }, { value: 1, children: [{ value: 2, children: [] }] }],
    invalid: [
      {},
      { value: 1, children: [{}] },
      { value: 1, children: [{ value: 2, children: [{ value: '3' }] }] },
    ],
  },
  '$ref to an anchor': {
    schema: {
      type: 'array',
      items: { $ref: '#item' },
      $defs: { it: { $anchor: 'item', type: 'integer' } },
    },
    valid: [[], [1]],
    invalid: [[1.5], ['a']],
  },
  '$ref to an $id': {
    schema: {
      $id: 'https://example.com/root.json',
      type: 'array',
      items: { $ref: 'item.json' },
      $defs: { it: { $id: 'item.json', type: 'integer' } },
    },
    valid: [[1]],
    invalid: [['a']],
  },
  pattern: {
    schema: { type: 'string', pattern: '^[a-z]{2,3}(-[A-Z]{2})?$' },
    valid: ['de', 'deu', 'de-DE'],
    invalid: ['', 'd', 'de-de', 'xdeu-DE', 'de-DE\n', 5],
  },
  'pattern without anchors': {
    schema: { pattern: 'b+c' },
    valid: ['abcd', 'bbc', 5, null],
    invalid: ['', 'bb', 'c'],
  },
  patternProperties: {
    schema: {
      type: 'object',
      patternProperties: { '^n_': { type: 'number' }, _s$: { type: 'string' } },
      additionalProperties: false,
    },
    valid: [{}, { n_a: 1 }, { a_s: 'x' }, { n_a: 1, b_s: '' }],
    invalid: [{ n_a: 'x' }, { a_s: 1 }, { other: 1 }, { n_s: 1 }, { n_s: 'x' }],
  },
  'patternProperties beside properties': {
    schema: {
      properties: { n_a: { minimum: 5 } },
      patternProperties: { '^n_': { type: 'number' } },
    },
    valid: [{ n_a: 5 }, { x: 'y' }],
    invalid: [{ n_a: 4 }, { n_a: 'x' }, { n_b: 'x' }],
  },
  propertyNames: {
    schema: { type: 'object', propertyNames: { pattern: '^[a-z]+$', maxLength: 3 } },
    valid: [{}, { abc: 1 }],
    invalid: [{ A: 1 }, { abcd: 1 }, { '': 1 }],
  },
  uniqueItems: {
    schema: { uniqueItems: true },
    valid: [
      [],
      [1, 2],
      [1, '1', true, null, [1], {}],
      [0, false, ''],
      [{ a: 1 }, { a: 2 }],
      [
        [1, 2],
        [2, 1],
      ],
      'aa',
    ],
    invalid: [
      [1, 1],
      [1, 1.0],
      ['a', 'b', 'a'],
      [null, null],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [[[1]], [[1]]],
      [0, -0],
    ],
  },
  'uniqueItems false': {
    schema: { uniqueItems: false, contains: true },
    valid: [[1, 1]],
    invalid: [[]],
  },
  'enum of objects': {
    schema: { enum: [{ a: 1 }, [1, 2], 'x'] },
    valid: [{ a: 1 }, [1, 2], 'x'],
    invalid: [{}, { a: 1, b: 1 }, [2, 1], [1, 2, 3], null],
  },
  'const object': {
    schema: { const: { a: [1, { b: null }] } },
    valid: [{ a: [1, { b: null }] }],
    invalid: [{ a: [1, {}] }, { a: [{ b: null }, 1] }, {}],
  },
  multipleOf: {
    schema: { multipleOf: 0.01 },
    valid: [0, 0.07, 19.99, 1, -0.01, 'a'],
    invalid: [0.005, 1.005, 0.001],
  },
  contains: {
    schema: { contains: { type: 'string' }, minContains: 2, maxContains: 3 },
    valid: [['a', 'b'], ['a', 1, 'b', 'c'], {}],
    invalid: [[], ['a'], ['a', 'b', 'c', 'd']],
  },
  prefixItems: {
    schema: { prefixItems: [{ type: 'string' }, { type: 'number' }], items: { type: 'boolean' } },
    valid: [[], ['a'], ['a', 1], ['a', 1, true, false]],
    invalid: [[1], ['a', 'b'], ['a', 1, 2]],
  },
  'prefixItems, closed': {
    schema: { prefixItems: [{ type: 'string' }], items: false },
    valid: [[], ['a']],
    invalid: [[1], ['a', 1]],
  },
  dependentRequired: {
    schema: { dependentRequired: { card: ['address', 'name'] } },
    valid: [{}, { address: 1 }, { card: 1, address: 1, name: 1 }],
    invalid: [{ card: 1 }, { card: 1, name: 1 }],
  },
  dependentSchemas: {
    schema: {
      dependentSchemas: { card: { properties: { name: { type: 'string' } }, required: ['name'] } },
    },
    valid: [{}, { name: 1 }, { card: 1, name: 'x' }],
    invalid: [{ card: 1 }, { card: 1, name: 1 }],
  },
  unevaluatedProperties: {
    schema: {
      type: 'object',
      allOf: [{ properties: { a: { type: 'string' } } }],
      properties: { b: true },
      unevaluatedProperties: false,
    },
    valid: [{}, { a: 'x' }, { a: 'x', b: 1 }],
    invalid: [{ c: 1 }, { a: 'x', c: 1 }, { a: 1 }],
  },
  'unevaluatedProperties and anyOf': {
    schema: {
      type: 'object',
      anyOf: [
        { properties: { a: true }, required: ['a'] },
        { properties: { b: true }, required: ['b'] },
      ],
      unevaluatedProperties: false,
    },
    valid: [{ a: 1 }, { b: 1 }, { a: 1, b: 1 }],
    invalid: [{}, { a: 1, c: 1 }, { c: 1 }],
  },
  'unevaluatedProperties through a $ref': {
    schema: {
      $ref: '#/$defs/base',
      properties: { b: true },
      unevaluatedProperties: false,
      $defs: { base: { type: 'object', properties: { a: true } } },
    },
    valid: [{}, { a: 1, b: 1 }],
    invalid: [{ c: 1 }, 'x'],
  },
  'unevaluatedProperties and if': {
    schema: {
      if: { properties: { a: { const: 1 } }, required: ['a'] },
      then: { properties: { b: true } },
      unevaluatedProperties: false,
    },
    valid: [{}, { a: 1 }, { a: 1, b: 2 }],
    invalid: [{ a: 2 }, { b: 2 }, { a: 1, c: 1 }],
  },
  unevaluatedItems: {
    schema: { prefixItems: [{ type: 'string' }], unevaluatedItems: false },
    valid: [[], ['a']],
    invalid: [['a', 1], [1]],
  },
  'boolean subschemas': {
    schema: { type: 'object', properties: { yes: true, no: false } },
    valid: [{}, { yes: null }],
    invalid: [{ no: 1 }, { yes: 1, no: null }],
  },
  'draft-07 tuple items': {
    schema: { $schema: DRAFT_07, items: [{ type: 'string' }, { type: 'number' }] },
    valid: [[], ['a'], ['a', 1], ['a', 1, null]],
    invalid: [[1], ['a', 'b']],
  },
  'draft-07 tuple items, closed': {
    schema: { $schema: DRAFT_07, items: [{ type: 'string' }], additionalItems: false },
    valid: [[], ['a']],
    invalid: [[1], ['a', 1]],
  },
  'draft-07 tuple items with more': {
    schema: { $schema: DRAFT_07, items: [{ type: 'string' }], additionalItems: { type: 'number' } },
    valid: [['a', 1, 2]],
    invalid: [
      ['a', 'b'],
      ['a', 1, 'b'],
    ],
  },
  'draft-07 definitions': {
    schema: {
      $schema: DRAFT_07,
      $ref: '#/definitions/text',
      definitions: { text: { type: 'string' } },
    },
    valid: ['a'],
    invalid: [1],
  },
  'draft-07 siblings of $ref are ignored': {
    schema: {
      $schema: DRAFT_07,
      properties: { a: { $ref: '#/definitions/text', maxLength: 1 } },
      definitions: { text: { type: 'string' } },
    },
    valid: [{ a: 'abc' }],
    invalid: [{ a: 1 }],
  },
  'draft-07 dependencies': {
    schema: { $schema: DRAFT_07, dependencies: { a: ['b'], c: { required: ['d'] } } },
    valid: [{}, { a: 1, b: 1 }, { c: 1, d: 1 }],
    invalid: [{ a: 1 }, { c: 1 }],
  },
  'no $schema means 2020-12': {
    schema: { $defs: { text: { type: 'string' } }, $ref: '#/$defs/text', maxLength: 1 },
    valid: ['a'],
    invalid: ['ab'],
  },
}

describe.each(Object.entries(ROWS))('%s', (_, { schema, valid, invalid }) => {
  it('is a schema that passes the lint and needs the full validator', () => {
    expect(lint(schema)).toEqual([])
    expect(compileSimple(schema)).toBeUndefined()
  })
  it.each(valid.map((value) => [JSON.stringify(value), value]))('accepts %s', (_text, value) => {
    expect(issuesOf(schema, value)).toEqual([])
  })
  if (invalid.length === 0) return
  it.each(invalid.map((value) => [JSON.stringify(value), value]))('rejects %s', (_text, value) => {
    const issues = issuesOf(schema, value)
    expect(issues).not.toEqual([])
    for (const { message } of issues) expect(message).not.toBe('')
  })
})

describe('the path of an issue', () => {
  it.each<[string, JsonSchema, unknown, string]>([
    ['the value itself', { not: { type: 'string' } }, 'a', ''],
    ['a member', { properties: { a: { pattern: 'x' } } }, { a: 'y' }, 'a'],
    [
      'a member of a member',
      { properties: { a: { properties: { b: { pattern: 'x' } } } } },
      { a: { b: 'y' } },
      'a.b',
    ],
    ['an item', { items: { pattern: 'x' } }, ['x', 'x', 'y'], '[2]'],
    [
      'a member of an item',
      { properties: { items: { items: { properties: { name: { pattern: 'x' } } } } } },
      { items: [{}, {}, { name: 'y' }] },
      'items[2].name',
    ],
    ['an item of a tuple', { prefixItems: [{}, { type: 'number' }] }, ['a', 'b'], '[1]'],
    [
      'an item of a draft-07 tuple',
      { $schema: DRAFT_07, items: [{}, { type: 'number' }] },
      ['a', 'b'],
      '[1]',
    ],
    [
      'behind a $ref',
      {
        properties: { a: { $ref: '#/$defs/n' } },
        $defs: { n: { properties: { b: { type: 'number' } } } },
      },
      { a: { b: 'y' } },
      'a.b',
    ],
    [
      'deep in a recursion',
      TREE,
      { value: 1, children: [{ value: 2, children: [{ value: 'x' }] }] },
      'children[0].children[0].value',
    ],
    ['in an allOf', { allOf: [{ properties: { a: { type: 'number' } } }] }, { a: 'x' }, 'a'],
    ['in a then', { if: true, then: { properties: { a: { type: 'number' } } } }, { a: 'x' }, 'a'],
    ['an item found twice', { properties: { a: { uniqueItems: true } } }, { a: [1, 1] }, 'a'],
    ['a forbidden member', { type: 'object', properties: { a: false } }, { a: 1 }, 'a'],
    [
      'an additional member',
      { type: 'object', patternProperties: { '^x': true }, additionalProperties: false },
      { x1: 1, y: 1 },
      'y',
    ],
    ['a member by pattern', { patternProperties: { '^x': { type: 'number' } } }, { x1: 'a' }, 'x1'],
  ])('%s', (_, schema, value, path) => {
    expect(pathsOf(schema, value)).toContain(path)
  })

  it('a member with a slash or a tilde in its name', () => {
    expect([
      pathsOf({ properties: { 'a/b': { pattern: 'x' } } }, { 'a/b': 'y' }),
      pathsOf({ properties: { 'a~1b': { pattern: 'x' } } }, { 'a~1b': 'y' }),
      pathsOf(
        { properties: { 'a/b': { properties: { 'c/d': { pattern: 'x' } } } } },
        { 'a/b': { 'c/d': 'y' } },
      ),
      pathsOf({ patternProperties: { '^x': { type: 'number' } } }, { 'x/1~y': 'a' }),
    ]).toEqual([['a/b'], ['a~1b'], ['a/b.c/d'], ['x/1~y']])
  })

  it('an unevaluated member or item', () => {
    expect([
      pathsOf(
        { type: 'object', properties: { a: true }, unevaluatedProperties: false },
        { a: 1, b: 1 },
      ),
      pathsOf(
        { properties: { o: { properties: { a: true }, unevaluatedProperties: false } } },
        { o: { b: 1 } },
      ),
      pathsOf({ prefixItems: [true], unevaluatedItems: false }, [1, 2]),
    ]).toEqual([['b'], ['o.b'], ['[1]']])
  })

  it('a member named by digits, as in the simple validator', () => {
    const cases: [JsonSchema, unknown][] = [
      [{ properties: { 0: { type: 'string' } } }, { 0: 1 }],
      [{ properties: { a: { properties: { 12: { type: 'string' } } } } }, { a: { 12: 1 } }],
      [{ required: ['7'] }, {}],
    ]
    for (const [schema, value] of cases) {
      const simple = new Issues()
      compileSimple(schema)?.(value, simple)
      expect(simple.count).toBe(1)
      expect(pathsOf(schema, value)).toEqual(simple.result().map(({ path }) => path))
    }
  })
})

describe('a missing member is named', () => {
  it.each<[string, JsonSchema, unknown, string[]]>([
    ['at the top', { required: ['a', 'b'], not: { type: 'string' } }, {}, ['a', 'b']],
    ['in a member', { properties: { a: { required: ['b'], not: false } } }, { a: {} }, ['a.b']],
    ['in an item', { items: { required: ['id'], not: false } }, [{ id: 1 }, {}], ['[1].id']],
    ['in an allOf', { allOf: [{ required: ['a'] }, { required: ['b'] }] }, {}, ['a', 'b']],
    ['behind a $ref', { $ref: '#/$defs/o', $defs: { o: { required: ['a'] } } }, {}, ['a']],
    ['in a then', { if: true, then: { required: ['a'] } }, {}, ['a']],
    [
      'with a quote, a slash and a tilde',
      { required: [`it's a/b~c`], not: false },
      {},
      [`it's a/b~c`],
    ],
  ])('%s', (_, schema, value, paths) => {
    expect(issuesOf(schema, value)).toEqual(paths.map((path) => ({ path, message: 'is required' })))
  })
})

describe('the message of an issue', () => {
  it('quotes a pattern as it is', () => {
    const [issue] = issuesOf({ type: 'string', pattern: '^\\d+-\\w$' }, 'x')
    expect(issue?.message).toContain('^\\d+-\\w$')
  })

  it('reports several mistakes', () => {
    expect(
      pathsOf(
        { properties: { a: { pattern: 'x' }, b: { pattern: 'x' } }, required: ['c'] },
        { a: 'y', b: 'y' },
      ).sort(),
    ).toEqual(['a', 'b', 'c'])
  })
})

describe('own properties only', () => {
  const HOSTILE = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
  const withMember = (name: string, value: unknown) =>
    json(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`)

  it.each(HOSTILE)('%s', (name) => {
    const schema = {
      type: 'object',
      properties: withMember(name, { type: 'string' }),
      not: { type: 'array' },
    }
    expect(issuesOf(schema, {})).toEqual([])
    expect(issuesOf(schema, withMember(name, 'x'))).toEqual([])
    expect(pathsOf(schema, withMember(name, 1))).toEqual([name])
    expect(issuesOf({ required: [name], not: { type: 'array' } }, {})).toEqual([
      { path: name, message: 'is required' },
    ])
    expect(issuesOf({ required: [name], not: { type: 'array' } }, withMember(name, 1))).toEqual([])
    expect(
      pathsOf(
        { type: 'object', patternProperties: { '^x': true }, additionalProperties: false },
        withMember(name, 1),
      ),
    ).toEqual([name])
  })
})

describe('the value is validated, never changed', () => {
  it('does not apply defaults', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { default: 5, anyOf: [{ type: 'number' }] },
        o: { type: 'object', default: {}, properties: { b: { default: 1 } } },
      },
    }
    const value = { o: {} }
    expect(issuesOf(schema, value)).toEqual([])
    expect(value).toEqual({ o: {} })
    expect(issuesOf({ ...schema, required: ['a'] }, {})).toEqual([
      { path: 'a', message: 'is required' },
    ])
  })

  it('does not coerce', () => {
    const schema = {
      type: 'object',
      properties: {
        n: { type: 'number', not: { const: 0 } },
        s: { type: 'string', pattern: '' },
        b: { type: 'boolean' },
      },
    }
    for (const value of [{ n: '5' }, { s: 5 }, { b: 'true' }, { b: 1 }]) {
      const before = structuredClone(value)
      expect(issuesOf(schema, value)).toHaveLength(1)
      expect(value).toEqual(before)
    }
  })

  it('does not remove members', () => {
    const value = { a: 1, extra: 2 }
    expect(
      pathsOf(
        { type: 'object', properties: { a: { not: false } }, additionalProperties: false },
        value,
      ),
    ).toEqual(['extra'])
    expect(value).toEqual({ a: 1, extra: 2 })
  })

  it('accepts frozen values', () => {
    const value = Object.freeze({ list: Object.freeze([Object.freeze({ a: 'x' })]) })
    expect(
      issuesOf(
        {
          properties: {
            list: { items: { properties: { a: { pattern: 'x' }, b: { default: 1 } } } },
          },
        },
        value,
      ),
    ).toEqual([])
  })

  it('does not change the schema', () => {
    for (const { schema, valid, invalid } of Object.values(ROWS)) {
      const before = JSON.stringify(schema)
      for (const value of [...valid, ...invalid]) issuesOf(schema, value)
      expect(JSON.stringify(schema)).toBe(before)
    }
  })

  it('validates by the given schema, not by an equal one', () => {
    const first = { not: { type: 'string' } }
    const second = { not: { type: 'number' } }
    expect(issuesOf(first, 'a')).toHaveLength(1)
    expect(issuesOf(second, 'a')).toEqual([])
    expect(issuesOf(first, 1)).toEqual([])
    expect(issuesOf(second, 1)).toHaveLength(1)
  })
})

describe('formats are annotations', () => {
  it.each([
    'email',
    'date',
    'date-time',
    'uri',
    'uuid',
    'ipv4',
    'regex',
    'json-pointer',
    'no-such-format',
  ])('%s', (format) => {
    expect(
      issuesOf(
        { type: 'object', properties: { a: { type: 'string', format, not: { const: 'x' } } } },
        { a: '??? no' },
      ),
    ).toEqual([])
    expect(issuesOf({ format, not: { const: 'x' } }, '[')).toEqual([])
  })
})

describe('patterns', () => {
  /** Only exponential time takes longer. */
  const SOON = 60_000
  const timed = (schema: JsonSchema, value: unknown): [boolean, number] => {
    const start = performance.now()
    const valid = issuesOf(schema, value).length === 0
    return [valid, performance.now() - start]
  }

  it.each([
    ['^(a+)+$', 'a'.repeat(40) + '!', false],
    ['^(a+)+$', 'a'.repeat(100_000) + '!', false],
    ['^(a+)+$', 'a'.repeat(100_000), true],
    ['^(a|a)*$', 'a'.repeat(100_000) + '!', false],
    ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'.repeat(5_000), false],
    ['^(?:[^"]*"[^"]*")*$', '"'.repeat(10_001), false],
    ['(x+x+)+y', 'x'.repeat(10_000), false],
    ['^(\\w+\\s?)*$', 'a '.repeat(5_000) + '!', false],
  ])('%s takes linear time', (pattern, text, expected) => {
    expect(lint({ pattern })).toEqual([])
    const [valid, time] = timed(
      { type: 'object', properties: { text: { type: 'string', pattern } } },
      { text },
    )
    expect(valid).toBe(expected)
    expect(time).toBeLessThan(SOON)
  })

  it('takes linear time for names of members too', () => {
    const [valid, time] = timed(
      { patternProperties: { '^(a+)+$': { type: 'string' } } },
      { ['a'.repeat(40) + '!']: 1 },
    )
    expect(valid).toBe(true)
    expect(time).toBeLessThan(SOON)
  })

  const meansWhatJavaScriptSays = (pattern: string, texts: readonly string[]) => {
    const reference = new RegExp(pattern, 'u')
    for (const text of texts)
      expect([text, issuesOf({ pattern }, text).length === 0]).toEqual([text, reference.test(text)])
  }

  it.each<[string, string[]]>([
    ['^$', ['', 'a']],
    ['^a{2,3}$', ['a', 'aa', 'aaa', 'aaaa']],
    ['^a{2}$', ['a', 'aa', 'aaa']],
    ['^a{2,}$', ['a', 'aa', 'aaaaa']],
    ['^a??b$', ['b', 'ab', 'aab']],
    ['a|b|^$', ['a', 'xb', '', 'c']],
    ['^(?:ab|cd)+$', ['abcd', 'abc', '']],
    ['^[a-c_-]+$', ['a-b', '_', 'd', 'a b']],
    ['^[^a-c]$', ['a', 'd', '', 'é']],
    ['^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$', ['a.b+c@d.org', 'a@b', '@b.c', 'ä@b.c']],
    ['^\\d{4}-\\d\\d-\\d\\d$', ['2024-01-31', '2024-1-31', '٢٠٢٤-01-31']],
    ['^\\D\\W\\S$', ['a-b', '1-b', 'aab', 'a- ']],
    ['.', ['', '\n', 'a']],
    ['^.+$', ['a\nb', 'ab']],
    ['^\\t\\n\\r\\v\\f\\0$', ['\t\n\r\v\f\0', 'tnrvf0']],
    ['^\\x41\\u0042$', ['AB', 'x41u0042']],
    ['^[\\]\\[\\\\^-]+$', [']', '[', '\\', '^-', 'a']],
    ['^\\/\\.\\*\\?$', ['/.*?', '/x*?']],
    ['^(?<year>\\d{4})$', ['2024', '24']],
    ['\\bfoo\\b', ['a foo b', 'afoo', 'foo']],
    ['^(?=.*\\d)[a-z\\d]+$', ['a1', 'ab', '1', '']],
    ['^(a|b)\\1$', ['aa', 'bb', 'ab']],
    ['^\\p{L}+$', ['äé', 'a1', '', 'ß']],
    ['^é+$', ['éé', 'e']],
    ['^[à-ü]$', ['é', 'e', 'ü']],
  ])('%s matches as in JavaScript', meansWhatJavaScriptSays)

  const misread = (patterns: Record<string, string[]>) =>
    Object.entries(patterns).flatMap(([pattern, texts]) =>
      texts
        .filter(
          (text) =>
            (issuesOf({ pattern }, text).length === 0) !== new RegExp(pattern, 'u').test(text),
        )
        .map((text) => [pattern, text]),
    )

  it('match code points', () => {
    expect(
      misread({
        '^.$': ['😀', 'a', 'ab'],
        '^[^x]$': ['😀'],
        '^\\D$': ['😀'],
        '^[😀-😂]$': ['😀', '😁', 'a'],
        '^😀{2}$': ['😀😀', '😀'],
        '^\\ud83d\\ude00?$': ['😀', ''],
      }),
    ).toEqual([])
  })

  it('support every escape of ECMAScript', () => {
    expect(
      misread({
        '^\\u{1F600}$': ['😀'],
        '^\\s$': ['\u2028', '\ufeff', '\u3000', '\u2003', ' '],
        '^\\S$': ['\u2003', 'a'],
        '^a\\Bb$': ['ab', 'aBb'],
        '^\\cA$': ['\u0001', 'cA'],
      }),
    ).toEqual([])
  })
})

describe('keywords that draft-07 does not have', () => {
  it.each<[string, JsonSchema]>([
    ['dependentRequired', { dependentRequired: { a: ['b'] } }],
    ['dependentSchemas', { dependentSchemas: { a: { required: ['b'] } } }],
    ['unevaluatedProperties', { unevaluatedProperties: false }],
  ])('%s has no meaning', (_, schema) => {
    expect(issuesOf(schema, { a: 1 })).toHaveLength(1)
    const old = { $schema: DRAFT_07, ...schema }
    expect(lint(old)).toEqual([])
    expect(issuesOf(old, { a: 1 })).toEqual([])
  })

  it('dependencies have', () => {
    const $schema = DRAFT_07
    expect(issuesOf({ $schema, dependencies: { a: ['b'] } }, { a: 1 })).toHaveLength(1)
    expect(issuesOf({ $schema, dependencies: { a: { required: ['b'] } } }, { a: 1 })).toHaveLength(
      1,
    )
  })
})

describe('schemas that other validators get wrong', () => {
  const agrees = (schema: JsonSchema, values: unknown[]) => {
    const reference = new Ajv2020({
      strict: false,
      allErrors: true,
      validateFormats: false,
    }).compile(schema)
    expect(lint(schema)).toEqual([])
    for (const value of values)
      expect([value, issuesOf(schema, value).length === 0]).toEqual([value, reference(value)])
  }

  it.each<[string, JsonSchema, unknown[]]>([
    [
      'a map of maps',
      {
        type: 'object',
        additionalProperties: {
          type: 'object',
          additionalProperties: { type: 'string', pattern: 'x' },
        },
      },
      [{}, { a: { b: 'x' } }, { a: { b: 'y' } }, { a: {} }],
    ],
    [
      'anyOf in patternProperties',
      {
        type: 'object',
        patternProperties: { '^a': { anyOf: [{ type: 'string' }, { type: 'number' }] } },
      },
      [{ a: 'x' }, { a: 1 }, { a: {} }],
    ],
    [
      'oneOf in patternProperties',
      {
        type: 'object',
        patternProperties: { '^a': { oneOf: [{ type: 'string' }, { type: 'number' }] } },
      },
      [{ a: 'x' }, { a: {} }],
    ],
    [
      'uniqueItems in patternProperties',
      { type: 'object', patternProperties: { '^a': { type: 'array', uniqueItems: true } } },
      [{ a: [1, 2] }, { a: [1, 1] }],
    ],
    [
      'patternProperties in if',
      {
        if: { patternProperties: { '^a': { type: 'string' } }, required: ['a'] },
        then: { required: ['b'] },
      },
      [{}, { a: 1 }, { a: 'x' }, { a: 'x', b: 1 }],
    ],
    [
      'patternProperties in not',
      { not: { patternProperties: { '^a': { type: 'string' } } } },
      [{ a: 1 }, { a: 'x' }],
    ],
    [
      'an empty dependentRequired in patternProperties',
      { patternProperties: { '^a': { dependentRequired: { b: [] } } } },
      [{}, { a: { b: 1 } }],
    ],
  ])('%s', (_, schema, values) => {
    agrees(schema, values)
  })

  it.each<[string, JsonSchema, unknown[]]>([
    [
      'dependentSchemas of another type',
      { type: 'object', dependentSchemas: { a: { type: 'number' } } },
      [{}, { a: 1 }],
    ],
    [
      'propertyNames behind a $ref',
      { $ref: '#/$defs/o', $defs: { o: { propertyNames: { type: 'number' } } } },
      [{}, { a: 1 }],
    ],
    [
      'type beside an empty dependentRequired behind a $ref',
      {
        $ref: '#/$defs/o',
        $defs: { o: { type: 'object', dependentRequired: { c: [] }, dependentSchemas: {} } },
      },
      [{}, 'x'],
    ],
    [
      'if behind a $ref in dependentSchemas',
      {
        additionalProperties: true,
        dependentSchemas: { c: { $ref: '#/$defs/o' } },
        $defs: { o: { if: false, else: { type: 'null' } } },
      },
      [{}, { c: 1 }],
    ],
    [
      'unevaluatedProperties beside an empty patternProperties',
      { patternProperties: {}, unevaluatedProperties: false },
      [{}, { a: 1 }],
    ],
  ])('%s', (_, schema, values) => {
    agrees(schema, values)
  })
})

describe('against ajv', () => {
  const MORE: Record<string, JsonSchema> = {
    'a search request': {
      type: 'object',
      properties: {
        query: { type: 'string', pattern: '\\S' },
        limit: { type: 'integer', minimum: 1, maximum: 5 },
        sort: { anyOf: [{ enum: ['date', 'score'] }, { type: 'null' }] },
      },
      required: ['query'],
      additionalProperties: false,
    },
    'a patch': {
      type: 'array',
      items: {
        type: 'object',
        required: ['op', 'path'],
        oneOf: [
          { properties: { op: { enum: ['add', 'replace', 'test'] } }, required: ['value'] },
          { properties: { op: { const: 'remove' } }, not: { required: ['value'] } },
          {
            properties: { op: { enum: ['move', 'copy'] }, from: { type: 'string' } },
            required: ['from'],
          },
        ],
        properties: {
          op: { type: 'string', examples: ['add', 'remove', 'move'] },
          path: { type: 'string', pattern: '^(/.*)?$', examples: ['/a', ''] },
        },
      },
    },
    'a nullable reference': {
      type: 'object',
      properties: { parent: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
      $defs: {
        node: {
          type: 'object',
          properties: { id: { type: 'integer' } },
          required: ['id'],
          additionalProperties: false,
        },
      },
    },
    'an expression tree': {
      $ref: '#/$defs/e',
      $defs: {
        e: {
          oneOf: [
            { type: 'number' },
            {
              type: 'object',
              properties: {
                op: { enum: ['+', '-'] },
                args: { type: 'array', items: { $ref: '#/$defs/e' }, minItems: 1 },
              },
              required: ['op', 'args'],
              additionalProperties: false,
            },
          ],
        },
      },
    },
    'a map of lists': {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'number', multipleOf: 2 } },
    },
    'exactly one of': {
      type: 'object',
      oneOf: [{ required: ['a'] }, { required: ['b'] }, { required: ['c'] }],
      examples: [{ a: 1 }, { b: 1, d: 1 }],
    },
    'at least one of': {
      type: 'object',
      anyOf: [{ required: ['a'] }, { required: ['b'] }],
      properties: { a: { type: 'string' } },
    },
    'none of': {
      type: 'object',
      not: { anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      examples: [{}, { c: 1 }],
    },
    'a conditional chain': {
      type: 'object',
      properties: { a: { enum: [1, 2, 3] } },
      allOf: [
        { if: { properties: { a: { const: 1 } }, required: ['a'] }, then: { required: ['b'] } },
        {
          if: { properties: { a: { const: 2 } }, required: ['a'] },
          then: { properties: { b: { type: 'string' } } },
          else: { properties: { c: { type: 'number' } } },
        },
      ],
    },
    'a set of pairs': {
      type: 'array',
      uniqueItems: true,
      items: {
        type: 'array',
        prefixItems: [{ enum: ['a', 'b'] }, { type: 'integer' }],
        minItems: 2,
        items: false,
      },
    },
    'a set of strings': {
      type: 'array',
      uniqueItems: true,
      items: { type: 'string', maxLength: 2 },
      minItems: 1,
    },
    'an extended object': {
      allOf: [{ $ref: '#/$defs/base' }],
      properties: { b: { type: 'number' } },
      unevaluatedProperties: { type: 'boolean' },
      $defs: { base: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } },
    },
    'limits on everything': {
      minimum: 1,
      maxLength: 2,
      maxItems: 1,
      maxProperties: 1,
      pattern: '^a',
      not: { const: 'a' },
    },
    'names and values': {
      type: 'object',
      propertyNames: { enum: ['a', 'b', 'x1'] },
      patternProperties: { '\\d$': { type: 'string' } },
      additionalProperties: { type: 'number' },
      minProperties: 1,
      examples: [{ a: 1 }, { x1: 's', b: 2 }],
    },
    'unicode lengths': { type: 'string', minLength: 2, maxLength: 2, pattern: '' },
    'enum of anything': { enum: [null, 1, 'a', [1], { a: 1 }, []] },
    'many types': {
      type: ['string', 'integer', 'null', 'array'],
      not: { enum: ['a', 1] },
      items: { type: ['boolean', 'null'] },
    },
    'dependent fields': {
      type: 'object',
      properties: { a: { type: 'number' } },
      dependentRequired: { a: ['b'], b: ['c'] },
      dependentSchemas: { c: { properties: { a: { minimum: 2 } } } },
    },
    'contains an admin': {
      type: 'array',
      contains: { type: 'object', properties: { a: { const: true } }, required: ['a'] },
      items: { type: 'object' },
      maxContains: 2,
    },
    'a draft-07 document': {
      $schema: DRAFT_07,
      type: 'object',
      properties: {
        list: {
          type: 'array',
          items: [{ type: 'string' }, { $ref: '#/definitions/count' }],
          additionalItems: { type: 'boolean' },
        },
        size: { $ref: '#/definitions/count' },
      },
      definitions: { count: { type: 'integer', minimum: 0 } },
      if: { required: ['size'] },
      then: { required: ['list'] },
    },
  }
  const schemas = Object.entries({
    ...Object.fromEntries(Object.entries(ROWS).map(([name, { schema }]) => [name, schema])),
    ...MORE,
  })
  // ajv reports that 19.99 is not a multiple of 0.01 and applies the siblings of a draft-07 $ref; the table above has the correct results.
  const compared = schemas.filter(
    ([name]) => name !== 'multipleOf' && name !== 'draft-07 siblings of $ref are ignored',
  )

  it('uses a few dozen schemas', () => {
    expect(compared.length).toBeGreaterThan(50)
  })

  it.each(compared)('%s', (_, schema) => {
    const options = { strict: false, allErrors: true, validateFormats: false }
    const reference = (
      schema['$schema'] === DRAFT_07 ? new Ajv(options) : new Ajv2020(options)
    ).compile(schema)
    const seen = { valid: 0, invalid: 0 }
    fc.assert(
      fc.property(valueFor(schema), (value) => {
        const expected = reference(value)
        seen[expected ? 'valid' : 'invalid']++
        const before = JSON.stringify(value)
        const issues = issuesOf(schema, value)
        expect(JSON.stringify(value)).toBe(before)
        if ((issues.length === 0) !== expected)
          throw new Error(
            `ajv says ${expected ? 'valid' : 'invalid'}, we say ${JSON.stringify(issues)}`,
          )
      }),
      { numRuns: 200 },
    )
    expect(seen.valid).toBeGreaterThan(0)
    if (schema['then'] === undefined || schema['if'] !== undefined)
      expect(seen.invalid).toBeGreaterThan(0)
  })
})

describe('the validator of a definition', () => {
  it('is the simple one if possible, with the same results as the full one', () => {
    const simple = checker({ type: 'object', required: ['a'] }, 'input')
    const full = checker({ type: 'object', required: ['a'], not: { type: 'array' } }, 'input')
    expect(simple.check({})).toEqual(full.check({}))
    expect(simple.check({ a: 1 })).toEqual(full.check({ a: 1 }))
  })
})

describe('alternatives that refer to each other', () => {
  const operation = (name: string) =>
    KIND(name, { left: { $ref: '#/$defs/term' }, right: { $ref: '#/$defs/term' } })
  const term = {
    oneOf: [KIND('number', { value: { type: 'number' } }), operation('sum'), operation('product')],
  }
  const schema = { $ref: '#/$defs/term', $defs: { term } }
  /** With twice the work at each level, this would time out. */
  const LEVELS = 24
  const sum = (innermost: unknown) => {
    const one = { kind: 'number', value: 1 }
    let value = innermost
    for (let level = 0; level < LEVELS; level++) value = { kind: 'sum', left: value, right: one }
    return value
  }

  it('are checked once for each part of a value', () => {
    expect(issuesOf(schema, sum({ kind: 'number', value: 1 }))).toEqual([])
    expect(pathsOf(schema, sum({ kind: 'number', value: '1' }))).toEqual([''])
  })

  it('are checked once also with unevaluatedProperties', () => {
    const open = { ...schema, unevaluatedProperties: false, $defs: { term } }
    expect(issuesOf(open, sum({ kind: 'number', value: 1 }))).toEqual([])
    expect(pathsOf(open, { kind: 'number', value: 1, more: 2 })).toEqual(['more'])
  })

  it('are checked once also with $dynamicRef, per dynamic scope', () => {
    const node = (id: string, leaf: object) => ({
      $id: id,
      $dynamicAnchor: 'node',
      anyOf: [
        leaf,
        { properties: { next: { $dynamicRef: '#node' } }, required: ['next'] },
        { properties: { next: { $dynamicRef: '#node' } } },
      ],
    })
    const strict = {
      ...node('https://example.com/strict', { type: 'number' }),
      type: ['number', 'object'],
    }
    const nested = (innermost: unknown) => {
      let value = innermost
      for (let level = 0; level < LEVELS; level++) value = { next: value }
      return value
    }
    expect(issuesOf(strict, nested(1))).toEqual([])
    expect(issuesOf(strict, nested('a'))).toHaveLength(1)
  })

  it('are checked as deep as the stack allows', () => {
    const part = {
      allOf: [{ anyOf: [{ oneOf: [{ properties: { next: { $ref: '#/$defs/part' } } }] }] }],
    }
    const nested = (levels: number) => {
      let value: object = {}
      for (let level = 0; level < levels; level++) value = { next: value }
      return value
    }
    const deep = { $ref: '#/$defs/part', $defs: { part } }
    expect(issuesOf(deep, nested(200))).toEqual([])
    expect(issuesOf(deep, nested(1000))).toEqual([
      { path: '', message: 'is nested too deeply or too large to be validated' },
    ])
  })

  it('have an error message of bounded length', () => {
    const refer = (name: string) => ({
      properties: { next: { $ref: `#/$defs/${name}` } },
      required: ['next'],
    })
    const mutual = {
      $ref: '#/$defs/two',
      $defs: {
        two: { anyOf: [refer('two'), refer('three')] },
        three: { anyOf: [refer('two'), refer('three'), false] },
      },
    }
    let value: object = { next: {} }
    for (let level = 0; level < LEVELS; level++) value = { next: value }
    const [issue] = issuesOf(mutual, value)
    expect(issue?.message).toMatch(
      /^matches none of the 2 alternatives \(next matches none of .{900,1000}…\)$/,
    )
  })
})
