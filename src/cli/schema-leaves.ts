import { isObject } from '../jsonrpc/message.js'

/** A schema without references and alternatives, and with at most one type. */
export type Leaf = Readonly<Record<string, unknown>> & { readonly type?: unknown }

/** Limits for schemas that refer to themselves, or have very many alternatives. */
const MAX_DEPTH = 16
/** Members of all the schemas that are visited. */
const MAX_MEMBERS = 20_000

interface Search {
  readonly root: unknown
  /** Members that may still be visited. */
  left: number
}

/**
 * The alternatives of a schema: `$ref`, `anyOf`, `oneOf`, `allOf` and lists of types are resolved. Beyond the limits,
 * the rest is left out.
 */
export function leavesOf(schema: unknown, root: unknown): Leaf[] {
  return collect(schema, { root, left: MAX_MEMBERS }, 0)
}

function collect(schema: unknown, search: Search, depth: number): Leaf[] {
  if (depth > MAX_DEPTH || search.left <= 0) return []
  search.left -= sizeOf(schema)
  if (schema === true) return [{}]
  if (!isObject(schema)) return []
  const { $ref: reference, anyOf, oneOf, allOf, type, ...rest } = schema
  const next = (other: unknown) => collect(other, search, depth + 1)
  if (typeof reference === 'string') return next(referenced(reference, search.root))
  const choices = Array.isArray(anyOf) ? anyOf : oneOf
  const hasProperties = isObject(rest['properties'])
  if (Array.isArray(choices) && !hasProperties)
    return choices.flatMap((choice) =>
      next(isObject(choice) && type !== undefined ? { type, ...choice } : choice),
    )
  if (Array.isArray(allOf) && allOf.length > 0) {
    const parts = allOf.flatMap(next)
    return next(merged([{ ...rest, ...(type === undefined ? {} : { type }) }, ...parts]))
  }
  if (Array.isArray(type)) return type.map((each: unknown) => ({ ...rest, type: each }))
  return [type === undefined ? implied(rest) : { ...rest, type }]
}

/** The members of a schema that are copied for each alternative. */
function sizeOf(schema: unknown): number {
  if (!isObject(schema)) return 1
  const { properties, required, type } = schema
  const types = Array.isArray(type) ? type.length : 1
  const members = isObject(properties) ? Object.keys(properties).length : 0
  const names = Array.isArray(required) ? required.length : 0
  return 1 + Object.keys(schema).length * types + members + names
}

/** A schema without a type that has properties is meant for an object. */
function implied(schema: Leaf): Leaf {
  return isObject(schema['properties']) ? { ...schema, type: 'object' } : schema
}

function merged(parts: readonly Leaf[]): Leaf {
  const properties = parts.flatMap(({ properties: own }) =>
    isObject(own) ? Object.entries(own) : [],
  )
  const required = parts.flatMap(({ required: own }) => (Array.isArray(own) ? own : []))
  return {
    ...Object.assign({}, ...parts),
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
    ...(required.length === 0 ? {} : { required }),
  }
}

/** The schema at a reference within the same document. */
function referenced(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return undefined
  const path = reference.slice(1).split('/').slice(1)
  let found = root
  for (const part of path) {
    const key = decode(part).replaceAll('~1', '/').replaceAll('~0', '~')
    const isMember = (isObject(found) || Array.isArray(found)) && Object.hasOwn(found, key)
    if (!isMember) return undefined
    found = (found as Record<string, unknown>)[key] // an own member
  }
  return found
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The properties of an object schema, of all its alternatives. */
export function propertiesOf(schema: unknown, root: unknown): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const { properties } of leavesOf(schema, root)) {
    if (!isObject(properties)) continue
    for (const [name, property] of Object.entries(properties))
      if (!found.has(name)) found.set(name, property)
  }
  return found
}

/** The properties that every alternative requires. */
export function requiredOf(schema: unknown, root: unknown): string[] {
  const [first = [], ...others] = leavesOf(schema, root).map(({ required }) =>
    (Array.isArray(required) ? required : []).filter((name) => typeof name === 'string'),
  )
  return first.filter((name) => others.every((names) => names.includes(name)))
}

/** The schema of an item of an array. */
export function itemOf({ prefixItems, items }: Leaf, index: number): unknown {
  const own: unknown = Array.isArray(prefixItems) ? prefixItems[index] : undefined
  return own ?? items ?? true
}

/** The schema of a member that is not among the properties. */
export function additionalOf(schema: unknown, root: unknown): unknown {
  const found = leavesOf(schema, root).find(({ additionalProperties }) =>
    isObject(additionalProperties),
  )
  return found === undefined ? true : found['additionalProperties']
}
