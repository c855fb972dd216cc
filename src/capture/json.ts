/*
 * A JSON parser that keeps the position of every value and member. It reports what JSON.parse hides (repeated names,
 * numbers that lose digits) and where a text stops being JSON.
 */

interface Place {
  /** Positions within the text, in UTF-16 code units. */
  start: number
  end: number
}

interface JsonMember {
  name: string
  key: Place
  value: JsonNode
}

export interface JsonNode extends Place {
  /** The value as JSON.parse returns it. */
  value: unknown
  /** The members of an object, in order and with repeated names. */
  members?: JsonMember[] | undefined
  /** The items of an array. */
  items?: JsonNode[] | undefined
}

type JsonFaultKind = 'invalid-json' | 'duplicate-key' | 'unsafe-number' | 'deep-nesting'

export interface JsonFault extends Place {
  kind: JsonFaultKind
  /** The repeated name, or the number. */
  detail: string
}

export interface ParsedJson {
  /** Undefined if the text is not JSON, or exceeds a limit. */
  node: JsonNode | undefined
  faults: JsonFault[]
}

/** Deeper texts are not parsed: the parser is recursive. */
export const MAX_DEPTH = 500
/** More values are not parsed: each takes about 100 bytes of memory. */
export const MAX_VALUES = 500_000
/** Maximum number of faults of each text; the first ones say enough. */
const MAX_FAULTS = 20

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y
const LITERALS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])

/** An outline has two levels: the members of a message, and of its params or result. OUTLINE_MEMBERS have two levels of their own. */
const OUTLINE_LEVELS = { message: 2, member: 2 } as const
const OUTLINE_MEMBERS: ReadonlySet<string> = new Set(['_meta', 'capabilities', 'notifications'])

/** Ends the parser at a fault. One for all: to make an error takes longer than to parse a line. */
const FAILED = new Error('The text is not JSON')

export function parseJson(text: string): ParsedJson {
  const parser = new Parser(text, false)
  return { node: parser.parse(Infinity), faults: parser.faults }
}

/** The same for a message or a batch of any depth; other objects and arrays are skipped, and seem to be empty. */
export function parseOutline(text: string): ParsedJson {
  const parser = new Parser(text, true)
  const { message } = OUTLINE_LEVELS
  const isBatch = text.trimStart().startsWith('[')
  return { node: parser.parse(isBatch ? message + 1 : message), faults: parser.faults }
}

class Parser {
  readonly #text: string
  readonly #isOutline: boolean
  readonly faults: JsonFault[] = []
  #at = 0
  #depth = 0
  #values = 0

  constructor(text: string, isOutline: boolean) {
    this.#text = text
    this.#isOutline = isOutline
  }

  /** `levels`: of how many levels objects and arrays are parsed; others are skipped. */
  parse(levels: number): JsonNode | undefined {
    try {
      const node = this.#value(levels)
      this.#space()
      if (this.#at < this.#text.length) this.#fail()
      return node
    } catch (error) {
      if (error === FAILED) return undefined
      throw error
    }
  }

  #value(levels: number): JsonNode {
    this.#space()
    if (++this.#values > MAX_VALUES) this.#tooLarge(`more than ${MAX_VALUES} values`)
    const start = this.#at
    const character = this.#text[start]
    if (character === '{' || character === '[') {
      if (levels === 0) return this.#skip(start)
      if (++this.#depth > MAX_DEPTH) this.#tooLarge(`more than ${MAX_DEPTH} levels`)
      const node =
        character === '{' ? this.#object(start, levels - 1) : this.#array(start, levels - 1)
      this.#depth--
      return node
    }
    if (character === '"') return this.#string()
    return character === 't' || character === 'f' || character === 'n'
      ? this.#literal(start)
      : this.#number()
  }

  #literal(start: number): JsonNode {
    for (const [literal, value] of LITERALS)
      if (this.#text.startsWith(literal, start)) {
        this.#at += literal.length
        return { start, end: this.#at, value }
      }
    return this.#fail()
  }

  #object(start: number, levels: number): JsonNode {
    const members: JsonMember[] = []
    const names = new Names()
    const value: Record<string, unknown> = {}
    this.#at++
    this.#space()
    for (let first = true; first || this.#text[this.#at] !== '}'; first = false) {
      if (first && this.#text[this.#at] === '}') break
      if (!first) this.#expect(',')
      this.#space()
      const keyStart = this.#at
      const name = String(this.#string().value)
      const key = { start: keyStart, end: this.#at }
      if (names.isRepeated(name)) this.#fault('duplicate-key', key, name)
      this.#space()
      this.#expect(':')
      const isMember = this.#isOutline && OUTLINE_MEMBERS.has(name)
      const member = this.#value(isMember ? OUTLINE_LEVELS.member : levels)
      members.push({ name, key, value: member })
      // As JSON.parse: the name __proto__ is an ordinary member.
      if (name === '__proto__')
        Object.defineProperty(value, name, {
          value: member.value,
          enumerable: true,
          configurable: true,
          writable: true,
        })
      else value[name] = member.value
      this.#space()
    }
    this.#expect('}')
    return { start, end: this.#at, value, members }
  }

  #array(start: number, levels: number): JsonNode {
    const items: JsonNode[] = []
    this.#at++
    this.#space()
    for (let first = true; first || this.#text[this.#at] !== ']'; first = false) {
      if (first && this.#text[this.#at] === ']') break
      if (!first) this.#expect(',')
      items.push(this.#value(levels))
      this.#space()
    }
    this.#expect(']')
    return { start, end: this.#at, value: items.map(({ value }) => value), items }
  }

  /** An object or array whose content is not looked at. */
  #skip(start: number): JsonNode {
    const text = this.#text
    let depth = 0
    do {
      const character = text[this.#at]
      if (character === undefined) this.#fail()
      if (character === '{' || character === '[') depth++
      if (character === '}' || character === ']') depth--
      this.#at = character === '"' ? this.#stringEnd(this.#at) : this.#at + 1
    } while (depth > 0)
    return { start, end: this.#at, value: text[start] === '{' ? {} : [] }
  }

  #string(): JsonNode {
    const start = this.#at
    if (this.#text[start] !== '"') this.#fail()
    const end = this.#stringEnd(start)
    const content = this.#text.slice(start + 1, end - 1)
    this.#at = end
    return { start, end, value: content.includes('\\') ? JSON.parse(`"${content}"`) : content }
  }

  /** The position after the string; fails at the first character that a string cannot have. */
  #stringEnd(start: number): number {
    const text = this.#text
    let at = start + 1
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === 0x22) return at + 1
      if (!(code >= 0x20)) {
        this.#at = at // a control character, or the end of the text
        this.#fail()
      }
      if (code !== 0x5c) {
        at++
        continue
      }
      const escape = /^\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/.exec(text.slice(at, at + 6))
      if (escape === null) {
        this.#at = at
        this.#fail()
      }
      at += escape[0].length
    }
  }

  #number(): JsonNode {
    NUMBER.lastIndex = this.#at
    const match = NUMBER.exec(this.#text)
    if (match === null) this.#fail()
    const [source, fraction, exponent] = match
    const start = this.#at
    this.#at += source.length
    const value = Number(source)
    const isInteger = fraction === undefined && exponent === undefined
    if ((isInteger && !Number.isSafeInteger(value)) || !Number.isFinite(value))
      this.#fault('unsafe-number', { start, end: this.#at }, source.slice(0, 40))
    return { start, end: this.#at, value }
  }

  #space(): void {
    for (; ; this.#at++) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
    }
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) this.#fail()
    this.#at++
  }

  #fault(kind: JsonFaultKind, { start, end }: Place, detail: string): void {
    if (this.faults.length < MAX_FAULTS) this.faults.push({ kind, start, end, detail })
  }

  #fail(): never {
    // A character may have two code units.
    const [character = ''] = this.#text.slice(this.#at, this.#at + 2)
    this.faults.push({
      kind: 'invalid-json',
      start: this.#at,
      end: this.#at + character.length,
      detail: character === '' ? 'the end of the line' : JSON.stringify(character),
    })
    throw FAILED
  }

  #tooLarge(detail: string): never {
    this.faults.push({ kind: 'deep-nesting', start: this.#at, end: this.#at + 1, detail })
    throw FAILED
  }
}

/** The names of an object so far. A Set is made only for large objects. */
class Names {
  #few: string[] = []
  #many: Set<string> | undefined

  /** Adds a name; returns whether it was there before. */
  isRepeated(name: string): boolean {
    if (this.#many !== undefined) return this.#many.size === this.#many.add(name).size
    if (this.#few.includes(name)) return true
    this.#few.push(name)
    if (this.#few.length > 16) this.#many = new Set(this.#few)
    return false
  }
}

/** The value at a path such as `params.items[2].name`, or the innermost one on the way there. */
export function nodeAt(node: JsonNode, path: string): JsonNode {
  const rest = path.replace(/^\./, '')
  if (rest === '') return node
  const [index, position] = /^\[(\d+)\]/.exec(rest) ?? []
  if (index !== undefined) {
    const item = node.items?.[Number(position)]
    return item === undefined ? node : nodeAt(item, rest.slice(index.length))
  }
  // Names may contain dots: the longest one that fits is taken.
  const fits = (node.members ?? [])
    .filter(({ name }) => rest.startsWith(name) && /^(?:$|[.[])/.test(rest.slice(name.length)))
    .toSorted((one, other) => other.name.length - one.name.length)
  const [best] = fits
  return best === undefined ? node : nodeAt(best.value, rest.slice(best.name.length))
}

const encoder = new TextEncoder()

/** The number of bytes of a text in UTF-8. */
export function bytesIn(text: string): number {
  return encoder.encode(text).length
}
