import {
  type Format,
  MAX_DEPTH,
  type Member,
  type Node,
  type Table,
  skipMatches,
  syntaxError,
} from './document.js'

const SPACE = /[ \t]*/y
const BARE_KEY = /[A-Za-z0-9_-]+/y
/* oxlint-disable no-control-regex -- TOML has no control characters in strings, other than tabs */
const LINES = /[ \t\n]+|\r\n|#[^\u0000-\u0008\u000a-\u001f\u007f]*/y
const BASIC =
  /"([^"\\\u0000-\u0008\u000a-\u001f\u007f]*(?:\\(?:["\\bfnrte]|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8})[^"\\\u0000-\u0008\u000a-\u001f\u007f]*)*)"/y
const LITERAL = /'([^'\u0000-\u0008\u000a-\u001f\u007f]*)'/y
const BASIC_LINES = /"""([^"\\]*(?:(?:\\[^]|"{1,2}(?!"))[^"\\]*)*"{0,2})"""/y
const LITERAL_LINES = /'''([^']*(?:'{1,2}(?!')[^']*)*'{0,2})'''/y
/* oxlint-enable no-control-regex */
const DATE = String.raw`\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:\d\d)?)?|\d\d:\d\d(?::\d\d(?:\.\d+)?)?`
const NUMBER = String.raw`0[xob][\da-fA-F_]+|[+-]?(?:inf|nan|\d[\d_]*(?:\.[\d_]+)?(?:[eE][+-]?[\d_]+)?)`
const WORD = new RegExp(`(?:true|false|${DATE}|${NUMBER})(?=[\\s,\\]}#]|$)`, 'y')
const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  t: '\t',
  n: '\n',
  f: '\f',
  r: '\r',
  e: '\u001b',
}

/** A table while a document is read: it can be extended until it is closed. */
interface OpenTable extends Table {
  /** By a header of its own, by a dotted name, or as the parent of one of them. */
  by: 'header' | 'name' | 'parent'
}

/** TOML 1.0; what only 1.1 allows is accepted as well. */
export const toml: Format = {
  parse: (text) => new Parser(text).document(),
  quote: (value) => JSON.stringify(value).replaceAll('\u007f', String.raw`\u007f`),
  moved: (raw) => raw,
  addList(text, table, { keyStart, lastKeyStart, value: { end } }, name, list) {
    const lineStart = text.lastIndexOf('\n', keyStart - 1) + 1
    const lineBreak = text.includes('\r\n') ? '\r\n' : '\n'
    // With the indentation and the dotted name of the other member.
    const before = table.inline ? ', ' : lineBreak + text.slice(lineStart, lastKeyStart)
    return { start: end, end, text: `${before}${name} = ${list}` }
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
    const root = openTable(0, 'header')
    let current = root
    for (;;) {
      this.#skip()
      if (this.#at >= this.#text.length) return root
      current = this.#text[this.#at] === '[' ? this.#header(root) : this.#line(current)
      this.#match(SPACE, '')
      if (!/^(?:\r?\n|#|$)/.test(this.#text.slice(this.#at, this.#at + 2)))
        throw this.#error('expected the end of the line')
    }
  }

  /** `[a.b]`, or `[[a.b]]`: an item of a list of tables. */
  #header(root: OpenTable): OpenTable {
    const start = this.#at
    const isItem = this.#text.startsWith('[[', start)
    this.#at += isItem ? 2 : 1
    const path = this.#path()
    const close = isItem ? ']]' : ']'
    if (!this.#text.startsWith(close, this.#at)) throw this.#error(`expected "${close}"`)
    this.#at += close.length
    const last = path.pop() ?? { key: '', start }
    let parent = root
    for (const step of path) parent = this.#child(parent, step, 'parent')
    if (!isItem) return this.#child(parent, last, 'header')
    const list =
      parent.members.get(last.key)?.value ??
      this.#define(parent, [last], { kind: 'list', items: [], start, end: start, block: true })
    if (list.kind !== 'list' || list.block !== true) throw this.#twice(last)
    const item = openTable(start, 'header')
    list.items.push(item)
    return item
  }

  /** `name = value` */
  #line(table: OpenTable): OpenTable {
    const path = this.#path()
    if (this.#text[this.#at] !== '=') throw this.#error('expected "="')
    this.#at++
    this.#match(SPACE, '')
    const value = this.#value(0)
    let parent = table
    for (const step of path.slice(0, -1)) parent = this.#child(parent, step, 'name')
    this.#define(parent, path, value)
    return table
  }

  #define(table: Table, path: readonly Key[], value: Node): Node {
    const [first] = path
    const last = path.at(-1)
    if (first === undefined || last === undefined) throw this.#error('expected a name')
    if (table.members.has(last.key)) throw this.#twice(last)
    table.members.set(last.key, { keyStart: first.start, lastKeyStart: last.start, value })
    return value
  }

  /** The table of a name, which is created if it is missing. */
  #child(parent: OpenTable, step: Key, by: OpenTable['by']): OpenTable {
    const found = parent.members.get(step.key)?.value
    if (found === undefined) {
      const created = openTable(step.start, by)
      this.#define(parent, [step], created)
      return created
    }
    // The newest item of a list of tables is meant, except by a header that would define it again.
    const table =
      found.kind === 'list' && found.block === true && by === 'parent' ? found.items.at(-1) : found
    if (table === undefined || !isOpen(table)) throw this.#twice(step)
    if (by === 'header') {
      if (table.by !== 'parent') throw this.#twice(step)
      table.by = 'header'
    }
    if (by === 'name' && table.by === 'header') throw this.#twice(step)
    return table
  }

  #path(): Key[] {
    const path: Key[] = []
    do {
      if (path.length > MAX_DEPTH) throw this.#error('nested too deeply')
      if (path.length > 0) this.#at++
      this.#match(SPACE, '')
      const start = this.#at
      const quote = this.#text[start]
      const isQuoted = quote === '"' || quote === "'"
      path.push({ key: isQuoted ? this.#string() : this.#match(BARE_KEY, 'a name'), start })
      this.#match(SPACE, '')
    } while (this.#text[this.#at] === '.')
    return path
  }

  #value(depth: number): Node {
    if (depth > MAX_DEPTH) throw this.#error('nested too deeply')
    const start = this.#at
    const next = this.#text[start]
    if (next === '[') {
      const items: Node[] = []
      this.#each(']', () => items.push(this.#value(depth + 1)))
      return { kind: 'list', items, start, end: this.#at }
    }
    if (next === '{') return this.#inlineTable(depth)
    const isString = next === '"' || next === "'"
    // Numbers and dates are kept as their text, apart from strings.
    const value = isString ? this.#string() : { text: this.#match(WORD, 'a value') }
    return { kind: 'scalar', value, start, end: this.#at }
  }

  #inlineTable(depth: number): Table {
    const start = this.#at
    const table = openTable(start, 'name')
    this.#each('}', () => {
      const path = this.#path()
      if (this.#text[this.#at] !== '=') throw this.#error('expected "="')
      this.#at++
      this.#match(SPACE, '')
      let parent = table
      for (const step of path.slice(0, -1)) parent = this.#child(parent, step, 'name')
      this.#define(parent, path, this.#value(depth + 1))
    })
    return { kind: 'table', members: closed(table.members), inline: true, start, end: this.#at }
  }

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
    const start = this.#at
    const text = this.#text
    if (text.startsWith("'''", start)) return this.#captured(LITERAL_LINES).replace(/^\r?\n/, '')
    if (text.startsWith("'", start)) return this.#captured(LITERAL)
    if (!text.startsWith('"""', start)) return this.#unescaped(this.#captured(BASIC))
    const inner = this.#captured(BASIC_LINES).replace(/^\r?\n/, '')
    return this.#unescaped(inner.replaceAll(/((?:^|[^\\])(?:\\\\)*)\\[ \t]*\r?\n[ \t\r\n]*/g, '$1'))
  }

  #captured(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [all, inner] = pattern.exec(this.#text) ?? []
    if (all === undefined || inner === undefined)
      throw this.#error('the string has no end, or an invalid character')
    this.#at += all.length
    return inner
  }

  #unescaped(inner: string): string {
    return inner.replaceAll(
      /\\(?:x(..)|u(.{4})|U(.{8})|([^]))/g,
      (all, x, u, long, letter: string | undefined) => {
        if (letter !== undefined && letter in ESCAPES) return ESCAPES[letter] ?? ''
        if (letter === '"' || letter === '\\') return letter
        const code = Number.parseInt(String(x ?? u ?? long), 16)
        if (!(code < 0xd800 || (code > 0xdfff && code <= 0x10_ff_ff)))
          throw this.#error(`${all} is not a character`)
        return String.fromCodePoint(code)
      },
    )
  }

  #match(pattern: RegExp, expected: string): string {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text) ?? []
    if (found === undefined) throw this.#error(`expected ${expected}`)
    this.#at += found.length
    return found
  }

  #skip(): void {
    this.#at = skipMatches(LINES, this.#text, this.#at)
  }

  #twice({ key, start }: Key): SyntaxError {
    return syntaxError(this.#text, start, `${JSON.stringify(key)} is defined twice`)
  }

  #error(problem: string): SyntaxError {
    return syntaxError(this.#text, this.#at, problem)
  }
}

interface Key {
  key: string
  start: number
}

function openTable(start: number, by: OpenTable['by']): OpenTable {
  return { kind: 'table', members: new Map(), inline: false, start, end: start, by }
}

function isOpen(node: Node): node is OpenTable {
  return node.kind === 'table' && 'by' in node
}

/** Tables in an inline table cannot be extended after it. */
function closed(members: Map<string, Member>): Map<string, Member> {
  return new Map(
    Array.from(members, ([name, member]) => {
      const { value } = member
      if (!isOpen(value)) return [name, member]
      const { kind, start, end } = value
      return [
        name,
        { ...member, value: { kind, start, end, inline: true, members: closed(value.members) } },
      ]
    }),
  )
}
