import { isObject } from '../is-object.js'
import {
  Issues,
  type JsonSchema,
  isDialect,
  listTypes,
  listValues,
  member,
  sizeOf,
  IS_REQUIRED,
  mustBe,
  unknownProperty,
} from './issue.js'
import { BOUNDS, checkSize, selector } from './assertions.js'

/*
 * Compiles common JSON Schemas to closures: objects with typed properties, enums, bounds, arrays. A small object is
 * validated in well under a microsecond. A schema that compiles is valid, because a keyword with a value of the wrong type
 * does not compile. All these keywords mean the same in draft-07 and 2020-12; a schema with any other keyword is left to
 * `json-schema.ts`.
 */

type Check = (value: unknown, issues: Issues) => void

/** Maximum size of a compiled schema. The steps are not counted: a validation is linear in the value. */
const MAX_DEPTH = 64
const MAX_PARTS = 1000

interface Remaining {
  levels: number
  parts: { left: number }
}

const ANNOTATIONS = new Set([
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'format',
  '$comment',
])
const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  // NaN and Infinity are not JSON numbers.
  number: Number.isFinite,
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
}

/** The closure for a schema, or undefined if it needs the full validator. */
export function compileSimple(
  schema: unknown,
  remaining: Remaining = { levels: MAX_DEPTH, parts: { left: MAX_PARTS } },
): Check | undefined {
  if (remaining.levels < 0 || remaining.parts.left-- <= 0) return undefined
  if (schema === true) return () => {}
  if (!isObject(schema)) return undefined
  for (const keyword of Object.keys(schema))
    if (!ANNOTATIONS.has(keyword) && !keyword.startsWith('x-') && !Object.hasOwn(KEYWORDS, keyword))
      return undefined
  const checks: Check[] = []
  let type: Check = () => {}
  for (const [keyword, make] of KEYWORD_ENTRIES) {
    if (!Object.hasOwn(schema, keyword)) continue
    const check = make(schema[keyword], schema, {
      levels: remaining.levels - 1,
      parts: remaining.parts,
    })
    if (check === undefined) return undefined
    if (keyword === 'type') type = check
    else checks.push(check)
  }
  if (checks.length === 0) return type
  return (value, issues) => {
    const before = issues.count
    type(value, issues)
    // For a value of the wrong type, other issues would only distract.
    if (issues.count > before) return
    for (const check of checks) check(value, issues)
  }
}

type Keyword = (value: unknown, schema: JsonSchema, remaining: Remaining) => Check | undefined

/** In the order in which `json-schema.ts` applies them. */
const KEYWORDS: Readonly<Record<string, Keyword>> = {
  $schema: (value) => (isDialect(value) ? () => {} : undefined),
  type: typeCheck,
  enum: enumCheck,
  const: (value) => enumCheck([value]),
  ...Object.fromEntries(BOUNDS.map(([keyword, ...rest]) => [keyword, bound(...rest)])),
  minLength: size('least', 'characters'),
  maxLength: size('most', 'characters'),
  minItems: size('least', 'items'),
  maxItems: size('most', 'items'),
  items: itemsCheck,
  minProperties: size('least', 'properties'),
  maxProperties: size('most', 'properties'),
  properties: propertiesCheck,
  required: requiredCheck,
  additionalProperties: additionalCheck,
}
const KEYWORD_ENTRIES = Object.entries(KEYWORDS)

function typeCheck(value: unknown): Check | undefined {
  const names: unknown[] = Array.isArray(value) ? value : [value]
  const tests: ((value: unknown) => boolean)[] = []
  if (names.length === 0 || new Set(names).size < names.length) return undefined
  for (const name of names) {
    const test = typeof name === 'string' && Object.hasOwn(TYPES, name) ? TYPES[name] : undefined
    if (test === undefined) return undefined
    tests.push(test)
  }
  const expected = listTypes(names)
  return (given, issues) => {
    for (const test of tests) if (test(given)) return
    issues.add(mustBe(expected, given))
  }
}

function enumCheck(value: unknown): Check | undefined {
  if (!Array.isArray(value) || value.some((item) => typeof item === 'object' && item !== null))
    return undefined
  const allowed = new Set<unknown>(value)
  const expected = listValues(value)
  return (given, issues) => {
    if (!allowed.has(given)) issues.add(mustBe(expected, given))
  }
}

function propertiesCheck(value: unknown, _: JsonSchema, remaining: Remaining): Check | undefined {
  if (!isObject(value)) return undefined
  const checks: [string, Check][] = []
  for (const name of Object.keys(value)) {
    const check = compileSimple(value[name], remaining)
    if (check === undefined) return undefined
    checks.push([name, check])
  }
  const select = selector(checks)
  return (given, issues) => {
    if (!isObject(given)) return
    for (const [name, check] of select === undefined ? checks : select(Object.keys(given)))
      if (Object.hasOwn(given, name)) checkPart(check, given[name], name, issues)
  }
}

function checkPart(check: Check, value: unknown, step: string | number, issues: Issues): void {
  const before = issues.count
  check(value, issues)
  if (issues.count > before) issues.prefix(before, step)
}

function requiredCheck(value: unknown): Check | undefined {
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string')) return undefined
  const names = new Set<string>(value)
  return (given, issues) => {
    if (!isObject(given)) return
    for (const name of names) {
      if (issues.full) return
      if (!Object.hasOwn(given, name)) issues.add(IS_REQUIRED, member(name))
    }
  }
}

function additionalCheck(
  value: unknown,
  schema: JsonSchema,
  remaining: Remaining,
): Check | undefined {
  const known = new Set(isObject(schema['properties']) ? Object.keys(schema['properties']) : [])
  const check = value === false ? undefined : compileSimple(value, remaining)
  if (value !== false && check === undefined) return undefined
  const message = unknownProperty([...known])
  const reject: Check = (_, issues) => issues.add(message)
  return (given, issues) => {
    if (!isObject(given)) return
    for (const name of Object.keys(given)) {
      if (!known.has(name)) checkPart(check ?? reject, given[name], name, issues)
      if (issues.full) return
    }
  }
}

function itemsCheck(value: unknown, _: JsonSchema, remaining: Remaining): Check | undefined {
  if (Array.isArray(value)) return undefined
  const check = compileSimple(value, remaining)
  if (check === undefined) return undefined
  return (given, issues) => {
    if (!Array.isArray(given)) return
    for (let index = 0; index < given.length && !issues.full; index++)
      checkPart(check, given[index], index, issues)
  }
}

function bound(holds: (value: number, limit: number) => boolean, words: string): Keyword {
  return (limit) => {
    if (typeof limit !== 'number' || !Number.isFinite(limit)) return undefined
    return (given, issues) => {
      if (typeof given === 'number' && !holds(given, limit))
        issues.add(mustBe(`${words} ${limit}`, given))
    }
  }
}

type Unit = 'characters' | 'items' | 'properties'

function size(which: 'least' | 'most', unit: Unit): Keyword {
  return (limit) => {
    if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 0) return undefined
    return (given, issues) => {
      const length = sizeIn(unit, given)
      if (length !== undefined) checkSize(length, which, limit, unit, issues)
    }
  }
}

function sizeIn(unit: Unit, value: unknown): number | undefined {
  if (unit === 'characters') return typeof value === 'string' ? sizeOf(value) : undefined
  if (unit === 'items') return Array.isArray(value) ? value.length : undefined
  return isObject(value) ? Object.keys(value).length : undefined
}
