import { isObject } from '../jsonrpc/message.js'

/** A schema without references and alternatives, and with at most one type. */
export type Leaf = Readonly<Record<string, unknown>> & { readonly type?: unknown }

/** Limits for schemas that refer to themselves, or have very many alternatives. */
const MAX_DEPTH = 16
const MAX_LEAVES = 200

/** The alternatives of a schema: `$ref`, `anyOf`, `oneOf`, `allOf` and lists of types are resolved. */
export function leavesOf(schema: unknown, root: unknown): Leaf[] {
  const leaves: Leaf[] = []
  collect(schema, root, leaves, 0)
  return leaves
}

function collect(schema: unknown, root: unknown, leaves: Leaf[], depth: number): void {
  if (depth > MAX_DEPTH || leaves.length >= MAX_LEAVES) return
  if (schema === true) {
    leaves.push({})
    return
  }
  if (!isObject(schema)) return
  const { $ref: reference, anyOf, oneOf, allOf, type, ...rest } = schema
  const next = (other: unknown) => collect(other, root, leaves, depth + 1)
  if (typeof reference === 'string') return next(referenced(reference, root))
  const choices = Array.isArray(anyOf) ? anyOf : oneOf
  const hasProperties = isObject(rest['properties'])
  if (Array.isArray(choices) && !hasProperties)
    return choices.forEach((choice) =>
      next(isObject(choice) && type !== undefined ? { type, ...choice } : choice),
    )
  if (Array.isArray(allOf) && allOf.length > 0) {
    const parts = allOf.flatMap((part) => leavesOf(part, root))
    return next(merged([{ ...rest, ...(type === undefined ? {} : { type }) }, ...parts]))
  }
  if (Array.isArray(type)) return type.forEach((each) => leaves.push({ ...rest, type: each }))
  leaves.push(type === undefined ? implied(rest) : { ...rest, type })
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
