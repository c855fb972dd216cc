import { isObject } from '../is-object.js'
import {
  type Issue,
  Issues,
  type JsonSchema,
  MAX_ISSUES,
  type Outcome,
  shorten,
  member,
  shownPath,
  IS_REQUIRED,
} from './issue.js'
import { type HeaderParameter, headerParameters } from './headers.js'
import { check as checkFully } from './json-schema.js'
import { lint } from './lint.js'
import { notJsonSchema, withoutJsonSchema } from './vendor.js'
import { compileSimple } from './simple.js'
import type { LibraryIssue, StandardResult, StandardSchema } from './standard-schema.js'
import { validateOf } from './zod.js'

/** A schema of zod, valibot, arktype or any other Standard Schema library, or a plain JSON Schema. */
export type Schema = StandardSchema | JsonSchema

/** A prepared schema: the JSON Schema for clients, and a function that validates values. */
export interface Validator {
  json: JsonSchema
  check(value: unknown): Outcome | Promise<Outcome>
}

function isStandard(schema: unknown): schema is StandardSchema {
  return (
    (typeof schema === 'object' || typeof schema === 'function') &&
    schema !== null &&
    '~standard' in schema
  )
}

/**
 * The JSON Schema of a schema, for values before (`input`) or after (`output`) the library's own conversions. Throws with
 * advice if the library cannot provide it.
 */
function toJsonSchema(schema: Schema, side: 'input' | 'output'): JsonSchema {
  if (!isStandard(schema)) {
    // An object with a string as its `type` is a JSON Schema.
    const problem = typeof schema?.['type'] === 'string' ? undefined : notJsonSchema(schema)
    if (problem !== undefined) throw new TypeError(problem)
    return schema
  }
  const { jsonSchema } = schema['~standard']
  if (jsonSchema === undefined) throw new TypeError(withoutJsonSchema(schema))
  let json: unknown
  try {
    json = jsonSchema[side]({ target: 'draft-2020-12' })
  } catch (error) {
    throw new TypeError(
      `cannot be converted to JSON Schema: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
  // Otherwise it is checked by `checker`.
  if (!isObject(json) || typeof json['then'] !== 'function') return json as JsonSchema
  // The promise is not awaited: its rejection must not end the process.
  Promise.resolve(json).catch(() => {})
  throw new TypeError(
    `comes from ${schema['~standard'].vendor}, which returns its JSON Schema as a promise; it must be available synchronously`,
  )
}

/** The parameters of an input schema that clients repeat in HTTP headers; throws for an invalid annotation. */
export function headersOf(json: JsonSchema): readonly HeaderParameter[] {
  return JSON.stringify(json).includes('"x-mcp-header"') ? headerParameters(json) : []
}

/** Prepares a schema; throws if it is invalid. */
export function checker(schema: Schema, side: 'input' | 'output'): Validator {
  const json = toJsonSchema(schema, side)
  if (!isObject(json)) throw new TypeError('is not valid: a JSON Schema must be an object')
  const simple = compileSimple(json)
  // A schema that compiles is valid. The patterns of a library are not checked for cost: it matches them itself.
  const [problem] = simple === undefined ? lint(json, { patterns: !isStandard(schema) }) : []
  if (problem !== undefined) throw new TypeError(`is not valid: ${problem}`)
  if (isStandard(schema)) return { json, check: checkOf(schema) }
  if (simple === undefined) return { json, check: (value) => checkFully(json, value) }
  return {
    json,
    check(value) {
      const issues = new Issues()
      simple(value, issues)
      return issues.count === 0 ? { value } : { issues: issues.result() }
    },
  }
}

/** The check of values by a schema that is not shown to anyone: a library need not provide a JSON Schema. */
export function validator(schema: Schema): Validator['check'] {
  return isStandard(schema) ? checkOf(schema) : checker(schema, 'output').check
}

function checkOf(schema: StandardSchema): Validator['check'] {
  const validate = validateOf(schema)
  return (value) => {
    const result = validate(value)
    // Any thenable, not only a native promise.
    return 'then' in result
      ? Promise.resolve(result).then((later) => outcomeOf(later, value))
      : outcomeOf(result, value)
  }
}

function outcomeOf(result: StandardResult<unknown>, value: unknown): Outcome {
  if (result.issues === undefined) return { value: result.value }
  return {
    issues: result.issues.slice(0, MAX_ISSUES + 1).map((issue) => readIssue(issue, value)),
  }
}

/** The texts of libraries for a member that is missing, such as "expected string, received undefined". */
const MISSING = /^(?:Required$|Invalid )|\bundefined\b|\bmissing\b/

/** An issue of a library in the words of our own. */
function readIssue({ path = [], message, code }: LibraryIssue, root: unknown): Issue {
  let place = ''
  let value = root
  let isMissing = false
  for (const segment of path) {
    const key = typeof segment === 'object' ? segment.key : segment
    const name = String(key)
    // A number is an index; for "0" the value decides.
    place += Array.isArray(value) || typeof key === 'number' ? `[${name}]` : member(name)
    isMissing = isObject(value)
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string, unknown>)[name] // own
        : undefined
    isMissing &&= value === undefined
  }
  place = shownPath(place)
  // What a refinement says is never about the type.
  if (isMissing && code !== 'custom' && MISSING.test(message)) message = IS_REQUIRED
  // Some libraries begin the message with the path.
  else if (place !== '' && message.startsWith(`${place} `))
    message = message.slice(place.length + 1)
  return { path: shorten(place), message: shorten(message) }
}

export type { StandardSchema }
export { type Issue, type JsonSchema, type Outcome, MAX_ISSUES, describeIssues } from './issue.js'
