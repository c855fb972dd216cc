import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  type JsonSchema,
  type ServerOptions,
  type Tool,
  createServer,
  tool,
} from '../../src/index.js'
import { lint } from '../../src/schema/lint.js'
import { matches } from '../../src/schema/pattern.js'
import { compileSimple } from '../../src/schema/simple.js'
import { checkServer } from '../../src/server/context.js'

const run = () => 'ok'
const serve = (tools: readonly Tool[], more: Partial<ServerOptions> = {}) =>
  createServer({ name: 'x', version: '1', tools, ...more })

/** An input schema with one property of the given schema. */
const holding = (part: unknown): JsonSchema => ({ type: 'object', properties: { p: part } })
const serveInput = (input: JsonSchema) => serve([tool({ name: 't', input, run })])

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

const TYPES = 'one of string, number, integer, boolean, null, array, object, or a list of them'

describe('rejects an invalid value of a keyword:', () => {
  const tell = (part: unknown, problem: string) =>
    rejects(
      () => serveInput(holding(part)),
      `Tool "t": its input schema is not valid: properties/p/${problem}`,
    )

  it.each<[unknown]>([
    ['text'],
    ['String'],
    [''],
    [5],
    [null],
    [['string', 'text']],
    [['string', null]],
    [{}],
    ['toString'],
    ['__proto__'],
  ])('type %j', (type) => {
    tell({ type }, `type: must be ${TYPES}`)
  })
  it('an empty list of types', () => {
    expect(lint({ type: [] })).toEqual([`type: must be ${TYPES}`])
    tell({ type: [] }, `type: must be ${TYPES}`)
  })
  it.each<[unknown]>([['a'], [{}], [null], [5]])('enum %j', (value) => {
    tell({ enum: value }, 'enum: must be an array')
  })
  it.each<[unknown]>([[true], ['a'], [['a', 5]], [{}], [null]])('required %j', (required) => {
    tell({ required }, 'required: must be an array of names')
  })
  it.each<[unknown]>([['true'], [1], [null]])('uniqueItems %j', (uniqueItems) => {
    tell({ uniqueItems }, 'uniqueItems: must be true or false')
  })
  it.each([
    'maxItems',
    'maxLength',
    'maxProperties',
    'minItems',
    'minLength',
    'minProperties',
    'maxContains',
    'minContains',
  ])('%s', (keyword) => {
    for (const value of ['1', -1, 1.5, null, true, [1]])
      tell({ [keyword]: value }, `${keyword}: must be a non-negative integer`)
    expect(lint({ [keyword]: 0 })).toEqual([])
  })
  it.each(['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'])(
    '%s',
    (keyword) => {
      for (const value of ['1', null, true, [1]])
        tell(
          { [keyword]: value },
          `${keyword}: must be a number${keyword === 'multipleOf' ? ' greater than 0' : ''}`,
        )
      expect(lint({ [keyword]: 0.5 })).toEqual([])
    },
  )
  it.each([0, -1])('multipleOf %d', (multipleOf) => {
    expect(() => serveInput(holding({ multipleOf }))).toThrow(
      'Tool "t": its input schema is not valid: properties/p/multipleOf: must be ',
    )
  })
  it.each(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'])(
    '%s',
    (keyword) => {
      for (const value of [[], 'a', true, null])
        tell({ [keyword]: value }, `${keyword}: must be an object of schemas`)
    },
  )
  it.each(['allOf', 'anyOf', 'oneOf'])('%s', (keyword) => {
    for (const value of [[], {}, true, null])
      tell({ [keyword]: value }, `${keyword}: must be a non-empty array of schemas`)
  })
  it.each([
    'additionalProperties',
    'additionalItems',
    'contains',
    'contentSchema',
    'else',
    'if',
    'items',
    'not',
    'propertyNames',
    'then',
    'unevaluatedItems',
    'unevaluatedProperties',
  ])('%s', (keyword) => {
    for (const value of ['a', 5, null])
      tell({ [keyword]: value }, `${keyword}: a schema must be an object or a boolean`)
    expect(lint({ [keyword]: false })).toEqual([])
  })
  it.each(['allOf', 'anyOf', 'oneOf', 'prefixItems'])('an element of %s', (keyword) => {
    tell({ [keyword]: [{}, 'a'] }, `${keyword}/1: a schema must be an object or a boolean`)
  })
  it('a tuple of draft-07, unless the schema says that it is one', () => {
    const tuple = { type: 'array', items: [{ type: 'number' }, { type: 'number' }] }
    tell(tuple, 'items: must be a schema; for a tuple use prefixItems, or "$schema" of draft-07')
    const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#' }
    expect(lint({ ...draft7, ...tuple })).toEqual([])
    expect(lint({ ...draft7, items: [{}, 'a'] })).toEqual([
      'items/1: a schema must be an object or a boolean',
    ])
  })
  it('a list with the same type twice', () => {
    tell({ type: ['string', 'null', 'string'] }, 'type: must not have the same type twice')
  })
  it('a long $id, also by the $ids around it', () => {
    const long = (length: number) => `https://a.example/${'i'.repeat(length - 18)}`
    expect(lint({ $id: long(1000) })).toEqual([])
    expect(lint({ $id: long(1001) })).toEqual(['$id: must be at most 1000 characters long'])
    let schema: JsonSchema = { $id: 'inner' }
    for (let level = 0; level < 10; level++)
      schema = { $id: `${'i'.repeat(200)}/`, properties: { a: schema } }
    expect(lint({ $id: 'https://a.example/', items: schema })).toHaveLength(6)
  })
  it('references that follow one another without limit', () => {
    const chain = (length: number): JsonSchema => {
      const $defs: Record<string, JsonSchema> = { d0: {} }
      for (let index = 1; index <= length; index++)
        $defs[`d${index}`] = { $ref: `#/$defs/d${index - 1}` }
      return { $defs }
    }
    expect(lint(chain(1900))).toEqual([])
    expect(lint(chain(9000))).toEqual(['too many references follow one another'])
  })
  it('a pattern that the runtime does not compile', () => {
    const pattern = 'a'.repeat(200_000)
    expect(lint({ pattern })).toEqual([
      `pattern: ${JSON.stringify(pattern)} is too large; simplify it`,
    ])
    const nested = `${'(?:'.repeat(9000)}a*${')*'.repeat(9000)}`
    expect(lint({ pattern: nested })).toEqual([
      `pattern: ${JSON.stringify(nested)} is nested too deeply; simplify it`,
    ])
    expect(lint({ pattern: '^.{1,65535}$' })).toEqual([])
    expect(lint({ pattern: '\\p{L}'.repeat(9000) })).toEqual([
      'pattern: the patterns of the schema are too large in total; simplify them',
    ])
  })
  it.each(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'])(
    'a member of %s',
    (keyword) => {
      tell({ [keyword]: { a: {}, b: 5 } }, `${keyword}/b: a schema must be an object or a boolean`)
    },
  )
  it.each<[string, JsonSchema, string]>([
    ['in an item of an item', { items: { items: { type: 'x' } } }, 'items/items/type'],
    ['in a oneOf', { oneOf: [{}, { not: { type: 'x' } }] }, 'oneOf/1/not/type'],
    [
      'in $defs',
      { $defs: { a: { properties: { b: { type: 'x' } } } } },
      '$defs/a/properties/b/type',
    ],
    ['in a tuple', { prefixItems: [{ type: 'x' }] }, 'prefixItems/0/type'],
  ])('are found %s', (_, part, path) => {
    tell(part, `${path}: must be ${TYPES}`)
  })

  it('but not within const, default, enum and examples', () => {
    for (const keyword of ['const', 'default'])
      expect(
        lint({ [keyword]: { type: 'x', $ref: 'https://example.com/x', pattern: '(' } }),
      ).toEqual([])
    for (const keyword of ['enum', 'examples'])
      expect(
        lint({ [keyword]: [{ type: 'x', $ref: 'https://example.com/x', pattern: '(' }] }),
      ).toEqual([])
    expect(
      lint({
        properties: {
          type: { type: 'string' },
          enum: true,
          required: {},
          $ref: { type: 'string' },
          pattern: {},
        },
      }),
    ).toEqual([])
  })

  it('reports every problem', () => {
    expect(lint({ type: 'x', minLength: -1, properties: { a: { enum: 1 } } })).toEqual([
      `type: must be ${TYPES}`,
      'minLength: must be a non-negative integer',
      'properties/a/enum: must be an array',
    ])
  })

  const unnoticed = (keyword: string, values: readonly unknown[]) =>
    values.filter((value) => lint({ [keyword]: value }).length === 0)

  it('an array where a schema is expected', () => {
    const keywords = [
      'additionalProperties',
      'contains',
      'else',
      'if',
      'not',
      'propertyNames',
      'then',
      'unevaluatedItems',
      'unevaluatedProperties',
    ]
    expect(keywords.filter((keyword) => unnoticed(keyword, [[{}]]).length > 0)).toEqual([])
  })
  it('prefixItems that is not an array', () => {
    expect(unnoticed('prefixItems', [{}, true, 'a', null])).toEqual([])
  })
  it('a pattern that is not a string', () => {
    expect(unnoticed('pattern', [5, null, {}, ['a'], true])).toEqual([])
  })
  it('a $ref that is not a string', () => {
    expect([...unnoticed('$ref', [5, {}, null]), ...unnoticed('$dynamicRef', [5])]).toEqual([])
  })
  it('NaN and Infinity', () => {
    expect(unnoticed('minimum', [Number.NaN, Infinity, -Infinity])).toEqual([])
    expect(serves(() => serveInput(holding({ minimum: Number.NaN })))).toBe(false)
  })
  it('dependentRequired', () => {
    expect(unnoticed('dependentRequired', ['a', ['a'], { a: 'b' }, { a: [5] }])).toEqual([])
  })
  it('dependencies of draft-07', () => {
    expect(
      unnoticed('dependencies', [
        'a',
        { a: 5 },
        { a: [5] },
        { a: { type: 'x' } },
        { a: { $ref: 'https://example.com/x' } },
      ]),
    ).toEqual([])
  })
})

describe('$schema', () => {
  it.each([
    'https://json-schema.org/draft/2020-12/schema',
    'https://json-schema.org/draft/2020-12/schema#',
    'http://json-schema.org/draft-07/schema',
    'http://json-schema.org/draft-07/schema#',
  ])('accepts %s', ($schema) => {
    expect(serveInput({ $schema, type: 'object' }).tools.size).toBe(1)
  })

  it.each<[unknown]>([
    ['http://json-schema.org/draft-04/schema#'],
    ['http://json-schema.org/draft-06/schema#'],
    ['https://json-schema.org/draft/2019-09/schema'],
    ['https://json-schema.org/schema'],
    ['https://example.com/own'],
    [''],
    [5],
    [null],
    [{}],
  ])('rejects %j', ($schema) => {
    rejects(
      () => serveInput({ $schema, type: 'object' }),
      `Tool "t": its input schema is not valid: $schema: ${JSON.stringify($schema)} is not supported; use JSON Schema 2020-12 (the default) or draft-07`,
    )
  })
})

describe('references', () => {
  const tell = (input: JsonSchema, problem: string) =>
    rejects(
      () => serveInput({ type: 'object', ...input }),
      `Tool "t": its input schema is not valid: ${problem}`,
    )
  const OUTSIDE = 'points outside the schema, and nothing is fetched; put the target into $defs'

  it.each([
    'https://example.com/schema.json',
    'http://localhost:1/x#/a',
    'file:///etc/passwd',
    'other.json',
    '//example.com/x',
    'urn:uuid:1',
    'https://json-schema.org/draft/2020-12/schema',
  ])('rejects %s, which is outside the schema', (reference) => {
    tell(
      { properties: { p: { $ref: reference } } },
      `properties/p/$ref: ${JSON.stringify(reference)} ${OUTSIDE}`,
    )
    tell({ $dynamicRef: reference }, `$dynamicRef: ${JSON.stringify(reference)} ${OUTSIDE}`)
  })

  it.each([
    '#/$defs/missing',
    '#/properties/p/items',
    '#/$defs/a/0',
    '#/$defs/toString',
    '#/$defs/__proto__',
    '#/__proto__',
    '#/%',
    '#/allOf/1',
    '#/allOf/-1',
    '#/allOf/length',
    '#/$defs/a/',
  ])('rejects %s, which does not exist', (reference) => {
    tell(
      { $defs: { a: {} }, allOf: [{}], properties: { p: { $ref: reference } } },
      `properties/p/$ref: ${JSON.stringify(reference)} does not exist in this schema`,
    )
  })

  it.each(['#a', '#missing', '#toString'])('rejects %s, which is not an anchor', (reference) => {
    tell(
      { $defs: { a: { $anchor: 'A' } }, $ref: reference },
      `$ref: ${JSON.stringify(reference)} is not an anchor of this schema`,
    )
  })

  it.each<[string, JsonSchema]>([
    ['#', { $ref: '#' }],
    [
      '#/$defs/a',
      { properties: { p: { $ref: '#/$defs/a' } }, $defs: { a: { $ref: '#/$defs/a' } } },
    ],
    [
      '#/$defs/a',
      {
        properties: { p: { $ref: '#/$defs/a' } },
        $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
      },
    ],
    ['#', { allOf: [{ anyOf: [{ not: { $ref: '#' } }] }] }],
    ['#', { if: { required: ['p'] }, else: { $ref: '#' } }],
    ['#', { dependentSchemas: { p: { oneOf: [true, { $ref: '#' }] } } }],
    [
      '#',
      { $schema: 'http://json-schema.org/draft-07/schema#', dependencies: { p: { $ref: '#' } } },
    ],
  ])('rejects %s, which refers to itself', (reference, schema) => {
    tell(
      schema,
      `$ref: ${JSON.stringify(reference)} refers to itself, so validation would never end`,
    )
  })

  it.each<JsonSchema>([
    { properties: { p: { $ref: '#' } } },
    { anyOf: [{ properties: { p: { $ref: '#' } } }, { items: { $ref: '#' } }] },
    {
      allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }],
      $defs: { a: { $ref: '#/$defs/b' }, b: {} },
    },
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $ref: '#/definitions/a',
      allOf: [{ $ref: '#' }],
      definitions: { a: {} },
    },
  ])('accepts recursion into the value: %j', (schema) => {
    expect(lint(schema)).toEqual([])
  })

  it('are checked within every keyword', () => {
    const remote = { $ref: 'https://example.com/x' }
    for (const [path, input] of Object.entries<JsonSchema>({
      'items/$ref': { items: remote },
      'allOf/0/$ref': { allOf: [remote] },
      '$defs/a/$ref': { $defs: { a: remote } },
      'if/not/$ref': { if: { not: remote } },
      'patternProperties/^a/$ref': { patternProperties: { '^a': remote } },
      'additionalProperties/$ref': { additionalProperties: remote },
      'dependentSchemas/a/$ref': { dependentSchemas: { a: remote } },
      'unevaluatedItems/$ref': { unevaluatedItems: remote },
    })) {
      tell(input, `${path}: "https://example.com/x" ${OUTSIDE}`)
    }
  })

  it.each<[string, JsonSchema]>([
    ['a pointer', { properties: { p: { $ref: '#/$defs/a' } }, $defs: { a: {} } }],
    ['a pointer to a pointer', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: {} } }],
    ['a pointer with escapes', { $ref: '#/$defs/a~1b~0c%20d%25', $defs: { 'a/b~c d%': {} } }],
    ['a pointer into an array', { $ref: '#/allOf/1', allOf: [{}, {}] }],
    [
      'a pointer to a property',
      { properties: { a: { type: 'string' }, b: { $ref: '#/properties/a' } } },
    ],
    [
      'a pointer to a property of an odd name',
      { properties: { constructor: { type: 'string' }, b: { $ref: '#/properties/constructor' } } },
    ],
    ['the whole, recursively', { properties: { children: { items: { $ref: '#' } } } }],
    ['the whole, by nothing', { properties: { children: { items: { $ref: '' } } } }],
    [
      'itself',
      { $ref: '#/$defs/a', $defs: { a: { properties: { next: { $ref: '#/$defs/a' } } } } },
    ],
    ['an $anchor', { $ref: '#there', $defs: { a: { $anchor: 'there' } } }],
    ['a $dynamicAnchor', { $dynamicRef: '#node', $defs: { a: { $dynamicAnchor: 'node' } } }],
    [
      'a relative $id',
      {
        $id: 'https://example.com/root.json',
        $ref: 'item.json',
        $defs: { a: { $id: 'item.json' } },
      },
    ],
    ['a relative $id without a base', { $ref: 'item', $defs: { a: { $id: 'item' } } }],
    [
      'a part of a relative $id',
      {
        $id: 'https://example.com/root.json',
        $ref: 'item.json#/$defs/b',
        $defs: { a: { $id: 'item.json', $defs: { b: {} } } },
      },
    ],
    [
      'an absolute $id',
      { $ref: 'https://example.com/item', $defs: { a: { $id: 'https://example.com/item' } } },
    ],
    [
      'the $id of the whole',
      { $id: 'https://example.com/root', properties: { p: { $ref: 'https://example.com/root' } } },
    ],
    [
      'a part by the $id of the whole',
      {
        $id: 'https://example.com/root',
        $ref: 'https://example.com/root#/$defs/a',
        $defs: { a: {} },
      },
    ],
    [
      'an anchor by the $id of the whole',
      {
        $id: 'https://example.com/root',
        $ref: 'https://example.com/root#there',
        $defs: { a: { $anchor: 'there' } },
      },
    ],
    ['a URN', { $ref: 'urn:example:item', $defs: { a: { $id: 'urn:example:item' } } }],
    [
      'draft-07 definitions',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        $ref: '#/definitions/a',
        definitions: { a: {} },
      },
    ],
    [
      'a draft-07 anchor',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        $ref: '#there',
        definitions: { a: { $id: '#there' } },
      },
    ],
  ])('accepts %s', (_, input) => {
    expect(serveInput({ type: 'object', ...input }).tools.size).toBe(1)
  })

  it('are resolved against the enclosing $id', () => {
    const schemas: JsonSchema[] = [
      {
        $id: 'https://example.com/root.json',
        $ref: 'https://example.com/item.json',
        $defs: { a: { $id: 'item.json' } },
      },
      {
        $id: 'https://example.com/root.json',
        $ref: 'item.json',
        $defs: { a: { $id: 'https://example.com/item.json' } },
      },
      { $id: 'https://example.com/root.json', $ref: 'root.json#/$defs/a', $defs: { a: {} } },
      {
        $ref: 'item.json',
        $defs: { a: { $id: 'item.json', $defs: { b: {} }, items: { $ref: '#/$defs/b' } } },
      },
    ]
    expect(schemas.flatMap((schema) => lint(schema))).toEqual([])
  })

  it('rejects a pointer to something that is not a schema', () => {
    const schemas: JsonSchema[] = [
      { title: 'x', $ref: '#/title' },
      { allOf: [{}], $ref: '#/allOf' },
      { allOf: [{}], $ref: '#/allOf/00' },
    ]
    expect(schemas.filter((schema) => lint(schema).length === 0)).toEqual([])
  })
})

describe('size', () => {
  const nested = (levels: number, bottom: JsonSchema): JsonSchema => {
    let schema = bottom
    for (let level = 0; level < levels; level++)
      schema = { type: 'object', properties: { a: schema } }
    return schema
  }
  const wide = (parts: number, part: JsonSchema): JsonSchema => ({
    type: 'object',
    properties: Object.fromEntries(
      Array.from({ length: parts }, (_, index) => [`p${index}`, { ...part }]),
    ),
  })
  const TOO_LARGE = 'the schema is too large (at most 64 levels and 10000 parts)'
  const FULL: JsonSchema = { type: 'string', pattern: 'a' }
  const SIMPLE: JsonSchema = { type: 'string' }

  it('accepts 64 levels and rejects 65', () => {
    expect(serveInput(nested(64, FULL)).tools.size).toBe(1)
    rejects(
      () => serveInput(nested(65, FULL)),
      `Tool "t": its input schema is not valid: ${Array.from({ length: 65 }, () => 'properties/a').join('/')}: ${TOO_LARGE}`,
    )
  })

  it('accepts 10,000 subschemas and rejects one more', () => {
    expect(serveInput(wide(9_999, FULL)).tools.size).toBe(1)
    expect(() => serveInput(wide(10_000, FULL))).toThrow(TOO_LARGE)
  })

  it('checks 100,000 levels without a stack overflow', () => {
    expect(lint(nested(100_000, FULL))).toEqual([expect.stringContaining(TOO_LARGE)])
  })

  it('has the same limit for schemas that compile to closures', () => {
    const tooLarge = [nested(65, SIMPLE), wide(10_000, SIMPLE)]
    expect(tooLarge.filter((schema) => serves(() => serveInput(schema)))).toHaveLength(0)
    expect(() => serveInput(nested(100_000, SIMPLE))).toThrow(TOO_LARGE)
  })

  it('rejects an object that contains itself', () => {
    const schema = { type: 'object', properties: {} as Record<string, unknown> }
    schema.properties['self'] = schema
    expect(lint(schema)).toHaveLength(1)
    expect(() => serveInput(schema)).toThrow('Tool "t": its input schema is not valid: ')
  })

  it('accepts the same object in two places', () => {
    const part = { type: 'string' }
    expect(serveInput({ type: 'object', properties: { a: part, b: part } }).tools.size).toBe(1)
  })
})

describe('patterns', () => {
  const tell = (part: JsonSchema, path: string, problem: string) =>
    rejects(
      () => serveInput(holding(part)),
      `Tool "t": its input schema is not valid: properties/p/${path}: ${problem}`,
    )

  it.each([
    '(',
    '[',
    'a{2,1}',
    '*',
    '\\',
    '(?<a',
    '(?<a>.)(?<a>.)',
    '\\p{Nope}',
    '\\-',
    '[z-a]',
    'a**',
  ])('rejects %s', (pattern) => {
    tell({ pattern }, 'pattern', `${JSON.stringify(pattern)} is not a regular expression`)
  })

  it.each([
    '^(a+)+\\1$',
    '^(?<x>a+)+\\k<x>$',
    '^(a+)(?:a+){2,}\\1$',
    '^(a*)a*\\1$',
    '(a*)\\1b',
    '^(?=(a+)+$)\\1',
  ])('rejects %s, whose cost is not bounded', (pattern) => {
    tell(
      { pattern },
      'pattern',
      `${JSON.stringify(pattern)} has a back-reference and can take more than linear time; simplify it`,
    )
  })

  it.each([
    '^(?=.*\\d)(?=.*[a-z]).{8,}$',
    '^(?!foo)[a-z]+$',
    '^(a)\\1$',
    '(?<=a)b',
    '^(a+)+$',
    '^(?:[a-z]+\\.)+[a-z]{2,}$',
    '^(?<year>\\d{4})$',
    '^[(?=)]+(a+)+$',
    '^\\\\(?:a+)+$',
  ])('accepts %s', (pattern) => {
    expect(serveInput(holding({ pattern })).tools.size).toBe(1)
  })

  it('are checked in patternProperties too', () => {
    const pattern = '^(b+)+\\1$'
    expect(() => serveInput(holding({ patternProperties: { [pattern]: true } }))).toThrow(
      'has a back-reference and can take more than linear time',
    )
    expect(() => serveInput(holding({ patternProperties: { '(': true } }))).toThrow(
      '"(" is not a regular expression',
    )
  })

  it('are reported as patternProperties', () => {
    tell(
      { patternProperties: { '(': true } },
      'patternProperties',
      '"(" is not a regular expression',
    )
  })

  it('may have an escaped parenthesis', () => {
    expect(['^(?=a)a\\)+$', '^\\(?=(a+)+$'].flatMap((pattern) => lint({ pattern }))).toEqual([])
  })

  it('are accepted otherwise, and no string can stall them', () => {
    const patterns = [
      '^(?=a)(b+)+$',
      '^(?!x)(a|a)*$',
      '(?<=a)(b+)+c',
      '(?<!a)(b*)*c',
      '^(?=(a+)+$)',
      '^(?=a)(a+){2,}$',
      '^(?=a)(?:a+){1,99}$',
    ]
    patterns.push(
      '^(?=a)(a*){12}$',
      '^(?!b)(?:a+){20}$',
      '(?=a)a*a*a*a*a*b',
      '^(?<x>a+)+$',
      '\\b(a+)+$',
      '^(\\p{L}+)+$',
      '^([\\S]+)+ $',
      '^([^\\W]+)+$',
      '^(?:[\\D]+)*1$',
    )
    for (const pattern of patterns) {
      expect(lint({ pattern })).toEqual([])
      expect(matches(pattern, `${'a'.repeat(5000)}!`)).toBe(false)
    }
  })
})

describe('valid schemas', () => {
  it.each<[string, JsonSchema]>([
    ['nothing but the type', { type: 'object' }],
    [
      'booleans for schemas',
      {
        type: 'object',
        properties: { p: { properties: { a: true, b: false } } },
        additionalProperties: false,
        not: false,
        if: true,
        then: true,
        allOf: [true],
        items: true,
      },
    ],
    [
      'everything of 2020-12',
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $id: 'https://example.com/all',
        $comment: 'c',
        title: 't',
        type: 'object',
        properties: {
          a: {
            type: ['string', 'null'],
            minLength: 0,
            maxLength: 5,
            pattern: '^a',
            format: 'email',
            default: null,
            examples: ['a'],
          },
          b: {
            type: 'array',
            prefixItems: [{}],
            items: false,
            contains: {},
            minContains: 0,
            maxContains: 1,
            uniqueItems: true,
            unevaluatedItems: false,
          },
          c: { type: 'number', multipleOf: 0.1, minimum: -1, exclusiveMaximum: 1e9 },
        },
        patternProperties: { '^x-': {} },
        propertyNames: { maxLength: 9 },
        required: [],
        dependentRequired: { a: ['b'] },
        dependentSchemas: { a: {} },
        minProperties: 0,
        unevaluatedProperties: false,
        enum: [{}],
        const: {},
        contentSchema: {},
        $defs: {},
      },
    ],
    [
      'draft-07',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        type: 'object',
        properties: { a: { items: [{ $ref: '#/definitions/n' }], additionalItems: false } },
        definitions: { n: { type: 'number' } },
        dependencies: { a: ['b'], b: { required: ['c'] } },
      },
    ],
    [
      'unknown keywords',
      {
        type: 'object',
        'x-order': ['a'],
        discriminator: { propertyName: 'kind' },
        nullable: true,
        example: {},
      },
    ],
    [
      'keywords left undefined',
      {
        type: 'object',
        properties: undefined,
        required: undefined,
        $ref: undefined,
        pattern: undefined,
        items: undefined,
        $schema: undefined,
      },
    ],
  ])('%s', (_, input) => {
    expect(lint(input)).toEqual([])
    expect(checkServer(serveInput(input)).tools.get('t')?.listing.inputSchema).toBe(input)
  })

  it('are not modified', () => {
    const input = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/b' } },
      $defs: { b: { type: 'string' } },
    }
    const before = structuredClone(input)
    serveInput(input)
    expect(input).toEqual(before)
  })
})

describe('a schema that compiles to a closure', () => {
  const KEYWORDS = [
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
    '$schema',
    'title',
    'pattern',
    '$ref',
    'not',
  ]

  it('is valid: the lint would report nothing', () => {
    const { schema: schemas } = fc.letrec<{ value: unknown; schema: Record<string, unknown> }>(
      (tie) => ({
        value: fc.oneof(
          { maxDepth: 3 },
          fc.constantFrom<unknown>(
            'string',
            'object',
            'array',
            'integer',
            'text',
            ['string', 'null'],
            ['string', 5],
            ['a', 'b'],
            ['a', {}],
            0,
            3,
            -1,
            1.5,
            true,
            false,
            null,
            'https://json-schema.org/draft/2020-12/schema',
            'https://example.com/own',
          ),
          tie('schema'),
          fc.dictionary(fc.constantFrom('a', 'b'), tie('value'), { maxKeys: 2 }),
          fc.array(tie('value'), { minLength: 1, maxLength: 2 }),
        ),
        schema: fc.dictionary(fc.constantFrom(...KEYWORDS), tie('value'), { maxKeys: 3 }),
      }),
    )
    const seen = { compiled: 0, faulty: 0 }
    fc.assert(
      fc.property(schemas, (schema) => {
        const problems = lint(schema)
        if (problems.length > 0) seen.faulty++
        if (compileSimple(schema) === undefined) return
        seen.compiled++
        expect(problems).toEqual([])
      }),
      { numRuns: runs(5000) },
    )
    expect(seen.compiled).toBeGreaterThan(runs(200))
    expect(seen.faulty).toBeGreaterThan(runs(200))
  })
})
