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

/** It is replaced when it changes. */
export interface Entry<Definition, Served> {
  readonly definition: Definition
  readonly served: Served
  readonly enabled: boolean
  /** Increases from one entry to the next. */
  readonly position: number
}

/** Finds entries by other things than their keys. */
export interface EntryIndex<Definition, Served> {
  /** Throws, and changes nothing, if the new entry cannot be beside the others. */
  replace(
    before: Entry<Definition, Served> | undefined,
    after: Entry<Definition, Served> | undefined,
  ): void
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
export class Registry<
  Definition extends object,
  Served extends { readonly definition: Definition; readonly completes?: boolean },
> implements Definitions<Definition> {
  readonly #entries = new Map<string, Entry<Definition, Served>>()
  readonly #kind: string
  readonly #keyOf: (definition: Definition) => string
  readonly #prepare: (definition: Definition) => Served
  readonly #changed: () => void
  readonly #normalize: (key: string) => string
  readonly #index: EntryIndex<Definition, Served> | undefined
  #offered = false
  #size = 0
  #completing = 0
  #position = 0

  constructor(
    kind: string,
    keyOf: (definition: Definition) => string,
    prepare: (definition: Definition) => Served,
    changed: () => void,
    /** The form by which keys are compared. */
    normalize: (key: string) => string = (key) => key,
    index?: EntryIndex<Definition, Served>,
  ) {
    this.#kind = kind
    this.#keyOf = keyOf
    this.#prepare = prepare
    this.#changed = changed
    this.#normalize = normalize
    this.#index = index
  }

  /** Whether there ever was one: then the capability is declared, also while the list is empty. */
  get offered(): boolean {
    return this.#offered
  }

  get size(): number {
    return this.#size
  }

  /** Whether one that is enabled has completions. */
  get completes(): boolean {
    return this.#completing > 0
  }

  add(...definitions: readonly Definition[]): void {
    const added: string[] = []
    try {
      for (const definition of definitions) {
        const name = this.#keyOf(definition)
        const key = this.#normalize(name)
        const before = this.#entries.get(key)
        if (before !== undefined) throw this.#duplicateError(name, this.#keyOf(before.definition))
        const served = this.#prepare(definition)
        this.#set(key, { definition, served, enabled: true, position: this.#position++ })
        added.push(key)
      }
    } catch (error) {
      // All or none.
      for (const key of added) this.#set(key, undefined)
      throw error
    }
    if (definitions.length === 0) return
    this.#offered = true
    this.#changed()
  }

  changed(): void {
    this.#changed()
  }

  remove(key: string): boolean {
    if (this.entry(key) === undefined) return false
    this.#set(this.#normalize(key), undefined)
    this.#changed()
    return true
  }

  update(key: string, changes: Partial<Definition>): void {
    const entry = this.#find(key)
    const definition = { ...entry.definition, ...changes }
    if (this.#normalize(this.#keyOf(definition)) !== this.#normalize(key))
      throw new TypeError(`${this.#kind} "${key}" cannot be renamed; remove it and add another`)
    const served = this.#prepare(definition)
    this.#set(this.#normalize(key), { ...entry, definition, served })
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
    this.#set(this.#normalize(key), { ...entry, enabled })
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

  #set(key: string, after: Entry<Definition, Served> | undefined): void {
    const before = this.#entries.get(key)
    this.#index?.replace(before, after)
    if (after === undefined) this.#entries.delete(key)
    else this.#entries.set(key, after)
    for (const [entry, by] of [
      [before, -1],
      [after, 1],
    ] as const) {
      if (entry?.enabled !== true) continue
      this.#size += by
      if (entry.served.completes === true) this.#completing += by
    }
  }
}
