import { isObject } from '../is-object.js'
import { type Named, selector } from './assertions.js'
import type { JsonSchema } from './issue.js'
import type { Steps } from './steps.js'

/** Keywords whose value is a schema, a list of them, or a map of them. */
const SCHEMA = [
  'additionalItems',
  'additionalProperties',
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
const SCHEMA_LIST = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
const SCHEMA_MAP = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties']

/** The direct subschemas of a schema with their paths; includes invalid ones, which `lint` reports. */
export function* subschemas(schema: JsonSchema): Generator<[place: string, part: unknown]> {
  for (const keyword of SCHEMA) {
    const part = schema[keyword]
    if (keyword === 'items' && Array.isArray(part)) yield* listed(keyword, part)
    else if (part !== undefined) yield [keyword, part]
  }
  for (const keyword of SCHEMA_LIST) {
    const parts = schema[keyword]
    if (Array.isArray(parts)) yield* listed(keyword, parts)
  }
  for (const keyword of SCHEMA_MAP) {
    const parts = schema[keyword]
    if (isObject(parts))
      for (const name of Object.keys(parts)) yield [`${keyword}/${name}`, parts[name]]
  }
  // In draft-07 a dependency is a schema or a list of names.
  const { dependencies } = schema
  if (isObject(dependencies)) {
    for (const name of Object.keys(dependencies))
      if (!Array.isArray(dependencies[name])) yield [`dependencies/${name}`, dependencies[name]]
  }
}

function* listed(keyword: string, parts: readonly unknown[]): Generator<[string, unknown]> {
  for (const [index, part] of parts.entries()) yield [`${keyword}/${index}`, part]
}

/** Any schema, including `true` and `false`. */
export type AnySchema = JsonSchema | boolean

export function isSchema(value: unknown): value is AnySchema {
  return typeof value === 'boolean' || isObject(value)
}

export function schemasOf(value: unknown, steps: Steps): AnySchema[] {
  return itemsOf(value, steps).filter(isSchema)
}

export function stringsOf(value: unknown, steps: Steps): string[] {
  return itemsOf(value, steps).filter((each) => typeof each === 'string')
}

function itemsOf(value: unknown, steps: Steps): unknown[] {
  if (!Array.isArray(value)) return []
  steps.spend(value.length)
  return value
}

const NO_BASE = 'schema:/'
/** Maximum characters of a base URI, against which each reference is resolved. */
export const MAX_BASE = 1000
/** Places of schemas that are applied only by reference. */
const NOT_APPLIED = /^(?:\$defs|definitions)\/|^contentSchema$/

interface DynamicTarget {
  /** The dynamic anchor that is pointed to, if it is one: then the outermost anchor of that name is the target. */
  name: string | undefined
  otherwise: AnySchema
}

/** Resolves references within one schema (`$id`, `$anchor`, JSON pointers). Nothing outside the schema is ever fetched. */
export class SchemaIndex {
  readonly root: JsonSchema
  readonly draft7: boolean
  readonly #bases = new Map<JsonSchema, string>()
  readonly #resources = new Map<string, JsonSchema>()
  readonly #anchors = new Map<string, JsonSchema>()
  readonly #dynamic = new Set<string>()
  /** The names of the dynamic anchors of each resource. */
  readonly #dynamicNames = new Map<string, string[]>()
  readonly #tooLong = new Set<JsonSchema>()
  readonly #targets = new Map<JsonSchema, AnySchema>()
  readonly #properties = new Map<JsonSchema, (value: object, steps: Steps) => Named<unknown>>()
  readonly #dynamicTargets = new Map<JsonSchema, DynamicTarget>()
  readonly #shared = new Set<JsonSchema>()

  constructor(root: JsonSchema) {
    this.root = root
    this.draft7 = typeof root['$schema'] === 'string' && root['$schema'].includes('draft-07')
    this.#resources.set(NO_BASE, root)
    const open: [JsonSchema, string][] = [[root, NO_BASE]]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [schema, outer] = next
      if (this.#bases.has(schema)) continue
      const base = this.#name(schema, outer)
      this.#bases.set(schema, base)
      for (const [, part] of subschemas(schema)) if (isObject(part)) open.push([part, base])
    }
    this.#findShared()
  }

  /** Finds the schemas that can be reached in more than one way. */
  #findShared(): void {
    const reached = new Set<JsonSchema>()
    const reach = (schema: unknown) => {
      if (!isObject(schema)) return
      if (reached.has(schema)) this.#shared.add(schema)
      reached.add(schema)
    }
    for (const schema of this.#bases.keys()) {
      for (const [place, part] of subschemas(schema)) if (!NOT_APPLIED.test(place)) reach(part)
      const { $ref: reference, $dynamicAnchor: dynamic } = schema
      if (typeof reference === 'string') reach(this.target(schema, reference))
      // How often it is reached depends on the dynamic scope.
      if (typeof dynamic === 'string') this.#shared.add(schema)
    }
  }

  /** Registers the `$id` and anchors of a schema; returns the base URI of its subschemas. */
  #name(schema: JsonSchema, outer: string): string {
    const { $id: id, $anchor: anchor, $dynamicAnchor: dynamic, $ref: reference } = schema
    let base = outer
    // In draft-07 keywords next to a $ref are ignored, and an anchor is an $id that begins with #.
    if (typeof id === 'string' && !(this.draft7 && reference !== undefined)) {
      const whole = absolute(id, outer)
      if (this.draft7 && id.startsWith('#')) this.#anchors.set(whole, schema)
      else if (whole.length > MAX_BASE) this.#tooLong.add(schema)
      else {
        base = whole.replace(/#.*$/s, '')
        this.#resources.set(base, schema)
      }
    }
    if (typeof anchor === 'string') this.#anchors.set(`${base}#${anchor}`, schema)
    if (typeof dynamic === 'string') {
      this.#anchors.set(`${base}#${dynamic}`, schema)
      this.#dynamic.add(`${base}#${dynamic}`)
      const names = this.#dynamicNames.get(base)
      if (names === undefined) this.#dynamicNames.set(base, [dynamic])
      else names.push(dynamic)
    }
    return base
  }

  /** Whether the `$id` of a schema is ignored, because it makes a base URI that is too long. */
  hasLongId(schema: JsonSchema): boolean {
    return this.#tooLong.has(schema)
  }

  all(): Iterable<JsonSchema> {
    return this.#bases.keys()
  }

  baseOf(schema: JsonSchema): string {
    return this.#bases.get(schema) ?? NO_BASE
  }

  /** The target of a schema's $ref; `false`, which rejects any value, if there is none. */
  target(schema: JsonSchema, reference: string): AnySchema {
    let target = this.#targets.get(schema)
    if (target === undefined) {
      target = this.resolve(reference, schema) ?? false
      this.#targets.set(schema, target)
    }
    return target
  }

  /** Selects the `properties` of a schema that a value may have. */
  propertiesOf(schema: JsonSchema): (value: object, steps: Steps) => Named<unknown> {
    let found = this.#properties.get(schema)
    if (found === undefined) {
      const { properties } = schema
      const all = isObject(properties) ? Object.entries(properties) : []
      const select = selector(all)
      found = select === undefined ? () => all : (value, steps) => select(steps.namesOf(value))
      this.#properties.set(schema, found)
    }
    return found
  }

  /** Whether a schema may be applied to the same part of a value several times. Schemas within unknown keywords are not indexed, so for them it is assumed. */
  isShared(schema: JsonSchema): boolean {
    return this.#shared.has(schema) || !this.#bases.has(schema)
  }

  dynamicNames(base: string): readonly string[] {
    return this.#dynamicNames.get(base) ?? []
  }

  /** The target of a reference; undefined if it is outside the schema or does not exist. */
  resolve(reference: string, from: JsonSchema): AnySchema | undefined {
    const [base = '', fragment = ''] = absolute(reference, this.baseOf(from)).split('#', 2)
    const anchored = this.#anchors.get(`${base}#${fragment}`)
    if (anchored !== undefined) return anchored
    const resource = this.#resources.get(base)
    if (resource === undefined || fragment === '') return resource
    return fragment.startsWith('/') ? pointed(resource, fragment) : undefined
  }

  /** The target of a schema's $dynamicRef. */
  dynamicTarget(schema: JsonSchema, reference: string): DynamicTarget {
    let found = this.#dynamicTargets.get(schema)
    if (found === undefined) {
      const whole = absolute(reference, this.baseOf(schema))
      const name = this.#dynamic.has(whole) ? whole.split('#', 2)[1] : undefined
      found = { name, otherwise: this.resolve(reference, schema) ?? false }
      this.#dynamicTargets.set(schema, found)
    }
    return found
  }

  dynamicAnchor(base: string, name: string): JsonSchema | undefined {
    return this.#dynamic.has(`${base}#${name}`) ? this.#anchors.get(`${base}#${name}`) : undefined
  }
}

function absolute(reference: string, base: string): string {
  if (reference.startsWith('#')) return base + reference
  try {
    return new URL(reference, base).href
  } catch {
    return reference
  }
}

/** Resolves a JSON pointer; undefined unless the target is a schema. */
function pointed(root: unknown, pointer: string): AnySchema | undefined {
  let target: unknown = root
  for (const segment of pointer.split('/').slice(1)) {
    const name = decoded(segment).replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(target))
      target = /^(?:0|[1-9]\d*)$/.test(name) ? (target as unknown[])[Number(name)] : undefined
    else target = isObject(target) && Object.hasOwn(target, name) ? target[name] : undefined
  }
  return isSchema(target) ? target : undefined
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
