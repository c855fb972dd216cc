import { Validator } from '@cfworker/json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { type Issue, Issues, type JsonSchema, isObject } from '../../src/schema/issue.js'
import { check as checkFully } from '../../src/schema/json-schema.js'
import { compileSimple } from '../../src/schema/simple.js'
import { anyValue, valueFor } from './values.js'

function issuesOf(schema: unknown, value: unknown): Issue[] {
  const check = compileSimple(schema)
  if (check === undefined) throw new Error(`not a simple schema: ${JSON.stringify(schema)}`)
  const issues = new Issues()
  check(value, issues)
  const found = issues.result()
  // The validator that interprets schemas says the same in the same order.
  if (isObject(schema)) expect(interpreted(schema, value)).toEqual(found)
  return found
}

function interpreted(schema: JsonSchema, value: unknown): readonly Issue[] {
  return checkFully(schema, value).issues ?? []
}

const json = (text: string): unknown => JSON.parse(text)

interface Row {
  schema: unknown
  valid: unknown[]
  invalid: unknown[]
}

/** One of each JSON type. */
const EACH = {
  string: 'a',
  number: 1.5,
  integer: 7,
  boolean: false,
  null: null,
  array: [],
  object: {},
}
const allBut = (...types: (keyof typeof EACH)[]) =>
  Object.entries(EACH).flatMap(([type, value]) =>
    types.includes(type as keyof typeof EACH) ? [] : [value],
  )

const ROWS: Record<string, Row> = {
  'the empty schema': { schema: {}, valid: Object.values(EACH), invalid: [] },
  'the schema true': { schema: true, valid: Object.values(EACH), invalid: [] },
  'type string': {
    schema: { type: 'string' },
    valid: ['', 'a', '5', 'null'],
    invalid: allBut('string'),
  },
  'type number': {
    schema: { type: 'number' },
    valid: [0, -0, 1.5, -1, 1e300],
    invalid: [...allBut('number', 'integer'), '1'],
  },
  'type integer': {
    schema: { type: 'integer' },
    valid: [0, -0, -3, 1.0, 1e300, 9007199254740994],
    invalid: [...allBut('integer'), '1', 0.5],
  },
  'type boolean': {
    schema: { type: 'boolean' },
    valid: [true, false],
    invalid: [...allBut('boolean'), 0, 1, 'true'],
  },
  'type null': {
    schema: { type: 'null' },
    valid: [null],
    invalid: [...allBut('null'), 0, false, ''],
  },
  'type array': {
    schema: { type: 'array' },
    valid: [[], [1], [[]]],
    invalid: [...allBut('array'), { length: 0 }],
  },
  'type object': { schema: { type: 'object' }, valid: [{}, { a: 1 }], invalid: allBut('object') },
  'a list of types': {
    schema: { type: ['string', 'null'] },
    valid: ['', 'a', null],
    invalid: allBut('string', 'null'),
  },
  'a list of one type': { schema: { type: ['integer'] }, valid: [1], invalid: [1.5, '1'] },
  'enum of strings': {
    schema: { enum: ['a', 'b'] },
    valid: ['a', 'b'],
    invalid: ['', 'A', 'ab', 'c', ['a'], null],
  },
  'enum of scalars': {
    schema: { enum: [1, 'x', null, false] },
    valid: [1, 1.0, 'x', null, false],
    invalid: [0, '1', 'null', true, '', undefined, {}, []],
  },
  'enum with zero': { schema: { enum: [0] }, valid: [0, -0], invalid: [false, '', null, '0'] },
  'const scalar': { schema: { const: 'on' }, valid: ['on'], invalid: ['off', 'ON', null, ['on']] },
  'const null': { schema: { const: null }, valid: [null], invalid: [0, '', false, undefined, {}] },
  'const false': { schema: { const: false }, valid: [false], invalid: [0, '', null, true] },
  'enum next to type': {
    schema: { type: 'string', enum: ['a', 1] },
    valid: ['a'],
    invalid: [1, 'b'],
  },
  properties: {
    schema: { properties: { a: { type: 'string' }, b: { type: 'number' } } },
    valid: [{}, { a: 'x' }, { b: 1 }, { a: 'x', b: 1, c: null }, 'no object', 5, [], null],
    invalid: [{ a: 1 }, { b: 'x' }, { a: null }, { a: 'x', b: '1' }],
  },
  'properties with true': {
    schema: { properties: { a: true } },
    valid: [{}, { a: null }, { a: {} }],
    invalid: [],
  },
  required: {
    schema: { required: ['a', 'b'] },
    valid: [{ a: 1, b: 1 }, { a: null, b: undefined }, 'x', [], null],
    invalid: [{}, { a: 1 }, { b: 1 }, { A: 1, b: 1 }],
  },
  'required of nothing': { schema: { required: [] }, valid: [{}, 1], invalid: [] },
  'additionalProperties false': {
    schema: { properties: { a: true }, additionalProperties: false },
    valid: [{}, { a: 1 }, [], 'x'],
    invalid: [{ b: 1 }, { a: 1, b: 1 }, { A: 1 }],
  },
  'additionalProperties false alone': {
    schema: { additionalProperties: false },
    valid: [{}, [1], 'a'],
    invalid: [{ a: 1 }, { '': 1 }],
  },
  'additionalProperties true': {
    schema: { properties: { a: { type: 'string' } }, additionalProperties: true },
    valid: [{ b: 1 }, { a: 'x', b: {} }],
    invalid: [{ a: 1 }],
  },
  'additionalProperties schema': {
    schema: { properties: { a: { type: 'string' } }, additionalProperties: { type: 'number' } },
    valid: [{}, { a: 'x', b: 1 }, { b: 1, c: 2 }],
    invalid: [{ b: 'x' }, { a: 1 }, { b: 1, c: null }],
  },
  items: {
    schema: { items: { type: 'number' } },
    valid: [[], [1], [1, 2], {}, 'a', { 0: 'a' }],
    invalid: [['a'], [1, 'a'], [null], [[1]]],
  },
  'items true': { schema: { items: true }, valid: [[], [1, 'a', null]], invalid: [] },
  'items of items': {
    schema: { items: { type: 'array', items: { type: 'boolean' } } },
    valid: [[], [[]], [[true], [false, true]]],
    invalid: [[true], [[1]], [[], null]],
  },
  minimum: {
    schema: { minimum: 3 },
    valid: [3, 3.0001, 1e9, '1', null, [], {}],
    invalid: [2.9999, 0, -5],
  },
  maximum: { schema: { maximum: 3 }, valid: [3, 2.9, -1e9, '9', true], invalid: [3.0001, 4] },
  exclusiveMinimum: {
    schema: { exclusiveMinimum: 0 },
    valid: [0.0001, 1, 'a'],
    invalid: [0, -0, -1],
  },
  exclusiveMaximum: {
    schema: { exclusiveMaximum: 0 },
    valid: [-0.0001, -1, 'a'],
    invalid: [0, -0, 1],
  },
  minLength: {
    schema: { minLength: 2 },
    valid: ['ab', 'abc', '😀😀', 5, null, [], [1]],
    invalid: ['', 'a', '😀'],
  },
  maxLength: {
    schema: { maxLength: 2 },
    valid: ['', 'ab', '😀😀', 5, ['a', 'b', 'c']],
    invalid: ['abc', '😀😀😀'],
  },
  minItems: { schema: { minItems: 2 }, valid: [[1, 2], [1, 2, 3], 'a', {}], invalid: [[], [1]] },
  maxItems: { schema: { maxItems: 1 }, valid: [[], [1], 'abc', { a: 1, b: 2 }], invalid: [[1, 2]] },
  minProperties: {
    schema: { minProperties: 1 },
    valid: [{ a: 1 }, { a: undefined }, [], ''],
    invalid: [{}],
  },
  maxProperties: {
    schema: { maxProperties: 1 },
    valid: [{}, { a: 1 }, [1, 2], 'ab'],
    invalid: [{ a: 1, b: 2 }],
  },
  'annotations alone': {
    schema: {
      title: 't',
      description: 'd',
      default: 5,
      examples: ['x'],
      deprecated: true,
      readOnly: true,
      writeOnly: true,
      format: 'email',
      $comment: 'c',
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      'x-order': 3,
    },
    valid: [...Object.values(EACH), 'not an email'],
    invalid: [],
  },
  'annotations beside keywords': {
    schema: { type: 'string', format: 'date', default: 1, 'x-a': {} },
    valid: ['not a date'],
    invalid: [1],
  },
}

describe.each(Object.entries(ROWS))('%s', (_, { schema, valid, invalid }) => {
  it.each(valid.map((value) => [JSON.stringify(value) ?? 'undefined', value]))(
    'takes %s',
    (_text, value) => {
      expect(issuesOf(schema, value)).toEqual([])
    },
  )
  if (invalid.length === 0) return
  it.each(invalid.map((value) => [JSON.stringify(value) ?? 'undefined', value]))(
    'rejects %s',
    (_text, value) => {
      expect(issuesOf(schema, value)).not.toEqual([])
    },
  )
})

describe('every keyword has test rows', () => {
  it.each([
    'type',
    'enum',
    'const',
    'properties',
    'required',
    'additionalProperties',
    'items',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'minLength',
    'maxLength',
    'minItems',
    'maxItems',
    'minProperties',
    'maxProperties',
  ])('%s', (keyword) => {
    const rows = Object.values(ROWS).filter(
      ({ schema }) => typeof schema === 'object' && schema !== null && keyword in schema,
    )
    expect(rows.flatMap(({ valid }) => valid).length).toBeGreaterThan(0)
    expect(rows.flatMap(({ invalid }) => invalid).length).toBeGreaterThan(0)
  })
})

describe('the message of an issue', () => {
  const PERSON = {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1 },
      age: { type: 'integer', minimum: 0 },
      tags: {
        type: 'array',
        items: {
          type: 'object',
          properties: { id: { type: ['integer', 'string'] } },
          required: ['id'],
        },
      },
    },
    required: ['name'],
    additionalProperties: false,
  }
  it.each<[string, unknown, unknown, Issue[]]>([
    [
      'a wrong type at the top',
      PERSON,
      [],
      [{ path: '', message: 'must be an object, not an array' }],
    ],
    [
      'a wrong type, briefly',
      { type: 'string' },
      5,
      [{ path: '', message: 'must be a string, not 5' }],
    ],
    ['a wrong type, null', { type: 'null' }, 'x', [{ path: '', message: 'must be null, not "x"' }]],
    [
      'a wrong type of several',
      { type: ['integer', 'null'] },
      1.5,
      [{ path: '', message: 'must be an integer or null, not 1.5' }],
    ],
    [
      'an undefined value',
      { type: 'number' },
      undefined,
      [{ path: '', message: 'must be a number, not undefined' }],
    ],
    [
      'nothing else about a value of the wrong type',
      { minimum: 5, maximum: 1, type: 'integer', enum: [9] },
      '3',
      [{ path: '', message: 'must be an integer, not "3"' }],
    ],
    ['a missing member', PERSON, {}, [{ path: 'name', message: 'is required' }]],
    [
      'a missing member of an item',
      PERSON,
      { name: 'n', tags: [{ id: 1 }, {}] },
      [{ path: 'tags[1].id', message: 'is required' }],
    ],
    [
      'a wrong member of an item',
      PERSON,
      { name: 'n', tags: [{ id: true }] },
      [{ path: 'tags[0].id', message: 'must be an integer or a string, not true' }],
    ],
    [
      'an unknown member',
      PERSON,
      { name: 'n', nam: 1 },
      [{ path: 'nam', message: 'is an unknown property; expected one of name, age, tags' }],
    ],
    [
      'an unknown member where none is known',
      { additionalProperties: false },
      { a: 1 },
      [{ path: 'a', message: 'is an unknown property' }],
    ],
    [
      'an unknown member deeper',
      { properties: { o: PERSON } },
      { o: { name: 'n', x: 1 } },
      [{ path: 'o.x', message: 'is an unknown property; expected one of name, age, tags' }],
    ],
    [
      'a bad additional member',
      { additionalProperties: { type: 'number' } },
      { a: 1, b: 'x' },
      [{ path: 'b', message: 'must be a number, not "x"' }],
    ],
    [
      'a value of no enum',
      { enum: ['a', 1, null] },
      'b',
      [{ path: '', message: 'must be one of "a", 1, null, not "b"' }],
    ],
    [
      'a value that is not the const',
      { const: 'a' },
      {},
      [{ path: '', message: 'must be "a", not an object' }],
    ],
    ['minimum', { minimum: 3 }, 2, [{ path: '', message: 'must be at least 3, not 2' }]],
    ['maximum', { maximum: 3 }, 4.5, [{ path: '', message: 'must be at most 3, not 4.5' }]],
    [
      'exclusiveMinimum',
      { exclusiveMinimum: 3 },
      3,
      [{ path: '', message: 'must be greater than 3, not 3' }],
    ],
    [
      'exclusiveMaximum',
      { exclusiveMaximum: 3 },
      3,
      [{ path: '', message: 'must be less than 3, not 3' }],
    ],
    [
      'minLength',
      PERSON,
      { name: '' },
      [{ path: 'name', message: 'must have at least 1 characters, not 0' }],
    ],
    [
      'maxLength',
      { maxLength: 1 },
      '😀😀',
      [{ path: '', message: 'must have at most 1 characters, not 2' }],
    ],
    [
      'minItems',
      { minItems: 2 },
      [1],
      [{ path: '', message: 'must have at least 2 items, not 1' }],
    ],
    ['maxItems', { maxItems: 0 }, [1], [{ path: '', message: 'must have at most 0 items, not 1' }]],
    [
      'minProperties',
      { minProperties: 1 },
      {},
      [{ path: '', message: 'must have at least 1 properties, not 0' }],
    ],
    [
      'maxProperties',
      { maxProperties: 0 },
      { a: 1 },
      [{ path: '', message: 'must have at most 0 properties, not 1' }],
    ],
    [
      'an item of an item',
      { items: { items: { type: 'number' } } },
      [[1], [2, '3']],
      [{ path: '[1][1]', message: 'must be a number, not "3"' }],
    ],
    [
      'a long string',
      { type: 'number' },
      'x'.repeat(41),
      [{ path: '', message: 'must be a number, not a string of 41 characters' }],
    ],
    [
      'all that is wrong, in the order of the schema',
      PERSON,
      { age: -1, tags: ['x'], more: 1 },
      [
        { path: 'age', message: 'must be at least 0, not -1' },
        { path: 'tags[0]', message: 'must be an object, not "x"' },
        { path: 'name', message: 'is required' },
        { path: 'more', message: 'is an unknown property; expected one of name, age, tags' },
      ],
    ],
    [
      'all that is wrong, whatever the order of the keywords and members',
      {
        additionalProperties: false,
        required: ['b', 'c'],
        properties: { b: { maximum: 1, enum: [1] }, a: { items: { type: 'null' }, minItems: 3 } },
        maxProperties: 1,
      },
      { more: 1, a: [0, null], b: 2, also: 2 },
      [
        { path: '', message: 'must have at most 1 properties, not 4' },
        { path: 'b', message: 'must be 1, not 2' },
        { path: 'b', message: 'must be at most 1, not 2' },
        { path: 'a', message: 'must have at least 3 items, not 2' },
        { path: 'a[0]', message: 'must be null, not 0' },
        { path: 'c', message: 'is required' },
        { path: 'more', message: 'is an unknown property; expected one of b, a' },
        { path: 'also', message: 'is an unknown property; expected one of b, a' },
      ],
    ],
    [
      'members of a large schema, in its order',
      {
        properties: Object.fromEntries(
          Array.from({ length: 100 }, (__, n) => [`p${n}`, { type: 'string' }]),
        ),
      },
      { p50: 1, p7: 2 },
      [
        { path: 'p7', message: 'must be a string, not 2' },
        { path: 'p50', message: 'must be a string, not 1' },
      ],
    ],
  ])('%s', (_, schema, value, issues) => {
    expect(issuesOf(schema, value)).toEqual(issues)
  })

  it('is at most 1000 characters long, if the known properties are many', () => {
    const names = Array.from({ length: 900 }, (_, n) => `name${n}`)
    const properties = Object.fromEntries(names.map((name) => [name, true]))
    const [issue] = issuesOf({ properties, additionalProperties: false }, { a: 1 })
    expect(issue?.message).toMatch(/^is an unknown property; expected one of name0, name1, .*…$/)
    expect(issue?.message.length).toBeLessThan(1100)
  })

  it.each<[string, JsonSchema, string]>([
    [
      'with patterns',
      { properties: { a: true }, patternProperties: { '^x': true }, additionalProperties: false },
      'is an unknown property; expected one of a, a name that matches ^x',
    ],
    [
      'that was not evaluated',
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      'is an unknown property',
    ],
    [
      'of its own schema',
      { properties: { b: false }, additionalProperties: false },
      'is not allowed here',
    ],
  ])('for an unknown member that only the other validator finds: %s', (_, schema, message) => {
    expect(interpreted(schema, { b: 1 })).toEqual([{ path: 'b', message }])
  })

  it.each<[unknown, string]>([
    ['x'.repeat(40), `"${'x'.repeat(40)}"`],
    ['x'.repeat(41), 'a string of 41 characters'],
    ['a "quote"', '"a \\"quote\\""'],
    [[1, 2], 'an array'],
    [{ a: 1 }, 'an object'],
    [true, 'true'],
    [-0.5, '-0.5'],
    [undefined, 'undefined'],
  ])('describes %j', (value, words) => {
    expect(issuesOf({ type: 'null' }, value)).toEqual([
      { path: '', message: `must be null, not ${words}` },
    ])
  })

  it('writes a list of types that begins with null with articles', () => {
    expect(issuesOf({ type: ['null', 'string'] }, 5)).toEqual([
      { path: '', message: expect.stringMatching(/^must be null or a string, not 5$/) },
    ])
  })

  it('counts the code points of a long string', () => {
    expect(issuesOf({ type: 'number' }, '😀'.repeat(50))).toEqual([
      { path: '', message: 'must be a number, not a string of 50 characters' },
    ])
  })
})

describe('own properties only', () => {
  const HOSTILE = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']
  const withMember = (name: string, value: unknown) =>
    json(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`)
  const withProperty = (name: string, schema: unknown) => ({
    type: 'object',
    properties: withMember(name, schema),
  })

  it.each(HOSTILE)('%s as a property name', (name) => {
    const schema = withProperty(name, { type: 'string' })
    expect(issuesOf(schema, {})).toEqual([])
    expect(issuesOf(schema, withMember(name, 'x'))).toEqual([])
    expect(issuesOf(schema, withMember(name, 1))).toEqual([
      { path: name, message: 'must be a string, not 1' },
    ])
  })

  it.each(HOSTILE)('%s as a required name', (name) => {
    const schema = { type: 'object', required: [name] }
    expect(issuesOf(schema, {})).toEqual([{ path: name, message: 'is required' }])
    expect(issuesOf(schema, withMember(name, null))).toEqual([])
    expect(issuesOf(schema, Object.create({ [name]: 1 }))).toEqual([
      { path: name, message: 'is required' },
    ])
  })

  it.each(HOSTILE)('%s as an unknown name', (name) => {
    const closed = { type: 'object', properties: { a: true }, additionalProperties: false }
    expect(issuesOf(closed, {})).toEqual([])
    expect(issuesOf(closed, withMember(name, 1))).toEqual([
      { path: name, message: 'is an unknown property; expected one of a' },
    ])
    expect(
      issuesOf({ ...withProperty(name, true), additionalProperties: false }, withMember(name, 1)),
    ).toEqual([])
    expect(issuesOf({ additionalProperties: { type: 'string' } }, withMember(name, 1))).toEqual([
      { path: name, message: 'must be a string, not 1' },
    ])
  })

  it.each(HOSTILE)('%s as a value', (text) => {
    expect(issuesOf({ enum: ['a'] }, text)).toHaveLength(1)
    expect(issuesOf({ enum: [text] }, text)).toEqual([])
    expect(issuesOf({ type: 'string', const: text }, text)).toEqual([])
  })

  it.each(HOSTILE)('%s is not a keyword or type', (name) => {
    expect(compileSimple(withMember(name, 1))).toBeUndefined()
    expect(compileSimple({ type: name })).toBeUndefined()
  })

  it('__proto__ counts as a member', () => {
    expect(issuesOf({ maxProperties: 0 }, json('{"__proto__":1}'))).toHaveLength(1)
    expect(issuesOf({ minProperties: 1 }, json('{"__proto__":1}'))).toEqual([])
  })

  it('objects without a prototype are objects', () => {
    const bare: unknown = Object.assign(Object.create(null), { a: 'x' })
    expect(
      issuesOf(
        {
          type: 'object',
          properties: { a: { type: 'string' } },
          required: ['a'],
          additionalProperties: false,
        },
        bare,
      ),
    ).toEqual([])
  })
})

describe('lengths are counted in code points', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['é', 1],
    ['e\u0301', 2],
    ['😀', 1],
    ['a😀b', 3],
    ['😀😀', 2],
    ['👩‍👩‍👧', 5],
    ['\ud83d', 1],
    ['\ude00', 1],
    ['\ud83d\ud83d', 2],
    ['\ude00\ud83d', 2],
    ['\ud83d\ud83d\ude00', 2],
    ['😀\ud83d', 2],
    ['\uffff', 1],
  ])('%j has %i', (text, length) => {
    expect(issuesOf({ minLength: length, maxLength: length }, text)).toEqual([])
    expect(issuesOf({ minLength: length + 1 }, text)).toEqual([
      { path: '', message: `must have at least ${length + 1} characters, not ${length}` },
    ])
    if (length > 0) expect(issuesOf({ maxLength: length - 1 }, text)).toHaveLength(1)
  })

  it('as the string iterator counts them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', '\ud83d', '\ude00', '\udbff', '\udfff', 'é')),
        (units) => {
          const text = units.join('')
          const length = Array.from(text).length
          expect(issuesOf({ minLength: length, maxLength: length }, text)).toEqual([])
        },
      ),
    )
  })
})

describe('a schema that needs the full validator', () => {
  it.each<[string, unknown]>([
    ['false', false],
    ['no schema', 'string'],
    ['null', null],
    ['an array', []],
    ['an unknown keyword', { type: 'string', pattern: 'a' }],
    ['$ref', { $ref: '#' }],
    ['$defs', { type: 'object', $defs: {} }],
    ['an unknown type', { type: 'strings' }],
    ['one unknown type of several', { type: ['string', 'any'] }],
    ['an enum with an object', { enum: ['a', { b: 1 }] }],
    ['an enum with an array', { enum: [[1]] }],
    ['an invalid enum', { enum: 'a' }],
    ['a const object', { const: { a: 1 } }],
    ['a const array', { const: [] }],
    ['invalid properties', { properties: [] }],
    ['a false property', { properties: { a: false } }],
    ['a property with more', { properties: { a: { properties: { b: { anyOf: [{}] } } } } }],
    ['an invalid required', { required: true }],
    ['additionalProperties with more', { additionalProperties: { oneOf: [] } }],
    ['items with more', { items: { not: {} } }],
    ['items false', { items: false }],
    ['tuple items', { items: [{ type: 'string' }] }],
    ['a bound that is not a number', { minimum: '3' }],
    ['a length that is not a number', { maxLength: '3' }],
  ])('%s', (_, schema) => {
    expect(compileSimple(schema)).toBeUndefined()
  })
})

describe('against two other validators', () => {
  const NAMES = ['a', 'b', 'c', 'd']
  const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, -1, 1.5, '', 'a', 'b', '😀', '7')
  const size = fc.nat(4)
  const limit = fc.constantFrom(-2.5, -1, 0, 1, 1.5, 3, 10)
  const optional = { requiredKeys: [] as [] }
  const typeName = fc.constantFrom(
    'string',
    'number',
    'integer',
    'boolean',
    'null',
    'array',
    'object',
  )

  const { schema: schemas } = fc.letrec<{ part: unknown; schema: Record<string, unknown> }>(
    (tie) => {
      const objectKeywords = {
        properties: fc.dictionary(fc.constantFrom(...NAMES), tie('part'), {
          maxKeys: 4,
          noNullPrototype: true,
        }),
        required: fc.subarray(NAMES, { maxLength: 2 }),
        additionalProperties: fc.oneof(fc.boolean(), tie('part')),
        minProperties: fc.nat(2),
        maxProperties: size,
      }
      const arrayKeywords = { items: tie('part'), minItems: fc.nat(2), maxItems: size }
      const numberKeywords = {
        minimum: limit,
        maximum: limit,
        exclusiveMinimum: limit,
        exclusiveMaximum: limit,
      }
      const stringKeywords = { minLength: fc.nat(2), maxLength: size }
      // cfworker validates the formats that it knows, so they are not used.
      const annotations = {
        title: fc.constant('t'),
        description: fc.constant('d'),
        format: fc.constant('postcode'),
        default: scalar,
        'x-more': scalar,
      }
      const anyType = fc.oneof(
        { weight: 3, arbitrary: typeName },
        { weight: 1, arbitrary: fc.uniqueArray(typeName, { minLength: 1, maxLength: 3 }) },
      )
      const of = (type: string, keywords: Record<string, fc.Arbitrary<unknown>>) =>
        fc.record(
          { type: fc.constant(type), ...keywords, description: fc.constant('d') },
          { requiredKeys: ['type'], noNullPrototype: true },
        )
      return {
        part: fc.oneof(
          { maxDepth: 3 },
          { weight: 9, arbitrary: tie('schema') },
          { weight: 1, arbitrary: fc.constant(true) },
        ),
        schema: fc.oneof(
          { maxDepth: 3 },
          fc.record({ type: anyType, ...annotations }, { ...optional, noNullPrototype: true }),
          fc.record(
            { enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }), type: anyType },
            { requiredKeys: ['enum'], noNullPrototype: true },
          ),
          fc.record(
            {
              const: fc.oneof(
                { weight: 9, arbitrary: scalar },
                { weight: 1, arbitrary: fc.constant({ a: [1] }) },
              ),
            },
            { noNullPrototype: true },
          ),
          of('string', stringKeywords),
          fc.constantFrom('number', 'integer').chain((type) => of(type, numberKeywords)),
          of('array', arrayKeywords),
          of('object', objectKeywords),
          of('object', objectKeywords),
          fc.record(
            {
              ...objectKeywords,
              ...arrayKeywords,
              ...numberKeywords,
              ...stringKeywords,
              enum: fc.array(scalar, { minLength: 1, maxLength: 3 }),
            },
            { ...optional, noNullPrototype: true },
          ),
        ),
      }
    },
  )

  it('accepts the same values', { timeout: 600_000 }, () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
    const seen = { schemas: 0, compiled: 0, checked: 0, valid: 0, disputed: 0 }
    const withValues = schemas.chain((schema) =>
      fc.tuple(
        fc.constant(schema),
        fc.array(
          fc.oneof({ weight: 4, arbitrary: valueFor(schema) }, { weight: 1, arbitrary: anyValue }),
          { minLength: 3, maxLength: 3 },
        ),
      ),
    )
    fc.assert(
      fc.property(withValues, ([schema, values]) => {
        seen.schemas++
        const check = compileSimple(schema)
        if (check === undefined) return
        seen.compiled++
        const first = ajv.compile(schema)
        const second = new Validator(schema, '2020-12', false)
        for (const value of values) {
          const issues = new Issues()
          const before = JSON.stringify(value)
          check(value, issues)
          expect(JSON.stringify(value)).toBe(before)
          expect(interpreted(schema, value)).toEqual(issues.result())
          const expected = first(value)
          if (second.validate(value).valid !== expected) {
            seen.disputed++
            continue
          }
          seen.checked++
          if (expected) seen.valid++
          if ((issues.count === 0) !== expected)
            throw new Error(
              `ajv and cfworker say ${expected ? 'valid' : 'invalid'}, we say ${JSON.stringify(issues.result())}`,
            )
        }
        ajv.removeSchema(schema)
      }),
      { numRuns: runs(3000) },
    )
    // The comparison must have used many schemas, with valid and invalid values.
    expect(seen.compiled).toBeGreaterThan(seen.schemas * 0.8)
    expect(seen.valid).toBeGreaterThan(seen.checked * 0.1)
    expect(seen.valid).toBeLessThan(seen.checked * 0.8)
    expect(seen.disputed).toBeLessThan(seen.checked * 0.001)
  })
})
