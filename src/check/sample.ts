import { type JsonSchema, isObject } from '../schema/issue.js'
import { check } from '../schema/json-schema.js'
import { lint } from '../schema/lint.js'

const MAX_DEPTH = 8

/** Minimal arguments that an input schema allows; undefined if none were found. */
export function sampleArguments(schema: unknown): Record<string, unknown> | undefined {
  if (!isObject(schema) || lint(schema).length > 0) return undefined
  const sample = sampleOf(schema, 0)
  if (!isObject(sample) || check(schema, sample).issues !== undefined) return undefined
  return sample
}

function sampleOf(schema: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return 'x'
  const { const: constant, default: value, enum: values, examples, anyOf, oneOf } = schema
  if (constant !== undefined) return constant
  if (value !== undefined) return value
  for (const list of [values, examples]) if (Array.isArray(list) && list.length > 0) return list[0]
  for (const list of [anyOf, oneOf]) if (Array.isArray(list)) return sampleOf(list[0], depth + 1)
  return sampleOfType(schema, depth)
}

function sampleOfType(schema: JsonSchema, depth: number): unknown {
  const { type, minimum, minLength, minItems, items, properties, required } = schema
  const [first] = Array.isArray(type) ? (type as unknown[]) : [type]
  switch (first) {
    case 'object': {
      const names: unknown[] = Array.isArray(required) ? required : []
      const parts = isObject(properties) ? properties : {}
      return Object.fromEntries(
        names.map((name) => [String(name), sampleOf(parts[String(name)], depth + 1)]),
      )
    }
    case 'array': {
      const count = typeof minItems === 'number' ? Math.min(minItems, 10) : 0
      return Array.from({ length: count }, () => sampleOf(items, depth + 1))
    }
    case 'number':
    case 'integer':
      return typeof minimum === 'number' ? Math.ceil(minimum) : 1
    case 'boolean':
      return false
    case 'null':
      return null
    default:
      return 'x'.repeat(typeof minLength === 'number' ? Math.min(Math.max(minLength, 1), 1000) : 1)
  }
}
