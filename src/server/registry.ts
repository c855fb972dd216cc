import { STEPS, inSmallSteps } from '../jsonrpc/small-steps.js'
import type { LogLevel } from '../protocol/model.js'
import type { ChangePort, SharedChange } from '../stores/change-bus.js'
import type { ResourceChanges } from './subscribed-uris.js'

export interface LogMessage {
  level: LogLevel
  data: unknown
  logger?: string
}

/** What all listeners are told. `everything`: changes may have been missed. */
export type Change =
  | Exclude<SharedChange, { uri: string }>
  | { readonly everything: true }
  | { readonly log: LogMessage }

/** Maximum log messages that wait to be told to many; more are dropped, as they are for clients that do not read. */
const MAX_LOGS = 1000

/** Passes changes to listeners. URIs are compared in their normalized form. */
export class ChangeEmitter implements ChangePort, ResourceChanges {
  readonly #listeners = new Set<(change: Change) => void>()
  readonly #local = new Set<(change: SharedChange) => void>()
  /** By URI: most changes concern few clients. */
  readonly #subscribers = new Map<string, Set<(key: string) => void>>()
  readonly #normalize: (uri: string) => string
  /** How many log messages wait. */
  #logs = 0

  constructor(normalize: (uri: string) => string) {
    this.#normalize = normalize
  }

  listen(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  listenLocal(listener: (change: SharedChange) => void): () => void {
    this.#local.add(listener)
    return () => void this.#local.delete(listener)
  }

  subscribe(key: string, changed: (key: string) => void): void {
    const subscribers = this.#subscribers.get(key)
    if (subscribers === undefined) this.#subscribers.set(key, new Set([changed]))
    else subscribers.add(changed)
  }

  unsubscribe(key: string, changed: (key: string) => void): void {
    const subscribers = this.#subscribers.get(key)
    if (subscribers?.delete(changed) === true && subscribers.size === 0)
      this.#subscribers.delete(key)
  }

  /** A change that was made in this process. */
  emit(change: SharedChange | { readonly log: LogMessage }): void {
    this.#tell(change)
    if (!('log' in change)) for (const listener of this.#local) listener(change)
  }

  /** A change that was made in another process. */
  receive(change: SharedChange | { readonly everything: true }): void {
    this.#tell(change)
  }

  #tell(change: Change | SharedChange): void {
    if ('uri' in change) {
      const key = this.#normalize(change.uri)
      for (const changed of this.#subscribers.get(key) ?? []) changed(key)
    } else if ('log' in change && (this.#logs > 0 || this.#listeners.size > STEPS)) {
      if (this.#logs >= MAX_LOGS) return
      this.#logs++
      inSmallSteps(this.#tellMany(change))
    } else for (const listener of this.#listeners) listener(change)
  }

  *#tellMany(change: Change): Generator<undefined> {
    try {
      for (const listener of this.#listeners) {
        listener(change)
        yield
      }
    } finally {
      this.#logs--
    }
  }
}

interface Entry<Definition, Served> {
  definition: Definition
  served: Served
  enabled: boolean
}

/** The tools, resources or prompts of a server. They may change while clients are connected. */
export interface Definitions<Definition extends object> {
  /** How many are enabled. */
  readonly size: number
  /** Adds definitions: all of them, or none if one is refused. */
  add(...definitions: readonly Definition[]): void
  /** Whether it was there. */
  remove(key: string): boolean
  /** Replaces parts of a definition; its name stays. */
  update(key: string, changes: Partial<Definition>): void
  enable(key: string): void
  /** Hides it: it is not listed, and cannot be used. */
  disable(key: string): void
  /** Whether it is there and enabled. */
  has(key: string): boolean
  /** The names or URIs of those that are enabled. */
  keys(): IterableIterator<string>
  /** Notifies clients of a changed list if no definition has changed: what a template's `list` returns, or to whom something is `visible`. */
  changed(): void
}

/** The definitions of one kind, in the order in which they were added. */
export class Registry<Definition extends object, Served> implements Definitions<Definition> {
  readonly #entries = new Map<string, Entry<Definition, Served>>()
  readonly #kind: string
  readonly #keyOf: (definition: Definition) => string
  readonly #prepare: (definition: Definition, others: Iterable<Served>) => Served
  readonly #changed: () => void
  readonly #normalize: (key: string) => string
  #offered = false

  constructor(
    kind: string,
    keyOf: (definition: Definition) => string,
    prepare: (definition: Definition, others: Iterable<Served>) => Served,
    changed: () => void,
    /** The form by which keys are compared. */
    normalize: (key: string) => string = (key) => key,
  ) {
    this.#kind = kind
    this.#keyOf = keyOf
    this.#prepare = prepare
    this.#changed = changed
    this.#normalize = normalize
  }

  /** Whether there ever was one: then the capability is declared, also while the list is empty. */
  get offered(): boolean {
    return this.#offered
  }

  get size(): number {
    return [...this.values()].length
  }

  add(...definitions: readonly Definition[]): void {
    // All or none: if one is refused, none is added.
    const added = new Map<string, Entry<Definition, Served>>()
    for (const definition of definitions) {
      const name = this.#keyOf(definition)
      const key = this.#normalize(name)
      const before = this.#entries.get(key) ?? added.get(key)
      if (before !== undefined) throw this.#duplicateError(name, this.#keyOf(before.definition))
      const others = [...this.#others(key), ...Array.from(added.values(), ({ served }) => served)]
      added.set(key, { definition, served: this.#prepare(definition, others), enabled: true })
    }
    if (definitions.length === 0) return
    for (const [key, entry] of added) this.#entries.set(key, entry)
    this.#offered = true
    this.#changed()
  }

  changed(): void {
    this.#changed()
  }

  remove(key: string): boolean {
    const removed = this.#entries.delete(this.#normalize(key))
    if (removed) this.#changed()
    return removed
  }

  update(key: string, changes: Partial<Definition>): void {
    const entry = this.#find(key)
    const definition = { ...entry.definition, ...changes }
    if (this.#normalize(this.#keyOf(definition)) !== this.#normalize(key))
      throw new TypeError(`${this.#kind} "${key}" cannot be renamed; remove it and add another`)
    entry.served = this.#prepare(definition, this.#others(this.#normalize(key)))
    entry.definition = definition
    this.#changed()
  }

  enable(key: string): void {
    this.#setEnabled(key, true)
  }

  disable(key: string): void {
    this.#setEnabled(key, false)
  }

  get(key: string): Served | undefined {
    const entry = this.entry(key)
    return entry?.enabled === true ? entry.served : undefined
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  *keys(): Generator<string> {
    for (const { definition, enabled } of this.#entries.values())
      if (enabled) yield this.#keyOf(definition)
  }

  /** Also one that is disabled. */
  entry(key: string): Entry<Definition, Served> | undefined {
    return this.#entries.get(this.#normalize(key))
  }

  /** Also those that are disabled. */
  entries(): Iterable<Entry<Definition, Served>> {
    return this.#entries.values()
  }

  *values(): Generator<Served> {
    for (const { served, enabled } of this.#entries.values()) if (enabled) yield served
  }

  #setEnabled(key: string, enabled: boolean): void {
    const entry = this.#find(key)
    if (entry.enabled === enabled) return
    entry.enabled = enabled
    this.#changed()
  }

  #find(key: string): Entry<Definition, Served> {
    const entry = this.entry(key)
    if (entry === undefined) throw new TypeError(`There is no ${this.#kind.toLowerCase()} "${key}"`)
    return entry
  }

  #duplicateError(name: string, before: string): TypeError {
    if (name === before)
      return new TypeError(
        `${this.#kind} "${name}" is defined twice; give one of them another name`,
      )
    return new TypeError(
      `${this.#kind} "${name}" is the same as "${before}", which is defined already; leave one of them out`,
    )
  }

  *#others(key: string): Generator<Served> {
    for (const [name, { served }] of this.#entries) if (name !== key) yield served
  }
}
