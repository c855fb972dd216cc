import { isObject } from '../schema/issue.js'
import { type JsonNode, MAX_DEPTH, MAX_VALUES, type ParsedJson, parseJson } from './json.js'

/*
 * Almost all messages are what JSON.stringify writes. They have no faults, and the runtime parses them several times faster
 * than `parseJson`; positions are needed only for findings.
 */

/** An integer that is not exact has at least so many digits. */
const MANY_DIGITS = /\d{16}/
/** Texts up to LONGEST cannot exceed MAX_VALUES; texts up to SHORT cannot exceed MAX_DEPTH either. */
const LONGEST = MAX_VALUES * 2
const SHORT = MAX_DEPTH * 2
const SPACE = 0x20

/** The same as `parseJson`, but positions may be found when they are read. */
export function parseLazily(text: string): ParsedJson {
  const value = plainValue(text)
  return value === undefined ? parseJson(text) : { node: new LazyNode(value, text), faults: [] }
}

/** The value of a text that is an object exactly as JSON.stringify writes it; undefined for any other. */
function plainValue(text: string): object | undefined {
  if (text.length > LONGEST) return undefined
  // Other writers put a space after each colon: they are recognized by the first one.
  const isSpaced = text.charCodeAt(text.indexOf(':') + 1) === SPACE
  const isWhole = text.startsWith('{') && text.endsWith('}')
  if (isSpaced || !isWhole || MANY_DIGITS.test(text)) return undefined
  try {
    const value = JSON.parse(text) as object // it begins with a brace
    if (text.length > SHORT && !isShallow(value)) return undefined
    // Repeated names, numbers that lose digits and spaces would differ.
    return JSON.stringify(value) === text ? value : undefined
  } catch {
    return undefined
  }
}

/** Whether `parseJson` accepts the depth. */
function isShallow(root: unknown): boolean {
  let level: unknown[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === MAX_DEPTH) return false
    const next: unknown[] = []
    for (const value of level)
      if (typeof value === 'object' && value !== null)
        for (const each of Object.values(value)) next.push(each)
    level = next
  }
  return true
}

/** A value whose positions are found when they are read. */
class LazyNode implements JsonNode {
  readonly value: unknown
  /** The text, or the object that has this value as a member. */
  readonly #source: string | LazyNode
  readonly #name: string
  #located: JsonNode | undefined

  constructor(value: unknown, source: string | LazyNode, name = '') {
    this.value = value
    this.#source = source
    this.#name = name
  }

  get start(): number {
    return this.#locate().start
  }

  get end(): number {
    return this.#locate().end
  }

  get members(): JsonNode['members'] {
    return isObject(this.value) ? this.#locate().members : undefined
  }

  get items(): JsonNode['items'] {
    return Array.isArray(this.value) ? this.#locate().items : undefined
  }

  member(name: string): JsonNode | undefined {
    const { value } = this
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    return new LazyNode(value[name], this, name)
  }

  #locate(): JsonNode {
    this.#located ??=
      typeof this.#source === 'string'
        ? parseJson(this.#source).node
        : memberOf(this.#source.#locate(), this.#name)
    if (this.#located === undefined) throw new Error('The JSON text is not what was parsed')
    return this.#located
  }
}

/** The value of a member of an object; the last one if the name is repeated. */
export function memberOf(node: JsonNode | undefined, name: string): JsonNode | undefined {
  if (node instanceof LazyNode) return node.member(name)
  return node?.members?.findLast((member) => member.name === name)?.value
}

/** The value as it was written. */
export function sourceOf(node: JsonNode, text: string): string {
  if (!(node instanceof LazyNode)) return text.slice(node.start, node.end)
  return typeof node.value === 'number' ? String(node.value) : JSON.stringify(node.value)
}

/** The value at a path of member names, or undefined. */
export function valueAt(node: JsonNode | undefined, ...path: readonly string[]): unknown {
  let value = node?.value
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** A string at a path of member names, or undefined. */
export function stringAt(
  node: JsonNode | undefined,
  ...path: readonly string[]
): string | undefined {
  const value = valueAt(node, ...path)
  return typeof value === 'string' ? value : undefined
}
