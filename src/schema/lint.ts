import { type JsonSchema, isDialect, isRecord } from './issue.js'

/*
 * What is wrong with a JSON Schema before any value is checked. Hosts drop a
 * server's whole tool list for one bad schema and say nothing, so it is said
 * here, when the server is made.
 */

const MAX_DEPTH = 64
const MAX_SUBSCHEMAS = 10_000

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'])
const SCHEMA = [
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
]
const SCHEMA_LIST = ['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']
const SCHEMA_MAP = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties']
const COUNTS = ['maxItems', 'maxLength', 'maxProperties', 'minItems', 'minLength', 'minProperties', 'maxContains', 'minContains']
const NUMBERS = ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf']

/** The problems of a schema, each as a sentence that begins with where it is. */
export function lint(schema: unknown): string[] {
  const problems: string[] = []
  if (!isRecord(schema)) return ['a JSON Schema must be an object']
  const dialect = schema['$schema']
  if (dialect !== undefined && !isDialect(dialect)) {
    problems.push(`$schema: ${JSON.stringify(dialect)} is not supported; use JSON Schema 2020-12 (the default) or draft-07`)
  }
  walk(schema, problems)
  return problems
}

function walk(root: JsonSchema, problems: string[]): void {
  const open: { schema: unknown; path: string; depth: number }[] = [{ schema: root, path: '', depth: 0 }]
  const references: { path: string; reference: string }[] = []
  const seen = new Set<unknown>()
  const names = new Set<string>()
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { schema, path, depth } = next
    const at = (keyword: string) => `${path === '' ? '' : `${path}/`}${keyword}`
    if (typeof schema === 'boolean') continue
    if (!isRecord(schema)) {
      problems.push(`${path}: a schema must be an object or a boolean`)
      continue
    }
    if (seen.has(schema)) continue
    seen.add(schema)
    if (depth > MAX_DEPTH || seen.size > MAX_SUBSCHEMAS) {
      problems.push(`${path}: the schema is too large (at most ${MAX_DEPTH} levels and ${MAX_SUBSCHEMAS} parts)`)
      return
    }
    checkKeywords(schema, at, problems)
    for (const keyword of ['$anchor', '$dynamicAnchor']) if (typeof schema[keyword] === 'string') names.add(`#${schema[keyword]}`)
    if (typeof schema['$id'] === 'string') names.add(schema['$id'])
    for (const keyword of ['$ref', '$dynamicRef'])
      if (typeof schema[keyword] === 'string') references.push({ path: at(keyword), reference: schema[keyword] })
    for (const [keyword, part] of subschemas(schema)) open.push({ schema: part, path: at(keyword), depth: depth + 1 })
  }
  for (const { path, reference } of references) {
    const problem = referenceProblem(root, reference, names)
    if (problem !== undefined) problems.push(`${path}: ${problem}`)
  }
}

function* subschemas(schema: JsonSchema): Generator<[string, unknown]> {
  for (const keyword of SCHEMA) {
    const part = schema[keyword]
    if (part !== undefined && !Array.isArray(part)) yield [keyword, part]
  }
  for (const keyword of SCHEMA_LIST) {
    const parts = schema[keyword]
    if (Array.isArray(parts)) for (const [index, part] of parts.entries()) yield [`${keyword}/${index}`, part]
  }
  for (const keyword of SCHEMA_MAP) {
    const parts = schema[keyword]
    if (isRecord(parts)) for (const name of Object.keys(parts)) yield [`${keyword}/${name}`, parts[name]]
  }
}

function checkKeywords(schema: JsonSchema, at: (keyword: string) => string, problems: string[]): void {
  const expect = (keyword: string, holds: (value: unknown) => boolean, what: string) => {
    if (schema[keyword] !== undefined && !holds(schema[keyword])) problems.push(`${at(keyword)}: must be ${what}`)
  }
  expect(
    'type',
    (type) => (Array.isArray(type) ? type.length > 0 && type.every(isType) : isType(type)),
    `one of ${[...TYPES].join(', ')}, or a list of them`,
  )
  expect('enum', Array.isArray, 'an array')
  expect('required', (names) => Array.isArray(names) && names.every((name) => typeof name === 'string'), 'an array of names')
  expect('pattern', (value) => typeof value === 'string', 'a regular expression')
  expect('uniqueItems', (value) => typeof value === 'boolean', 'true or false')
  for (const keyword of COUNTS)
    expect(keyword, (value) => typeof value === 'number' && Number.isInteger(value) && value >= 0, 'a number of 0 or more')
  for (const keyword of NUMBERS)
    expect(keyword, (value) => typeof value === 'number' && (keyword !== 'multipleOf' || value > 0), 'a number')
  for (const keyword of SCHEMA_MAP) expect(keyword, isRecord, 'an object of schemas')
  for (const keyword of ['allOf', 'anyOf', 'oneOf'])
    expect(keyword, (parts) => Array.isArray(parts) && parts.length > 0, 'a non-empty array of schemas')
  const patterns = isRecord(schema['patternProperties']) ? Object.keys(schema['patternProperties']) : []
  if (typeof schema['pattern'] === 'string') patterns.push(schema['pattern'])
  for (const pattern of patterns) {
    const problem = patternProblem(pattern)
    if (problem !== undefined) problems.push(`${at('pattern')}: ${problem}`)
  }
}

function isType(value: unknown): boolean {
  return typeof value === 'string' && TYPES.has(value)
}

/**
 * Patterns are matched in linear time, except where they look around or back;
 * such a one must not repeat a group, or a hostile string could stall the process.
 */
function patternProblem(pattern: string): string | undefined {
  try {
    RegExp(pattern, 'u')
  } catch {
    return `${JSON.stringify(pattern)} is not a regular expression`
  }
  const bare = pattern.replace(/\\\\/g, '').replace(/\[(?:\\.|[^\]])*\]/g, 'x')
  const looks = /\(\?<?[=!]|\\[1-9]|\\k</.test(bare)
  if (!looks || !/\)(?:[*+]|\{\d+,)/.test(bare)) return undefined
  return `${JSON.stringify(pattern)} repeats a group beside a look-around or back-reference and could take exponential time; write it without either`
}

/** `names` are the ids and anchors within the schema. */
function referenceProblem(root: JsonSchema, reference: string, names: ReadonlySet<string>): string | undefined {
  const [base = '', fragment = ''] = reference.split('#', 2)
  if (names.has(reference) || reference === '#') return undefined
  if (base !== '' && !names.has(base))
    return `${JSON.stringify(reference)} points outside the schema; nothing is fetched, put the part into $defs`
  if (base !== '' && base !== root['$id']) return undefined
  if (fragment !== '' && !fragment.startsWith('/'))
    return names.has(`#${fragment}`) ? undefined : `${JSON.stringify(reference)} names no anchor of this schema`
  let target: unknown = root
  for (const segment of fragment.split('/').slice(1)) {
    const name = unescape(segment)
    if (Array.isArray(target)) target = target[Number(name)]
    else target = isRecord(target) && Object.hasOwn(target, name) ? target[name] : undefined
    if (target === undefined) return `${JSON.stringify(reference)} points to nothing in this schema`
  }
  return undefined
}

function unescape(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return segment
  }
}
