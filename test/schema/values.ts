import { fc } from '../fast-check.js'

/*
 * Random JSON values that have a fair chance of fitting a schema, and a fair
 * chance of missing it by little: near each bound, with a member too many or
 * too few, with an enum's neighbour.
 */

type Node = Readonly<Record<string, unknown>>
/** The schemas that apply to one and the same value: a schema with its allOf, anyOf, $ref … */
type Group = readonly Node[]

const NAMES = ['a', 'b', 'c', 'extra']
const TEXTS = [
  '',
  'a',
  'b',
  'ab',
  'abc',
  'A',
  '7',
  '2024-01-31',
  'x1',
  'hello world',
  'é',
  '😀',
  '😀😀',
  'a😀',
  '\ud83d',
  '\ude00\ud83d',
  'line\nbreak',
]
const NUMBERS = [0, -0, 1, -1, 2, 3, 4, 5, 10, 1.5, -2.5, 0.1, 1e21, 9007199254740994, 100]
const TYPES = ['string', 'number', 'boolean', 'null', 'array', 'object']

const { anyValue: any } = fc.letrec<{ anyValue: unknown }>((tie) => ({
  anyValue: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom<unknown>(null, true, false, ...TEXTS, ...NUMBERS),
    fc.array(tie('anyValue'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('anyValue'), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  ),
}))

/** Any JSON value. */
export const anyValue: fc.Arbitrary<unknown> = any

/** Values for a schema: mostly valid or nearly valid, sometimes arbitrary. */
export function valueFor(schema: unknown): fc.Arbitrary<unknown> {
  return near(schema, schema, 4)
}

function near(schema: unknown, root: unknown, depth: number): fc.Arbitrary<unknown> {
  const group = groupOf(schema, root)
  if (group.length === 0 || depth === 0) return any
  const fitting: { weight: number; arbitrary: fc.Arbitrary<unknown> }[] = []
  const listed = group.flatMap((node) => [
    ...listOf(node['enum']),
    ...listOf(node['examples']),
    ...('const' in node ? [node['const']] : []),
  ])
  if (listed.length > 0) fitting.push({ weight: 12, arbitrary: fc.constantFrom(...listed) })
  const named = group.flatMap((node) =>
    Array.isArray(node['type']) ? node['type'] : node['type'] === undefined ? [] : [node['type']],
  )
  const types: readonly unknown[] = named.length > 0 ? named : typesByKeyword(group)
  for (const type of new Set(types))
    fitting.push({ weight: 12, arbitrary: ofType(type, group, root, depth) })
  return fc.oneof(...fitting, { weight: 2, arbitrary: any })
}

function groupOf(schema: unknown, root: unknown, seen: ReadonlySet<unknown> = new Set()): Group {
  if (!isNode(schema) || seen.has(schema)) return []
  const inside = new Set([...seen, schema])
  const group: Node[] = [schema]
  const add = (part: unknown) => group.push(...groupOf(part, root, inside))
  for (const keyword of ['allOf', 'anyOf', 'oneOf'])
    for (const part of listOf(schema[keyword])) add(part)
  for (const keyword of ['not', 'if', 'then', 'else']) add(schema[keyword])
  for (const keyword of ['dependentSchemas', 'dependencies'])
    for (const part of Object.values(nodeOf(schema[keyword]))) add(part)
  if (typeof schema['$ref'] === 'string') add(target(schema['$ref'], root))
  return group
}

function target(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return undefined
  return reference
    .split('/')
    .slice(1)
    .reduce<unknown>((node, name) => nodeOf(node)[name], root)
}

function typesByKeyword(group: Group): string[] {
  const has = (...keywords: string[]) =>
    group.some((node) => keywords.some((keyword) => keyword in node))
  const types: string[] = []
  if (
    has(
      'properties',
      'required',
      'additionalProperties',
      'patternProperties',
      'minProperties',
      'maxProperties',
      'propertyNames',
      'dependentRequired',
      'dependencies',
      'unevaluatedProperties',
    )
  )
    types.push('object')
  if (
    has(
      'items',
      'prefixItems',
      'contains',
      'minItems',
      'maxItems',
      'uniqueItems',
      'unevaluatedItems',
    )
  )
    types.push('array')
  if (has('minLength', 'maxLength', 'pattern', 'format')) types.push('string')
  if (has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'))
    types.push('number')
  return types.length > 0 ? types : TYPES
}

function ofType(type: unknown, group: Group, root: unknown, depth: number): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number':
      return fc.constantFrom(
        ...NUMBERS,
        ...limits(group, [
          'minimum',
          'maximum',
          'exclusiveMinimum',
          'exclusiveMaximum',
          'multipleOf',
        ]).flatMap((limit) => [limit - 1, limit - 0.5, limit, limit + 0.5, limit + 1, limit * 2]),
      )
    case 'string':
      return fc.oneof(
        fc.constantFrom(...TEXTS),
        ...limits(group, ['minLength', 'maxLength']).map((limit) =>
          fc
            .array(fc.constantFrom('a', 'é', '😀'), {
              minLength: Math.max(0, limit - 1),
              maxLength: limit + 1,
            })
            .map((all) => all.join('')),
        ),
      )
    case 'array':
      return arrayFor(group, root, depth)
    default:
      return objectFor(group, root, depth)
  }
}

function arrayFor(group: Group, root: unknown, depth: number): fc.Arbitrary<unknown[]> {
  const tuples = group.flatMap((node) => [node['prefixItems'], node['items']].filter(Array.isArray))
  const rest = group
    .flatMap((node) => [
      node['items'],
      node['contains'],
      node['additionalItems'],
      node['unevaluatedItems'],
    ])
    .filter(isNode)
  const one = rest.length === 0 ? any : fc.oneof(...rest.map((part) => near(part, root, depth - 1)))
  const longest = Math.max(2, ...limits(group, ['minItems', 'maxItems'])) + 1
  const plain = fc.array(one, { maxLength: longest })
  if (tuples.length === 0)
    return fc.oneof(
      { weight: 4, arbitrary: plain },
      { weight: 1, arbitrary: plain.map((items) => [...items, ...items.slice(0, 1)]) },
    )
  const first = fc.oneof(
    ...tuples.map((parts: unknown[]) =>
      fc.tuple(...parts.map((part) => near(part, root, depth - 1))),
    ),
  )
  return fc
    .tuple(first, plain, fc.nat(4))
    .map(([head, tail, length]) => [...head, ...tail].slice(0, Math.max(head.length - 1, length)))
}

function objectFor(group: Group, root: unknown, depth: number): fc.Arbitrary<unknown> {
  const members: Record<string, fc.Arbitrary<unknown>> = {}
  const others = group
    .flatMap((node) => [
      node['additionalProperties'],
      ...Object.values(nodeOf(node['patternProperties'])),
    ])
    .filter(isNode)
  const other =
    others.length === 0 ? any : fc.oneof(any, ...others.map((part) => near(part, root, depth - 1)))
  for (const node of group) {
    for (const name of listOf(node['required'])) members[String(name)] ??= other
    for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'])
      for (const [name, names] of Object.entries(nodeOf(node[keyword])))
        for (const each of [name, ...listOf(names)]) members[String(each)] ??= other
  }
  for (const node of group) {
    for (const [name, part] of Object.entries(nodeOf(node['properties']))) {
      const already = members[name]
      members[name] =
        already === undefined || already === other
          ? near(part, root, depth - 1)
          : fc.oneof(already, near(part, root, depth - 1))
    }
  }
  const required = [...new Set(group.flatMap((node) => listOf(node['required'])).map(String))]
  const whole = fc.record(members, { requiredKeys: required, noNullPrototype: true })
  const partial = fc.record(members, { requiredKeys: [], noNullPrototype: true })
  const extra = fc.dictionary(fc.constantFrom(...NAMES, 'x1', 'n_1', 'é'), other, {
    maxKeys: 3,
    noNullPrototype: true,
  })
  return fc.oneof(
    { weight: 4, arbitrary: whole },
    { weight: 3, arbitrary: partial },
    { weight: 2, arbitrary: fc.tuple(extra, whole).map(([more, most]) => ({ ...more, ...most })) },
  )
}

function limits(group: Group, keywords: readonly string[]): number[] {
  return group
    .flatMap((node) => keywords.map((keyword) => node[keyword]))
    .filter((limit) => typeof limit === 'number')
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function nodeOf(value: unknown): Node {
  return isNode(value) ? value : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
