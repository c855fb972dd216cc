import {
  type Format,
  MAX_DEPTH,
  type Member,
  type Node,
  type Table,
  lineBreakBefore,
  skipMatches,
  syntaxError,
} from './document.js'

const SPACE = /[ \t\r\n]+|\/\/[^\n]*|\/\*[^]*?\*\//y
// oxlint-disable-next-line no-control-regex -- JSON has no control characters in strings
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y
const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** JSON with comments and trailing commas, as editors accept it. */
export const jsonc: Format = {
  parse: (text) => new Parser(text).document(),
  quote: (value) => JSON.stringify(value),
  moved: (raw) => raw,
  addList(text, table, beside, name, list) {
    const { end } = beside.value
    const lineBreak = lineBreakBefore(text, beside.keyStart) ?? ' '
    return { start: end, end, text: `,${lineBreak}${JSON.stringify(name)}: ${list}` }
  },
}

class Parser {
  readonly #text: string
  #at: number

  constructor(text: string) {
    this.#text = text
    this.#at = text.startsWith('\uFEFF') ? 1 : 0
  }

  document(): Table {
    this.#skip()
    const root = this.#value(0)
    this.#skip()
    if (this.#at < this.#text.length) throw this.#error('expected the end of the file')
    if (root.kind !== 'table') throw syntaxError(this.#text, root.start, 'expected an object')
    return root
  }

  #value(depth: number): Node {
    if (depth > MAX_DEPTH) throw this.#error('nested too deeply')
    const start = this.#at
    const next = this.#text[start]
    if (next === '{') return this.#object(depth)
    if (next === '[') {
      const items: Node[] = []
      this.#each(']', () => items.push(this.#value(depth + 1)))
      return { kind: 'list', items, start, end: this.#at }
    }
    const raw = next === '"' ? this.#string() : this.#match(WORD, 'a value')
    return { kind: 'scalar', value: JSON.parse(raw) as unknown, start, end: this.#at }
  }

  #object(depth: number): Table {
    const start = this.#at
    const members = new Map<string, Member>()
    this.#each('}', () => {
      const keyStart = this.#at
      const key = JSON.parse(this.#string()) as string // it matched STRING
      if (members.has(key))
        throw syntaxError(this.#text, keyStart, `${JSON.stringify(key)} is defined twice`)
      this.#skip()
      if (this.#text[this.#at] !== ':') throw this.#error('expected ":"')
      this.#at++
      this.#skip()
      members.set(key, { keyStart, lastKeyStart: keyStart, value: this.#value(depth + 1) })
    })
    return { kind: 'table', members, inline: true, start, end: this.#at }
  }

  /** Reads items until the closing bracket; a comma may follow the last one. */
  #each(close: string, read: () => void): void {
    for (this.#at++; ; this.#at++) {
      this.#skip()
      if (this.#text[this.#at] === close) break
      read()
      this.#skip()
      if (this.#text[this.#at] === close) break
      if (this.#text[this.#at] !== ',') throw this.#error(`expected "," or "${close}"`)
    }
    this.#at++
  }

  #string(): string {
    return this.#match(STRING, 'a string in double quotes')
  }

  #match(pattern: RegExp, expected: string): string {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text) ?? []
    if (found === undefined) throw this.#error(`expected ${expected}`)
    this.#at += found.length
    return found
  }

  #skip(): void {
    this.#at = skipMatches(SPACE, this.#text, this.#at)
  }

  #error(problem: string): SyntaxError {
    return syntaxError(this.#text, this.#at, problem)
  }
}
