import { type JsonSchema, type Outcome, describeValue, isRecord, listTypes, listValues, memberPath, sameJson } from './issue.js'
import { Findings, bounds, isOfType, numbers, strings, unique } from './assertions.js'
import { matches } from './pattern.js'
import { type AnySchema, SchemaIndex, isSchema } from './walk.js'

/*
 * The whole of JSON Schema 2020-12 and draft-07, for schemas that are not
 * everyday ones (`simple.ts`). It walks over schema and value together, makes no
 * code, fetches nothing, and matches patterns in linear time. `format` and
 * `default` are annotations: the value is checked, never changed.
 */

const indexes = new WeakMap<JsonSchema, SchemaIndex>()
/** How far schemas may be within each other, each applied to a part of the value: the stack has an end. */
const MAX_DEPTH = 2000
/** How much is told of why no form fits. */
const MAX_WORDS = 1000

export function check(schema: JsonSchema, value: unknown): Outcome {
  let index = indexes.get(schema)
  if (index === undefined) {
    index = new SchemaIndex(schema)
    indexes.set(schema, index)
  }
  try {
    const { issues } = new Walk(index).apply(schema, value, '')
    return issues.length === 0 ? { value } : { issues }
  } catch (error) {
    // Whether it was this limit or the stack's own: the value is at fault.
    if (error instanceof RangeError) return { issues: [{ path: '', message: 'is nested too deeply to be checked' }] }
    throw error
  }
}

/** The resources entered so far: where dynamic references look, and what following a reference from here has shown. */
class Scope {
  /** Outermost first. */
  readonly bases: readonly string[]
  readonly #inner = new Map<string, Scope>()
  readonly #followed = new Map<AnySchema, Map<object, Findings>>()

  constructor(bases: readonly string[] = []) {
    this.bases = bases
  }

  within(base: string): Scope {
    if (this.bases.includes(base)) return this
    let inner = this.#inner.get(base)
    if (inner === undefined) {
      inner = new Scope([...this.bases, base])
      this.#inner.set(base, inner)
    }
    return inner
  }

  /** What a schema has shown of each value that it was applied to. */
  shown(schema: AnySchema): Map<object, Findings> {
    let shown = this.#followed.get(schema)
    if (shown === undefined) {
      shown = new Map()
      this.#followed.set(schema, shown)
    }
    return shown
  }
}

/** Nothing wrong, and nothing more to tell. */
const FIT = new Findings()

class Walk {
  readonly #index: SchemaIndex
  #scope = new Scope()
  #depth = 0

  constructor(index: SchemaIndex) {
    this.#index = index
  }

  apply(schema: AnySchema, value: unknown, path: string): Findings {
    const found = new Findings()
    if (schema === true) return found
    if (schema === false) {
      found.add(path, 'is not allowed here')
      return found
    }
    if (++this.#depth > MAX_DEPTH) throw new RangeError('the value is too deep for its schema')
    const outer = this.#scope
    this.#scope = outer.within(this.#index.baseOf(schema))
    if (!this.#references(schema, value, path, found)) {
      this.#anyValue(schema, value, path, found)
      this.#logic(schema, value, path, found)
      if (typeof value === 'number') numbers(schema, value, path, found)
      if (typeof value === 'string') strings(schema, value, path, found)
      if (Array.isArray(value)) this.#array(schema, value, path, found)
      else if (isRecord(value)) this.#object(schema, value, path, found)
    }
    this.#scope = outer
    this.#depth--
    return found
  }

  /**
   * Applies what a reference leads to, to each part of a value once: in a schema of several forms that refer to
   * each other, every level of the value would double the work otherwise.
   */
  #follow(schema: AnySchema, value: unknown, path: string): Findings {
    if (typeof value !== 'object' || value === null) return this.apply(schema, value, path)
    const shown = this.#scope.shown(schema)
    const before = shown.get(value)
    if (before !== undefined) return before
    const found = this.apply(schema, value, path)
    shown.set(value, found.fit && !this.#index.unevaluated ? FIT : found)
    return found
  }

  /** Follows references. True where, as in draft-07, nothing beside one counts. */
  #references(schema: JsonSchema, value: unknown, path: string, found: Findings): boolean {
    const { $ref: reference, $dynamicRef: dynamic } = schema
    if (typeof reference === 'string') {
      found.join(this.#follow(this.#index.resolve(reference, schema) ?? false, value, path))
      if (this.#index.draft7) return true
    }
    if (typeof dynamic === 'string' && !this.#index.draft7) found.join(this.#follow(this.#dynamicTarget(dynamic, schema), value, path))
    return false
  }

  /** https://json-schema.org/draft/2020-12/json-schema-core#name-dynamic-references-with-dyn */
  #dynamicTarget(reference: string, schema: JsonSchema): AnySchema {
    const name = this.#index.dynamicName(reference, schema)
    if (name !== undefined) {
      for (const base of this.#scope.bases) {
        const target = this.#index.dynamicAnchor(base, name)
        if (target !== undefined) return target
      }
    }
    return this.#index.resolve(reference, schema) ?? false
  }

  #anyValue(schema: JsonSchema, value: unknown, path: string, found: Findings): void {
    const { type, enum: allowed, const: only } = schema
    if (type !== undefined) {
      const types: unknown[] = Array.isArray(type) ? type : [type]
      if (!types.some((each) => isOfType(each, value))) found.add(path, `must be ${listTypes(types)}, not ${describeValue(value)}`)
    }
    if (Array.isArray(allowed) && !allowed.some((each) => sameJson(each, value)))
      found.add(path, `must be ${listValues(allowed)}, not ${describeValue(value)}`)
    if ('const' in schema && !sameJson(only, value)) found.add(path, `must be ${listValues([only])}, not ${describeValue(value)}`)
  }

  #logic(schema: JsonSchema, value: unknown, path: string, found: Findings): void {
    const { allOf, anyOf, oneOf, not, if: condition } = schema
    for (const part of list(allOf)) found.join(this.apply(part, value, path))
    if (anyOf !== undefined) this.#alternatives(list(anyOf), value, path, found, false)
    if (oneOf !== undefined) this.#alternatives(list(oneOf), value, path, found, true)
    if (isSchema(not) && this.apply(not, value, path).fit) found.add(path, 'has a form that is excluded')
    if (!isSchema(condition)) return
    const tested = this.apply(condition, value, path)
    if (tested.fit) found.cover(tested)
    const consequence = schema[tested.fit ? 'then' : 'else']
    if (isSchema(consequence)) found.join(this.apply(consequence, value, path))
  }

  #alternatives(parts: readonly AnySchema[], value: unknown, path: string, found: Findings, exactly: boolean): void {
    const tried = parts.map((part) => this.apply(part, value, path))
    const fitting = tried.filter(({ fit }) => fit)
    for (const each of fitting) found.cover(each)
    if (fitting.length === 0) {
      const reasons = tried
        .slice(0, 4)
        .map(({ issues: [first] }) => (first === undefined ? '' : first.path === path ? first.message : `${first.path} ${first.message}`))
      // Forms within forms have reasons within reasons: at each level there might be twice as many words.
      const words = [...new Set(reasons)].join('; or ')
      const told = words.length > MAX_WORDS ? `${words.slice(0, MAX_WORDS)}…` : words
      found.add(path, `fits none of the ${parts.length} allowed forms (${told})`)
    } else if (exactly && fitting.length > 1) found.add(path, `fits ${fitting.length} of the forms, and must fit exactly one`)
  }

  #array(schema: JsonSchema, value: readonly unknown[], path: string, found: Findings): void {
    bounds(schema, 'Items', value.length, 'items', path, found)
    if (schema['uniqueItems'] === true) unique(value, path, found)
    const { draft7 } = this.#index
    const { items, additionalItems, prefixItems, unevaluatedItems } = schema
    const first = list(draft7 ? (Array.isArray(items) ? items : undefined) : prefixItems)
    const rest = draft7 && Array.isArray(items) ? additionalItems : items
    for (const [index, item] of value.entries()) {
      const part = first[index] ?? (isSchema(rest) ? rest : undefined)
      if (part === undefined) continue
      found.items.add(index)
      found.issues.push(...this.apply(part, item, `${path}[${index}]`).issues)
    }
    this.#contains(schema, value, path, found)
    if (draft7 || !isSchema(unevaluatedItems)) return
    for (const [index, item] of value.entries()) {
      if (!found.items.has(index)) found.issues.push(...this.apply(unevaluatedItems, item, `${path}[${index}]`).issues)
      found.items.add(index)
    }
  }

  #contains(schema: JsonSchema, value: readonly unknown[], path: string, found: Findings): void {
    const { contains, minContains, maxContains } = schema
    if (!isSchema(contains)) return
    let count = 0
    for (const [index, item] of value.entries()) {
      if (!this.apply(contains, item, path).fit) continue
      count++
      if (!this.#index.draft7) found.items.add(index)
    }
    const counted = !this.#index.draft7
    const least = counted && typeof minContains === 'number' ? minContains : 1
    const most = counted && typeof maxContains === 'number' ? maxContains : Infinity
    if (count < least) found.add(path, `must have at least ${least} items of the wanted form, not ${count}`)
    if (count > most) found.add(path, `must have at most ${most} items of the wanted form, not ${count}`)
  }

  #object(schema: JsonSchema, value: Record<string, unknown>, path: string, found: Findings): void {
    const names = Object.keys(value)
    bounds(schema, 'Properties', names.length, 'properties', path, found)
    for (const name of strs(schema['required'])) if (!Object.hasOwn(value, name)) found.add(memberPath(path, name), 'is required')
    const { properties, patternProperties, additionalProperties, propertyNames, unevaluatedProperties } = schema
    const known = isRecord(properties) ? properties : {}
    const patterns = isRecord(patternProperties) ? Object.entries(patternProperties) : []
    for (const name of names) {
      if (isSchema(propertyNames))
        for (const { message } of this.apply(propertyNames, name, '').issues)
          found.add(memberPath(path, name), `has a name that ${message}`)
      const parts = Object.hasOwn(known, name) ? [known[name]] : []
      for (const [pattern, part] of patterns) {
        const matching = matches(pattern, name)
        if (matching === undefined) found.add(path, `has a name that is too long to be compared with the pattern ${pattern}`)
        else if (matching) parts.push(part)
      }
      if (parts.length === 0 && isSchema(additionalProperties)) parts.push(additionalProperties)
      this.#member(parts, value[name], name, path, found)
    }
    this.#dependencies(schema, value, path, found)
    if (this.#index.draft7 || !isSchema(unevaluatedProperties)) return
    for (const name of names) if (!found.members.has(name)) this.#member([unevaluatedProperties], value[name], name, path, found)
  }

  #member(parts: readonly unknown[], value: unknown, name: string, path: string, found: Findings): void {
    for (const part of parts) {
      if (!isSchema(part)) continue
      found.members.add(name)
      found.issues.push(...this.apply(part, value, memberPath(path, name)).issues)
    }
  }

  #dependencies(schema: JsonSchema, value: Record<string, unknown>, path: string, found: Findings): void {
    for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies']) {
      const dependencies = schema[keyword]
      if (!isRecord(dependencies)) continue
      for (const [name, wanted] of Object.entries(dependencies)) {
        if (!Object.hasOwn(value, name)) continue
        if (isSchema(wanted)) found.join(this.apply(wanted, value, path))
        for (const other of strs(wanted)) if (!Object.hasOwn(value, other)) found.add(memberPath(path, other), `is required beside ${name}`)
      }
    }
  }
}

const list = (value: unknown): AnySchema[] => (Array.isArray(value) ? value.filter(isSchema) : [])
const strs = (value: unknown): string[] => (Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [])
