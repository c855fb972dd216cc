import type { Issues, JsonSchema } from './issue.js'
import type { SchemaIndex } from './schema-index.js'

/** The evaluated members and items of a value, for `unevaluatedProperties` and `unevaluatedItems`. */
export class EvaluatedParts {
  readonly #members = new Set<string>()
  readonly #items = new Set<number>()
  #allMembers = false
  /** The number of items from the start that are evaluated. */
  #first = 0

  addMember(name: string): void {
    if (!this.#allMembers) this.#members.add(name)
  }

  addAllMembers(): void {
    this.#allMembers = true
  }

  addItem(index: number): void {
    if (index >= this.#first) this.#items.add(index)
  }

  addFirstItems(count: number): void {
    this.#first = Math.max(this.#first, count)
  }

  hasMember(name: string): boolean {
    return this.#allMembers || this.#members.has(name)
  }

  hasItem(index: number): boolean {
    return index < this.#first || this.#items.has(index)
  }

  addAll(other: EvaluatedParts): void {
    for (const name of other.#members) this.addMember(name)
    for (const index of other.#items) this.addItem(index)
    this.addFirstItems(other.#first)
    if (other.#allMembers) this.addAllMembers()
  }
}

/** The result of applying a schema to a value. */
export interface CachedResult {
  readonly issues: Issues
  /** Only if it is needed. */
  readonly evaluated: EvaluatedParts | undefined
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
  readonly #anchors: ReadonlyMap<string, string>
  readonly #scopes: Map<string, Scope>
  readonly #results = new Map<JsonSchema, CachedResults>()

  constructor(
    index: SchemaIndex,
    anchors: ReadonlyMap<string, string> = new Map(),
    scopes = new Map<string, Scope>(),
  ) {
    this.#index = index
    this.#anchors = anchors
    this.#scopes = scopes
  }

  /** The scope inside a schema resource. */
  enter(base: string): Scope {
    const names = this.#index.dynamicNames(base).filter((name) => !this.#anchors.has(name))
    if (names.length === 0) return this
    const anchors = [...this.#anchors, ...names.map((name): [string, string] => [name, base])]
    const key = JSON.stringify(anchors.toSorted(([one], [other]) => (one < other ? -1 : 1)))
    let scope = this.#scopes.get(key)
    if (scope === undefined) {
      scope = new Scope(this.#index, new Map(anchors), this.#scopes)
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
