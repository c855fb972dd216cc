import { describe, expect, it, vi } from 'vitest'
import { type JsonSchema, type Outcome, checker } from '../../src/schema/standard.js'
import { Identities, checkNumber, checkUnique } from '../../src/schema/assertions.js'
import { Scope } from '../../src/schema/dynamic-scope.js'
import { Issues } from '../../src/schema/issue.js'
import { matches, patternProblem } from '../../src/schema/pattern.js'
import { SchemaIndex } from '../../src/schema/schema-index.js'
import { StepLimitError, Steps } from '../../src/schema/steps.js'

/* The cost of validation must be linear in the size of the value. A quadratic or exponential test times out. */

function check(schema: JsonSchema, value: unknown): Outcome {
  const outcome = checker(schema, 'output').check(value)
  if (outcome instanceof Promise) throw new Error('a JSON Schema is checked at once')
  return outcome
}

function issuesOf(
  schema: JsonSchema,
  value: unknown,
): readonly { path: string; message: string }[] {
  return check(schema, value).issues ?? []
}

const isValid = (schema: JsonSchema, value: unknown) => check(schema, value).issues === undefined
const ones = (count: number) => Array.from({ length: count }, () => 1)
/** The limit of arguments of a function is about 120,000 in V8. */
const MANY = 300_000

describe('a large schema and a large value', () => {
  const list = <Item>(count: number, item: (index: number) => Item) =>
    Array.from({ length: count }, (_, index) => item(index))
  const table = <Item>(count: number, item: Item) =>
    Object.fromEntries(list(count, (index) => [`x${index}`, item]))
  // Without a limit, each of them takes minutes.
  const COSTS: Record<string, [JsonSchema, unknown]> = {
    alternatives: [
      { items: { anyOf: [...list(5000, (index) => ({ const: index })), true] } },
      list(100_000, () => 'x'),
    ],
    'an enum of objects': [
      { items: { enum: [...list(5000, (a) => ({ a })), {}] } },
      list(100_000, () => ({})),
    ],
    'an enum of long strings': [
      { contains: { enum: list(50, (index) => `${index}${'y'.repeat(10_000)}`) }, minContains: 0 },
      list(100_000, () => 1),
    ],
    'required members': [
      { contains: { required: list(50_000, (index) => `x${index}`) }, minContains: 0 },
      list(100_000, () => ({})),
    ],
    'patterns of names': [
      { items: { patternProperties: table(5000, true) } },
      list(100_000, () => ({ a: 1 })),
    ],
    'anchored patterns of names': [
      {
        items: {
          patternProperties: Object.fromEntries(list(5000, (index) => [`^x${index}`, true])),
        },
      },
      list(100_000, () => ({ a: 1 })),
    ],
    'schemas beside many anchors': [
      {
        items: { allOf: list(500, () => ({ type: 'number' })) },
        $defs: Object.fromEntries(
          list(9000, (index) => [`x${index}`, { $dynamicAnchor: `n${index}` }]),
        ),
      },
      list(300_000, () => 1),
    ],
    'patterns of one long text': [
      { allOf: list(500, (index) => ({ pattern: `(?:a|b)*${index}?$` })) },
      'ab'.repeat(500_000),
    ],
    'lengths of one text': [
      { allOf: list(9000, () => ({ minLength: 1 })) },
      'a'.repeat(10_000_000),
    ],
  }

  it.each(Object.entries(COSTS))('%s: validation is given up', (_, [schema, value]) => {
    expect(issuesOf(schema, value)).toEqual([
      { path: '', message: expect.stringMatching(/^takes too many steps to be /) },
    ])
  })

  it('are validated if one of them is small', () => {
    expect(isValid({ items: { anyOf: [{ type: 'string' }, {}] } }, ones(MANY))).toBe(true)
    const properties = table(5000, { type: 'integer' })
    expect(isValid({ properties }, table(5000, 1))).toBe(true)
    expect(
      isValid(
        { items: { properties } },
        list(20_000, () => ({ x1: 1 })),
      ),
    ).toBe(true)
    expect(isValid({ enum: list(100_000, (a) => ({ a })) }, { a: 99_999 })).toBe(true)
    expect(isValid({ pattern: '^(?:ab)*$' }, 'ab'.repeat(500_000))).toBe(true)
    expect(isValid({ items: { anyOf: [{ type: 'string' }, {}] } }, ones(3_000_000))).toBe(true)
  })

  it('names of members are collected once', () => {
    const collect = vi.spyOn(Object, 'keys')
    const value = table(100_000, 1)
    const properties = table(33, true)
    const schemas = { properties: { properties }, minProperties: { minProperties: 1 } }
    for (const [keyword, schema] of Object.entries(schemas)) {
      collect.mockClear()
      expect(isValid({ allOf: list(500, () => schema) }, value), keyword).toBe(true)
      expect(collect.mock.calls.filter(([of]) => of === value).length, keyword).toBeLessThan(3)
    }
    collect.mockRestore()
  })

  describe('count the steps of', () => {
    const items = list(300_000, (index) => index)
    const members = table(120, 1)
    const heavy = '(?:ab?){0,2400}c'
    const anchors = list(90, (index) => `https://a.example/${index}`)
    const index = new SchemaIndex({
      $defs: Object.fromEntries(
        anchors.map(($id, position) => [$id, { $id, $dynamicAnchor: `n${position}` }]),
      ),
    })
    /** What would be repeated without end, and a number of repetitions that exceeds the limit. */
    const REPEATED: Record<string, [number, (steps: Steps) => void]> = {
      'unique items': [
        10,
        (steps) => checkUnique(items, new Identities(steps), new Issues(), steps),
      ],
      multiples: [400_000, (steps) => checkNumber({ multipleOf: 3 }, 9, new Issues(), steps)],
      'names of members': [50_000, (steps) => steps.namesOf(members)],
      'large patterns': [300_000, (steps) => matches(heavy, 'a', steps)],
      'dynamic scopes': [
        200,
        (steps) => {
          let scope = new Scope(index, steps)
          for (const base of anchors) scope = scope.enter(base)
        },
      ],
    }

    it.each(Object.entries(REPEATED))('%s', (_, [times, run]) => {
      const steps = new Steps(undefined)
      run(steps)
      expect(() => {
        for (let time = 0; time < times; time++) run(steps)
      }).toThrow(StepLimitError)
    })
  })
})

describe('a compiled schema with many properties', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 900 }, (_, index) => [`x${index}`, { type: 'string' }]),
  )

  it('looks only at the members that the value has', () => {
    let looked = 0
    const value = new Proxy<Record<string, unknown>>(
      { x7: 'a', other: 1 },
      {
        getOwnPropertyDescriptor(target, name) {
          looked++
          return Reflect.getOwnPropertyDescriptor(target, name)
        },
      },
    )
    expect(isValid({ type: 'object', properties }, value)).toBe(true)
    expect(looked).toBeLessThan(10)
  })

  it('lists the issues in the order of the schema', () => {
    const paths = (value: object) => issuesOf({ properties }, value).map(({ path }) => path)
    expect(paths({ x500: 1, x2: 1, x30: 'a', x10: 1 })).toEqual(['x2', 'x10', 'x500'])
    expect(paths(Object.fromEntries(Object.keys(properties).map((name) => [name, 1])))).toEqual(
      Array.from({ length: 21 }, (_, index) => `x${index}`),
    )
  })
})

describe('branches that evaluate many members', () => {
  const names = Array.from({ length: 100_000 }, (_, index) => `x${index}`)
  const value = Object.fromEntries(names.map((name) => [name, 1]))

  it('share them with unevaluatedProperties', () => {
    const schema = {
      allOf: Array.from({ length: 9000 }, () => ({ $ref: '#/$defs/all' })),
      unevaluatedProperties: false,
      $defs: { all: { patternProperties: { '^x': true } } },
    }
    expect(isValid(schema, value)).toBe(true)
    expect(isValid(schema, { ...value, y: 1 })).toBe(false)
  })

  it('look only at the members that they know', () => {
    const schema = {
      anyOf: names.slice(0, 9000).map((name) => ({ properties: { [name]: true } })),
      unevaluatedProperties: false,
    }
    const known = Object.fromEntries(names.slice(0, 9000).map((name) => [name, 1]))
    expect(isValid(schema, known)).toBe(true)
    expect(isValid(schema, { ...known, y: 1 })).toBe(false)
  })
})

describe('a value with many issues', () => {
  const FAULTS: Record<string, [JsonSchema, unknown]> = {
    'wrong items': [{ type: 'array', items: { type: 'string' } }, ones(MANY)],
    'wrong items, in the full validator': [
      { type: 'array', items: { pattern: 'x', type: 'string' } },
      ones(MANY),
    ],
    'unevaluated items': [{ unevaluatedItems: false }, ones(MANY)],
    'wrong items behind a $ref': [
      { $ref: '#/$defs/a', allOf: [{ $ref: '#/$defs/a' }], $defs: { a: { items: false } } },
      ones(MANY),
    ],
    'unknown members': [
      { type: 'object', additionalProperties: false },
      Object.fromEntries(ones(MANY).map((_, i) => [`k${i}`, 1])),
    ],
    'members with wrong names': [
      { propertyNames: { maxLength: 1 } },
      Object.fromEntries(ones(MANY).map((_, i) => [`k_${i}`, 1])),
    ],
    'unevaluated members': [
      { unevaluatedProperties: false },
      Object.fromEntries(ones(MANY).map((_, i) => [`k${i}`, 1])),
    ],
  }

  it.each(Object.entries(FAULTS))('%s: not all issues are collected', (_, [schema, value]) => {
    expect(issuesOf(schema, value)).toHaveLength(21)
  })

  it('lists them in order', () => {
    expect(issuesOf({ items: { type: 'string' } }, ones(30)).map(({ path }) => path)).toEqual(
      Array.from({ length: 21 }, (_, index) => `[${index}]`),
    )
  })
})

describe('is valid however many issues a tried alternative has', () => {
  const wrong = { items: { type: 'string' } }
  const FORMS: Record<string, JsonSchema> = {
    anyOf: { anyOf: [wrong, { items: { type: 'number' } }] },
    oneOf: { oneOf: [wrong, { items: { type: 'number' } }] },
    'anyOf behind a $ref': {
      anyOf: [{ $ref: '#/$defs/w' }, { not: { $ref: '#/$defs/w' } }],
      $defs: { w: wrong },
    },
    not: { not: wrong },
    if: { if: wrong, then: false },
    contains: { contains: { type: 'number' } },
    unevaluatedItems: { anyOf: [wrong, { items: { type: 'number' } }], unevaluatedItems: false },
  }

  it.each(Object.entries(FORMS))('%s', (_, schema) => {
    expect(issuesOf(schema, ones(MANY))).toEqual([])
  })

  it('has the same issues in any order of alternatives', () => {
    const schema = {
      properties: {
        a: { anyOf: [{ $ref: '#/$defs/two' }, { type: 'string' }] },
        b: { $ref: '#/$defs/two' },
      },
      $defs: { two: { required: ['x', 'y'] } },
    }
    const part = {}
    expect(issuesOf(schema, { a: part, b: part })).toEqual([
      { path: 'a', message: expect.stringContaining('x is required') },
      { path: 'b.x', message: 'is required' },
      { path: 'b.y', message: 'is required' },
    ])
  })
})

describe('$refs whose number doubles at each level', { timeout: 30_000 }, () => {
  const LEVELS = 40
  const LEAF = { type: ['number', 'string', 'object'], not: { const: 'bad' } }
  const doubling = (part: (reference: object) => object): JsonSchema => ({
    $ref: '#/$defs/d0',
    $defs: Object.fromEntries(
      Array.from({ length: LEVELS + 1 }, (_, level) => [
        `d${level}`,
        level === LEVELS ? LEAF : part({ $ref: `#/$defs/d${level + 1}` }),
      ]),
    ),
  })
  const nested = (innermost: unknown) => {
    let value = innermost
    for (let level = 0; level < LEVELS; level++) value = { next: value }
    return value
  }

  it.each([
    ['allOf', (reference: object) => ({ allOf: [reference, reference] })],
    ['anyOf', (reference: object) => ({ anyOf: [{ not: { not: reference } }, reference] })],
    ['if', (reference: object) => ({ if: reference, then: reference, else: reference })],
  ])('%s: linear time for a primitive value', (_, part) => {
    expect([1, 'good', {}, 'bad', null].map((value) => isValid(doubling(part), value))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect(
      isValid({ items: { $ref: '#/$defs/d0' }, $defs: doubling(part)['$defs'] }, [
        1,
        'good',
        'bad',
      ]),
    ).toBe(false)
    expect(
      isValid({ items: { $ref: '#/$defs/d0' }, $defs: doubling(part)['$defs'] }, [
        1,
        'good',
        'good',
      ]),
    ).toBe(true)
  })

  it('linear time at each level of the value', () => {
    const schema = doubling((reference) => ({
      allOf: [{ properties: { next: reference } }, { properties: { next: reference } }],
    }))
    expect([nested('good'), nested('bad')].map((value) => isValid(schema, value))).toEqual([
      true,
      false,
    ])
  })

  it('linear time with unevaluatedProperties', () => {
    const schema = {
      ...doubling((reference) => ({ allOf: [reference, reference], properties: { a: true } })),
      unevaluatedProperties: false,
    }
    expect([{ a: 1 }, { a: 1, b: 2 }].map((value) => isValid(schema, value))).toEqual([true, false])
  })

  it('linear time for any order of entering resources', () => {
    const ids = Array.from({ length: 8 }, (_, index) => `https://example.com/${index}`)
    const resource = (id: string) => ({
      $id: id,
      $dynamicAnchor: 'node',
      type: 'object',
      anyOf: [
        ...ids.map(($ref) => ({ properties: { next: { $ref } }, required: ['next', 'never'] })),
        { properties: { next: { $ref: id } } },
      ],
    })
    const schema = {
      $ref: ids[0],
      $defs: Object.fromEntries(ids.map((id, index) => [`r${index}`, resource(id)])),
    }
    expect([nested({}), nested(1)].map((value) => isValid(schema, value))).toEqual([true, false])
  })
})

describe('linear time for large valid values', { timeout: 60_000 }, () => {
  it('of nested unique items', () => {
    const LEVELS = 300
    let value: unknown = Array.from({ length: 50_000 }, (_, index) => ({ index }))
    for (let level = 0; level < LEVELS; level++) value = [value, level]
    const schema = {
      $ref: '#/$defs/set',
      $defs: { set: { uniqueItems: true, items: { $ref: '#/$defs/set' } } },
    }
    expect(issuesOf(schema, value)).toEqual([])
  })

  it('of items behind a $ref', () => {
    const schema = { items: { $ref: '#/$defs/item' }, $defs: { item: { type: 'object' } } }
    expect(
      issuesOf(
        schema,
        Array.from({ length: MANY }, () => ({})),
      ),
    ).toEqual([])
  })
})

describe('long names', () => {
  const LONG = 'n'.repeat(100_000)

  it('are truncated in paths', () => {
    const value = {
      [LONG]: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`${LONG}${index}`, 1])),
    }
    for (const schema of [
      { type: 'object', additionalProperties: { type: 'object', additionalProperties: false } },
      { additionalProperties: { patternProperties: { '^n+\\d+$': false } } },
      { additionalProperties: { propertyNames: { maxLength: 5 } } },
    ]) {
      const issues = issuesOf(schema, value)
      expect(issues).toHaveLength(21)
      for (const { path, message } of issues) expect(path.length + message.length).toBeLessThan(500)
    }
  })

  it('truncate long paths in the middle', () => {
    let value: unknown = 1
    for (let level = 0; level < 300; level++) value = { [`member_${level}`]: value }
    const [issue] = issuesOf({ additionalProperties: { $ref: '#' }, type: 'object' }, value)
    expect(issue?.path).toMatch(/^member_299\.member_298\..*….*\.member_1\.member_0$/)
    expect(issue?.path.length).toBeLessThan(1100)
  })
})

describe('back-references', () => {
  it.each(['^(.*)x\\1$', '^(a+)\\1$', '^(?<n>.*)\\k<n>$', '^(a{1,9999})\\1$', '^(?=(.*)x)\\1$'])(
    '%s is quadratic and rejected',
    (pattern) => {
      expect(patternProblem(pattern)).toBe(
        `${JSON.stringify(pattern)} has a back-reference and can take more than linear time; simplify it`,
      )
    },
  )

  it.each(['^(["\']).*\\1$', '^(a|b)\\1$', '(a)\\1', '^(ab).*\\1$'])(
    '%s is linear and allowed',
    (pattern) => {
      expect(patternProblem(pattern)).toBeUndefined()
    },
  )
})
