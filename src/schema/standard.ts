import {
  Issues,
  type JsonSchema,
  MAX_ISSUES,
  type Outcome,
  clip,
  isRecord,
  member,
  shownPath,
} from './issue.js'
import { type HeaderParameter, headerParameters } from './headers.js'
import { check as checkFully } from './json-schema.js'
import { lint } from './lint.js'
import { notJsonSchema, withoutJsonSchema } from './vendor.js'
import { compileSimple } from './simple.js'

/** A schema library's own schema, by the common interface of https://standardschema.dev */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: {
      readonly input: (options: { target: string }) => Record<string, unknown>
      readonly output: (options: { target: string }) => Record<string, unknown>
    }
  }
}
type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly PathSegment[] | undefined
      }[]
    }
type PathSegment = PropertyKey | { readonly key: PropertyKey }

/** A schema of zod, valibot, arktype or any other Standard Schema library, or a plain JSON Schema. */
export type Schema = StandardSchema | JsonSchema

/** A schema that is ready for use: what clients are shown, and how values are checked. */
export interface Checker {
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
 * The JSON Schema that stands for a schema, on the side of a value before
 * (`input`) or after (`output`) it was checked. Throws with advice where a
 * library cannot say.
 */
function toJsonSchema(schema: Schema, side: 'input' | 'output'): JsonSchema {
  if (!isStandard(schema)) {
    // What has a type in words is a JSON Schema.
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
      `cannot be shown as a JSON Schema: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
  if (!isThenable(json)) return json as JsonSchema // looked at by `checker`
  // Nobody waits for it: where it rejects, that must not end the process.
  Promise.resolve(json).catch(() => {})
  throw new TypeError(
    `is of ${schema['~standard'].vendor}, which gives a promise of a JSON Schema; it must be there at once`,
  )
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isRecord(value) && typeof value['then'] === 'function'
}

/** The parameters that an input schema has clients mirror into headers; throws where they would refuse that. */
export function headersOf(json: JsonSchema): readonly HeaderParameter[] {
  return JSON.stringify(json).includes('"x-mcp-header"') ? headerParameters(json) : []
}

/** Makes a schema ready; throws what is wrong with it. */
export function checker(schema: Schema, side: 'input' | 'output'): Checker {
  const json = toJsonSchema(schema, side)
  if (!isRecord(json)) throw new TypeError('is not valid: a JSON Schema must be an object')
  const simple = compileSimple(json)
  // What compiles has no faults; of anything else, they are looked for. How fast
  // a library's own patterns are is its own affair.
  const [problem] = simple === undefined ? lint(json, { patterns: !isStandard(schema) }) : []
  if (problem !== undefined) throw new TypeError(`is not valid: ${problem}`)
  if (isStandard(schema)) return { json, check: (value) => checkStandard(schema, value) }
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

function checkStandard(schema: StandardSchema, value: unknown): Outcome | Promise<Outcome> {
  const result = schema['~standard'].validate(value)
  // A promise of whatever make, not just the runtime's own.
  return 'then' in result
    ? Promise.resolve(result).then((later) => outcomeOf(later, value))
    : outcomeOf(result, value)
}

function outcomeOf(result: StandardResult<unknown>, value: unknown): Outcome {
  if (result.issues === undefined) return { value: result.value }
  const first = result.issues.slice(0, MAX_ISSUES + 1)
  return {
    issues: first.map(({ message, path = [] }) => {
      const place = pathOf(path, value)
      // Some libraries begin their messages with the path themselves.
      return {
        path: clip(place),
        message: clip(
          place !== '' && message.startsWith(`${place} `)
            ? message.slice(place.length + 1)
            : message,
        ),
      }
    }),
  }
}

/** A path in words. Whether `"0"` is an index only the value can tell; a number is one. */
function pathOf(segments: readonly PathSegment[], root: unknown): string {
  let path = ''
  let value = root
  for (const segment of segments) {
    const key = typeof segment === 'object' ? segment.key : segment
    path +=
      Array.isArray(value) || typeof key === 'number' ? `[${String(key)}]` : member(String(key))
    if (Array.isArray(value)) value = (value as unknown[])[Number(key)]
    else value = isRecord(value) ? value[String(key)] : undefined
  }
  return shownPath(path)
}

export { type Issue, type JsonSchema, type Outcome, MAX_ISSUES, describeIssues } from './issue.js'
