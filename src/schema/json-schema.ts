import { isObject } from '../is-object.js'
import {
  Issues,
  type JsonSchema,
  type Outcome,
  shorten,
  describeIssue,
  member,
  shownPath,
  IS_REQUIRED,
  unknownProperty,
} from './issue.js'
import {
  Identities,
  checkBounds,
  checkNumber,
  checkSize,
  checkString,
  checkUnique,
  checkEnum,
  checkType,
  keysOf,
} from './assertions.js'
import { matches } from './pattern.js'
import { EvaluatedParts, Scope, type CachedResult, VALID, isEnough } from './dynamic-scope.js'
import { type AnySchema, SchemaIndex, isSchema, schemasOf, stringsOf } from './schema-index.js'
import { Steps, validationError } from './steps.js'

/*
 * A complete validator for JSON Schema 2020-12 and draft-07, for schemas that `simple.ts` does not compile. It interprets
 * the schema recursively, generates no code, fetches nothing, and matches patterns in linear time. `format` and `default`
 * are annotations: the value is validated, never changed.
 */

const indexes = new WeakMap<JsonSchema, SchemaIndex>()
/** Maximum depth of the recursion, which is limited by the stack. */
const MAX_DEPTH = 2000
const DEPENDENCIES = ['dependentRequired', 'dependentSchemas', 'dependencies']
/** The steps that a schema counts for each time it is applied. */
const APPLY_STEPS = 16

export function check(schema: JsonSchema, value: unknown, steps = new Steps(value)): Outcome {
  let index = indexes.get(schema)
  if (index === undefined) {
    // A copy in which each subschema is a distinct object: the index counts how often each one is referenced.
    index = new SchemaIndex(JSON.parse(JSON.stringify(schema)) as JsonSchema)
    indexes.set(schema, index)
  }
  const issues = new Issues()
  try {
    new Walk(index, steps).apply(index.root, value, issues, undefined)
  } catch (error) {
    return { issues: [{ path: '', message: validationError(error) }] }
  }
  return issues.count === 0 ? { value } : { issues: issues.result() }
}

class Walk {
  readonly #index: SchemaIndex
  readonly #steps: Steps
  readonly #identities: Identities
  #scope: Scope
  #depth = 0
  /** The number of the current location in the value, and the highest number so far. */
  #place = 0
  #places = 0

  constructor(index: SchemaIndex, steps: Steps) {
    this.#index = index
    this.#steps = steps
    this.#identities = new Identities(steps)
    this.#scope = new Scope(index, steps)
  }

  /** Applies a schema to a value. If `outer` is given, adds to it which members and items were evaluated. */
  apply(
    schema: AnySchema,
    value: unknown,
    issues: Issues,
    outer: EvaluatedParts | undefined,
  ): void {
    if (schema === true || issues.full) return
    if (schema === false) return issues.add('is not allowed here')
    if (++this.#depth > MAX_DEPTH) throw new RangeError()
    this.#steps.spend(APPLY_STEPS)
    const scope = this.#scope
    this.#scope = scope.enter(this.#index.baseOf(schema))
    // `unevaluated…` sees what its own schema object and subschemas have evaluated, not what sibling schemas have.
    const evaluated =
      !this.#index.draft7 && ('unevaluatedProperties' in schema || 'unevaluatedItems' in schema)
        ? new EvaluatedParts()
        : outer
    // For a value of the wrong type, other issues would only distract.
    if (
      !this.#references(schema, value, issues, evaluated) &&
      checkType(schema['type'], value, issues, this.#steps)
    ) {
      if (Array.isArray(schema['enum'])) checkEnum(schema['enum'], value, issues, this.#steps)
      if ('const' in schema) checkEnum([schema['const']], value, issues, this.#steps)
      this.#logic(schema, value, issues, evaluated)
      if (typeof value === 'number') checkNumber(schema, value, issues, this.#steps)
      if (typeof value === 'string') {
        this.#steps.spend(value.length / 8)
        checkString(schema, value, issues, this.#steps)
      }
      if (Array.isArray(value)) this.#array(schema, value, issues, evaluated)
      else if (isObject(value)) this.#object(schema, value, issues, evaluated)
    }
    if (evaluated !== undefined && evaluated !== outer) outer?.addAll(evaluated)
    this.#scope = scope
    this.#depth--
  }

  /** Applies a schema to a member or an item of the value. */
  #part(schema: AnySchema, value: unknown, step: string | number, issues: Issues): void {
    const before = issues.count
    const place = this.#place
    this.#place = ++this.#places
    this.apply(schema, value, issues, undefined)
    this.#place = place
    if (issues.count > before) issues.prefix(before, step)
  }

  /** Tries a schema (`anyOf`, `not`, `if`): stops at the first issue. */
  #try(schema: AnySchema, value: unknown, evaluated?: EvaluatedParts): Issues {
    const issues = new Issues(1)
    const own = evaluated && new EvaluatedParts()
    this.apply(schema, value, issues, own)
    if (issues.count === 0 && own !== undefined) evaluated?.addAll(own)
    return issues
  }

  /**
   * Applies the target of a reference. If several references have the same target, it is applied only once to each part
   * of the value: alternatives that refer to each other would otherwise double the work at every level.
   */
  #follow(
    schema: AnySchema,
    value: unknown,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    if (typeof schema === 'boolean' || !this.#index.isShared(schema))
      return this.apply(schema, value, issues, evaluated)
    const result = this.#cachedResult(schema, value, issues.limit, evaluated !== undefined)
    issues.addAll(result.issues)
    if (result.evaluated !== undefined) evaluated?.addAll(result.evaluated)
  }

  #cachedResult(
    schema: JsonSchema,
    value: unknown,
    limit: number,
    withParts: boolean,
  ): CachedResult {
    const known = this.#scope.resultsOf(schema)
    const isContainer = typeof value === 'object' && value !== null
    // There may be millions of primitive values: only the result for the current location is cached.
    const last = known.ofPrimitive?.place === this.#place ? known.ofPrimitive.result : undefined
    const before = isContainer ? known.ofContainers.get(value) : last
    if (before !== undefined && isEnough(before, limit, withParts)) return before
    const issues = new Issues(limit)
    const evaluated = withParts ? new EvaluatedParts() : undefined
    this.apply(schema, value, issues, evaluated)
    const result = issues.count === 0 && evaluated === undefined ? VALID : { issues, evaluated }
    if (isContainer) known.ofContainers.set(value, result)
    else known.ofPrimitive = { place: this.#place, result }
    return result
  }

  /** Follows references. Returns true if other keywords are ignored: those next to a `$ref` in draft-07. */
  #references(
    schema: JsonSchema,
    value: unknown,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): boolean {
    const { $ref: reference, $dynamicRef: dynamic } = schema
    if (typeof reference === 'string') {
      this.#follow(this.#index.target(schema, reference), value, issues, evaluated)
      if (this.#index.draft7) return true
    }
    if (typeof dynamic === 'string' && !this.#index.draft7) {
      const { name, otherwise } = this.#index.dynamicTarget(schema, dynamic)
      const outermost = name === undefined ? undefined : this.#scope.anchor(name)
      this.#follow(outermost ?? otherwise, value, issues, evaluated)
    }
    return false
  }

  #logic(
    schema: JsonSchema,
    value: unknown,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    const { allOf, anyOf, oneOf, not, if: condition } = schema
    for (const part of schemasOf(allOf, this.#steps)) this.apply(part, value, issues, evaluated)
    if (anyOf !== undefined)
      this.#alternatives(schemasOf(anyOf, this.#steps), value, issues, evaluated, false)
    if (oneOf !== undefined)
      this.#alternatives(schemasOf(oneOf, this.#steps), value, issues, evaluated, true)
    if (isSchema(not) && this.#try(not, value).count === 0)
      issues.add('must not match the schema in "not"')
    if (!isSchema(condition)) return
    const consequence = schema[this.#try(condition, value, evaluated).count === 0 ? 'then' : 'else']
    if (isSchema(consequence)) this.apply(consequence, value, issues, evaluated)
  }

  #alternatives(
    parts: readonly AnySchema[],
    value: unknown,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
    exactly: boolean,
  ): void {
    const reasons = new Set<string>()
    let matching = 0
    for (const part of parts) {
      const { first } = this.#try(part, value, evaluated)
      if (first === undefined) matching++
      else if (reasons.size < 4) {
        this.#steps.spend((first.path.length + first.message.length) / 8)
        reasons.add(describeIssue({ ...first, path: shownPath(first.path) }))
      }
      if (matching === 1 && !exactly && evaluated === undefined) return
    }
    if (matching === 0) {
      // Truncated: with nested alternatives the reasons would double at every level.
      issues.add(
        `matches none of the ${parts.length} alternatives (${shorten([...reasons].join('; or '))})`,
      )
    } else if (exactly && matching > 1)
      issues.add(`matches ${matching} alternatives; it must match exactly one`)
  }

  #array(
    schema: JsonSchema,
    value: readonly unknown[],
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    this.#steps.spend(value.length)
    checkBounds(schema, 'Items', value.length, 'items', issues)
    if (schema['uniqueItems'] === true && value.length > 1)
      checkUnique(value, this.#identities, issues, this.#steps)
    const { draft7 } = this.#index
    const { items, additionalItems, prefixItems, unevaluatedItems } = schema
    // A tuple is an array of `items` in draft-07, and `prefixItems` since 2020-12.
    const isTuple = draft7 && Array.isArray(items)
    const rest = isTuple ? additionalItems : items
    const first = schemasOf(draft7 ? items : prefixItems, this.#steps)
    const count = isSchema(rest) ? value.length : Math.min(first.length, value.length)
    for (let index = 0; index < count && !issues.full; index++) {
      const part = first[index] ?? rest
      if (isSchema(part)) this.#part(part, value[index], index, issues)
    }
    evaluated?.addFirstItems(count)
    this.#contains(schema, value, issues, evaluated)
    if (draft7 || !isSchema(unevaluatedItems)) return
    const isEvaluated = evaluated?.known(this.#steps)
    for (let index = 0; index < value.length && !issues.full; index++)
      if (isEvaluated?.(index) !== true) this.#part(unevaluatedItems, value[index], index, issues)
    evaluated?.addFirstItems(value.length)
  }

  #contains(
    schema: JsonSchema,
    value: readonly unknown[],
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    const { contains, minContains, maxContains } = schema
    if (!isSchema(contains)) return
    const { draft7 } = this.#index
    let count = 0
    for (let index = 0; index < value.length; index++) {
      const found = new Issues(1)
      this.#part(contains, value[index], index, found)
      if (found.count > 0) continue
      count++
      if (!draft7) evaluated?.add(index)
    }
    const least = !draft7 && typeof minContains === 'number' ? minContains : 1
    const most = !draft7 && typeof maxContains === 'number' ? maxContains : Infinity
    const unit = 'items that match "contains"'
    checkSize(count, 'least', least, unit, issues)
    checkSize(count, 'most', most, unit, issues)
  }

  #object(
    schema: JsonSchema,
    value: Record<string, unknown>,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    const steps = this.#steps
    if ('minProperties' in schema || 'maxProperties' in schema)
      checkBounds(schema, 'Properties', steps.namesOf(value).length, 'properties', issues)
    this.#members(schema, value, issues, evaluated)
    this.#dependencies(schema, value, issues, evaluated)
    const { unevaluatedProperties } = schema
    if (this.#index.draft7 || !isSchema(unevaluatedProperties)) return
    const isEvaluated = evaluated?.known(steps)
    for (const name of keysOf(value, steps)) {
      if (issues.full) return
      if (isEvaluated?.(name) === true) continue
      if (unevaluatedProperties === false) issues.add(unknownProperty([]), member(name))
      else this.#part(unevaluatedProperties, value[name], name, issues)
    }
    evaluated?.addAllMembers()
  }

  /** The members in `properties` in the schema's order, and then all others. */
  #members(
    schema: JsonSchema,
    value: Record<string, unknown>,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    const steps = this.#steps
    const { properties, patternProperties, additionalProperties: others, propertyNames } = schema
    const known = isObject(properties) ? properties : {}
    const patterns = isObject(patternProperties) ? patternProperties : {}
    const expressions = keysOf(patterns, steps)
    const check = (name: string, own: unknown) => {
      if (isSchema(propertyNames)) this.#name(propertyNames, name, issues)
      const parts: unknown[] = own === undefined ? [] : [own]
      for (const pattern of expressions)
        if (matches(pattern, name, steps)) parts.push(patterns[pattern])
      if (parts.length === 0 && others === false)
        return issues.add(unknownProperty(keysOf(known, steps), expressions), member(name))
      if (parts.length === 0) parts.push(others)
      for (const part of parts) {
        if (!isSchema(part)) continue
        evaluated?.add(name)
        this.#part(part, value[name], name, issues)
      }
    }
    for (const [name, part] of this.#index.propertiesOf(schema)(value, steps)) {
      steps.spend(2)
      if (issues.full) return
      if (Object.hasOwn(value, name)) check(name, part)
    }
    for (const name of stringsOf(schema['required'], steps))
      if (!issues.full && !Object.hasOwn(value, name)) issues.add(IS_REQUIRED, member(name))
    // Most schemas say nothing about other members.
    if (expressions.length > 0 || isSchema(propertyNames) || isSchema(others))
      for (const name of keysOf(value, steps)) {
        if (issues.full) return
        if (!Object.hasOwn(known, name)) check(name, undefined)
      }
    if (isSchema(others)) evaluated?.addAllMembers()
  }

  #name(schema: AnySchema, name: string, issues: Issues): void {
    const found = new Issues(issues.limit)
    this.#part(schema, name, name, found)
    for (const { message } of found.result()) issues.add(`has a name that ${message}`, member(name))
  }

  #dependencies(
    schema: JsonSchema,
    value: Record<string, unknown>,
    issues: Issues,
    evaluated: EvaluatedParts | undefined,
  ): void {
    for (const keyword of this.#index.draft7 ? ['dependencies'] : DEPENDENCIES) {
      const dependencies = schema[keyword]
      if (!isObject(dependencies)) continue
      for (const name of keysOf(dependencies, this.#steps)) {
        if (issues.full) return
        if (!Object.hasOwn(value, name)) continue
        const wanted = dependencies[name]
        if (isSchema(wanted)) this.apply(wanted, value, issues, evaluated)
        for (const other of stringsOf(wanted, this.#steps))
          if (!Object.hasOwn(value, other))
            issues.add(`is required if ${name} is present`, member(other))
      }
    }
  }
}
