import { isObject } from '../is-object.js'
import { type JsonSchema, isDialect } from './issue.js'
import { patternProblem } from './pattern.js'
import { MAX_BASE, SchemaIndex, subschemas } from './schema-index.js'
import { Steps } from './steps.js'

/*
 * Finds the errors in a JSON Schema when the server is created. One invalid schema makes hosts drop the whole tool list
 * without a message.
 */

const MAX_DEPTH = 64
const MAX_SUBSCHEMAS = 10_000
/** Maximum schemas and references that are applied to one value within each other. */
const MAX_FOLLOWING = 2000

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'])

type Rule = [holds: (value: unknown) => boolean, what: string]

const isString = (value: unknown): value is string => typeof value === 'string'
const isNames = (value: unknown) => Array.isArray(value) && value.every(isString)
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown) => isNumber(value) && Number.isInteger(value) && value >= 0
const isList = (value: unknown) => Array.isArray(value) && value.length > 0
const isType = (value: unknown) => isString(value) && TYPES.has(value)

const SCHEMAS: Rule = [isObject, 'an object of schemas']
const LIST: Rule = [isList, 'a non-empty array of schemas']
export const COUNT: Rule = [isCount, 'a non-negative integer']
const NUMBER: Rule = [isNumber, 'a number']
const STRING: Rule = [isString, 'a string']

/** What the value of a keyword must be. Keywords whose value is a single schema are not listed. */
const RULES: Readonly<Record<string, Rule>> = {
  type: [
    (type) => (Array.isArray(type) ? type.length > 0 && type.every(isType) : isType(type)),
    `one of ${[...TYPES].join(', ')}, or a list of them`,
  ],
  enum: [Array.isArray, 'an array'],
  required: [isNames, 'an array of names'],
  uniqueItems: [(value) => typeof value === 'boolean', 'true or false'],
  pattern: [isString, 'a regular expression'],
  $ref: STRING,
  $dynamicRef: STRING,
  $anchor: STRING,
  $dynamicAnchor: STRING,
  $id: STRING,
  dependentRequired: [
    (value) => isObject(value) && Object.values(value).every(isNames),
    'an object of arrays of names',
  ],
  dependencies: [
    (value) =>
      isObject(value) &&
      Object.values(value).every((each) => !Array.isArray(each) || isNames(each)),
    'an object of schemas or arrays of names',
  ],
  multipleOf: [(value) => isNumber(value) && value > 0, 'a number greater than 0'],
  exclusiveMaximum: NUMBER,
  exclusiveMinimum: NUMBER,
  maximum: NUMBER,
  minimum: NUMBER,
  maxContains: COUNT,
  maxItems: COUNT,
  maxLength: COUNT,
  maxProperties: COUNT,
  minContains: COUNT,
  minItems: COUNT,
  minLength: COUNT,
  minProperties: COUNT,
  $defs: SCHEMAS,
  definitions: SCHEMAS,
  dependentSchemas: SCHEMAS,
  patternProperties: SCHEMAS,
  properties: SCHEMAS,
  allOf: LIST,
  anyOf: LIST,
  oneOf: LIST,
  prefixItems: LIST,
}

export interface LintOptions {
  /** Whether the cost of patterns must be bounded (default true). */
  patterns?: boolean
  /** Counts what patterns cost (default: a budget for this schema). */
  steps?: Steps
}

/** The problems of a schema, each beginning with its path. */
export function lint(
  schema: unknown,
  { patterns = true, steps = new Steps(schema) }: LintOptions = {},
): string[] {
  if (!isObject(schema)) return ['a JSON Schema must be an object']
  const { $schema: dialect } = schema
  if (dialect !== undefined && !isDialect(dialect)) {
    return [
      `$schema: ${JSON.stringify(dialect)} is not supported; use JSON Schema 2020-12 (the default) or draft-07`,
    ]
  }
  const shape = tooLarge(schema)
  if (shape !== undefined) return [shape]
  try {
    return problemsOf(schema, patterns, steps)
  } catch (error) {
    if (error instanceof RangeError) return ['too many references follow one another']
    throw error
  }
}

/** Checked first, because an object that contains itself would never end. */
function tooLarge(root: JsonSchema): string | undefined {
  const open: { schema: JsonSchema; path: string; depth: number }[] = [
    { schema: root, path: '', depth: 0 },
  ]
  let count = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { schema, path, depth } = next
    if (depth > MAX_DEPTH || ++count > MAX_SUBSCHEMAS)
      return `${path}: the schema is too large (at most ${MAX_DEPTH} levels and ${MAX_SUBSCHEMAS} parts)`
    for (const [place, part] of subschemas(schema))
      if (isObject(part)) open.push({ schema: part, path: joinPath(path, place), depth: depth + 1 })
  }
  return undefined
}

function joinPath(path: string, place: string): string {
  return path === '' ? place : `${path}/${place}`
}

function problemsOf(root: JsonSchema, patterns: boolean, steps: Steps): string[] {
  const index = new SchemaIndex(root)
  const problems: string[] = []
  const compiled = new Map<string, string | undefined>()
  const open: { schema: unknown; path: string }[] = [{ schema: root, path: '' }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { schema, path } = next
    if (typeof schema === 'boolean') continue
    if (!isObject(schema)) {
      problems.push(`${path}: a schema must be an object or a boolean`)
      continue
    }
    const report = (keyword: string, problem: string) =>
      problems.push(`${joinPath(path, keyword)}: ${problem}`)
    for (const [keyword, [holds, what]] of Object.entries(RULES))
      if (schema[keyword] !== undefined && !holds(schema[keyword]))
        report(keyword, `must be ${what}`)
    for (const [keyword, pattern] of patternsOf(schema)) {
      if (!compiled.has(pattern)) compiled.set(pattern, patternProblem(pattern, patterns, steps))
      const problem = compiled.get(pattern)
      if (problem !== undefined) report(keyword, problem)
    }
    for (const keyword of ['$ref', '$dynamicRef']) {
      const reference = schema[keyword]
      if (typeof reference === 'string' && index.resolve(reference, schema) === undefined)
        report(keyword, unresolved(reference))
    }
    const { type, items } = schema
    if (Array.isArray(type) && new Set(type).size < type.length)
      report('type', 'must not have the same type twice')
    if (Array.isArray(items) && !index.draft7)
      report('items', 'must be a schema; for a tuple use prefixItems, or "$schema" of draft-07')
    if (index.hasLongId(schema)) report('$id', `must be at most ${MAX_BASE} characters long`)
    for (const [place, part] of subschemas(schema))
      open.push({ schema: part, path: joinPath(path, place) })
  }
  const circular = circularReference(index)
  if (circular !== undefined)
    problems.push(
      `$ref: ${JSON.stringify(circular)} refers to itself, so validation would never end`,
    )
  return problems
}

/** Keywords that apply their subschemas to the same value. */
const IN_PLACE = /^(?:(?:allOf|anyOf|oneOf|dependentSchemas|dependencies)\/|(?:not|if|then|else)$)/

/** A reference that leads back to itself without descending into the value. */
function circularReference(index: SchemaIndex): string | undefined {
  const done = new Set<JsonSchema>()
  const under = new Set<JsonSchema>()
  const visit = (schema: unknown): string | undefined => {
    if (!isObject(schema) || done.has(schema)) return undefined
    const { $ref: reference } = schema
    under.add(schema)
    if (under.size > MAX_FOLLOWING) throw new RangeError()
    if (typeof reference === 'string') {
      const target = index.resolve(reference, schema)
      if (isObject(target) && under.has(target)) return reference
      const found = visit(target)
      if (found !== undefined) return found
    }
    // In draft-07 other keywords next to a $ref are ignored.
    if (typeof reference !== 'string' || !index.draft7) {
      for (const [place, part] of subschemas(schema)) {
        const found = IN_PLACE.test(place) ? visit(part) : undefined
        if (found !== undefined) return found
      }
    }
    under.delete(schema)
    done.add(schema)
    return undefined
  }
  for (const schema of index.all()) {
    const found = visit(schema)
    if (found !== undefined) return found
  }
  return undefined
}

function* patternsOf(schema: JsonSchema): Generator<[keyword: string, pattern: string]> {
  const { pattern, patternProperties } = schema
  if (typeof pattern === 'string') yield ['pattern', pattern]
  if (isObject(patternProperties))
    for (const name of Object.keys(patternProperties)) yield ['patternProperties', name]
}

function unresolved(reference: string): string {
  const written = JSON.stringify(reference)
  if (!reference.startsWith('#'))
    return `${written} points outside the schema, and nothing is fetched; put the target into $defs`
  return reference.startsWith('#/')
    ? `${written} does not exist in this schema`
    : `${written} is not an anchor of this schema`
}
