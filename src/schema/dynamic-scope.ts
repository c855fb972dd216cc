import { Issues, type JsonSchema } from './issue.js'
import type { SchemaIndex } from './schema-index.js'
import type { Steps } from './steps.js'

/** Beyond this many entries, evaluated parts are shared, not copied. */
const MAX_COPIED = 16

/** The evaluated members and items of a value, for `unevaluatedProperties` and `unevaluatedItems`. */
export class EvaluatedParts {
  /** Names of members, and indexes of items. */
  #parts: Set<string | number> | undefined
  /** Further parts: those of subschemas that have evaluated many. */
  #shared: EvaluatedParts[] = []
  #allMembers = false
  /** The number of items from the start that are evaluated. */
  #first = 0

  add(part: string | number): void {
    this.#parts ??= new Set()
    this.#parts.add(part)
  }

  addAllMembers(): void {
    this.#allMembers = true
  }

  addFirstItems(count: number): void {
    this.#first = Math.max(this.#first, count)
  }

  /** Adds those of a subschema, to which nothing is added afterwards. */
  addAll(other: EvaluatedParts): void {
    if (other.#allMembers) return this.addAllMembers()
    this.addFirstItems(other.#first)
    if (other.#shared.length > 0 || (other.#parts?.size ?? 0) > MAX_COPIED) this.#shared.push(other)
    else for (const part of other.#parts ?? []) this.add(part)
  }

  /** A function that tells whether a member or an item is evaluated, as far as it is known now. */
  known(steps: Steps): (part: string | number) => boolean {
    const parts = new Set<string | number>()
    const open = new Set<EvaluatedParts>([this])
    for (const each of open) {
      steps.spend(each.#shared.length + 8 * (each.#parts?.size ?? 0))
      for (const part of each.#parts ?? []) parts.add(part)
      for (const shared of each.#shared) open.add(shared)
    }
    const [all, first] = [this.#allMembers, this.#first]
    return (part) => (typeof part === 'number' ? part < first : all) || parts.has(part)
  }
}

/** The result of applying a schema to a value. */
export interface CachedResult {
  readonly issues: Issues
  /** Only if it is needed. */
  readonly evaluated: EvaluatedParts | undefined
}

/** The result for a valid value without evaluated parts: shared, because it is by far the most frequent. */
export const VALID: CachedResult = { issues: new Issues(), evaluated: undefined }

/** Whether a cached result has enough issues, and the evaluated parts if needed. */
export function isEnough(
  { issues, evaluated }: CachedResult,
  limit: number,
  withParts: boolean,
): boolean {
  if (issues.count > 0) return issues.limit >= limit
  return !withParts || evaluated !== undefined
}

/** Cached results of one schema in one dynamic scope. */
export interface CachedResults {
  readonly ofContainers: Map<object, CachedResult>
  /** For the last primitive value, with its location in the value. */
  ofPrimitive?: { readonly place: number; readonly result: CachedResult }
}

/**
 * The dynamic scope: for each `$dynamicAnchor` name, the outermost schema resource that has it. Equal scopes are the same
 * object, so that cached results are found.
 * https://json-schema.org/draft/2020-12/json-schema-core#name-dynamic-references-with-dyn
 */
export class Scope {
  readonly #index: SchemaIndex
  readonly #steps: Steps
  readonly #anchors: ReadonlyMap<string, string>
  readonly #scopes: Map<string, Scope>
  /** The scopes inside the schema resources that were entered from this one. */
  readonly #inside = new Map<string, Scope>()
  readonly #results = new Map<JsonSchema, CachedResults>()

  constructor(
    index: SchemaIndex,
    steps: Steps,
    anchors: ReadonlyMap<string, string> = new Map(),
    scopes = new Map<string, Scope>(),
  ) {
    this.#index = index
    this.#steps = steps
    this.#anchors = anchors
    this.#scopes = scopes
  }

  /** The scope inside a schema resource. */
  enter(base: string): Scope {
    let scope = this.#inside.get(base)
    if (scope === undefined) {
      scope = this.#within(base)
      this.#inside.set(base, scope)
    }
    return scope
  }

  #within(base: string): Scope {
    const all = this.#index.dynamicNames(base)
    this.#steps.spend(all.length)
    const names = all.filter((name) => !this.#anchors.has(name))
    if (names.length === 0) return this
    const anchors = [...this.#anchors, ...names.map((name): [string, string] => [name, base])]
    const key = JSON.stringify(anchors.toSorted(([one], [other]) => (one < other ? -1 : 1)))
    this.#steps.spend(64 * anchors.length + key.length)
    let scope = this.#scopes.get(key)
    if (scope === undefined) {
      scope = new Scope(this.#index, this.#steps, new Map(anchors), this.#scopes)
      this.#scopes.set(key, scope)
    }
    return scope
  }

  /** The schema that a `$dynamicAnchor` name refers to in this scope. */
  anchor(name: string): JsonSchema | undefined {
    const base = this.#anchors.get(name)
    return base === undefined ? undefined : this.#index.dynamicAnchor(base, name)
  }

  resultsOf(schema: JsonSchema): CachedResults {
    let results = this.#results.get(schema)
    if (results === undefined) {
      results = { ofContainers: new Map() }
      this.#results.set(schema, results)
    }
    return results
  }
}
