/* Configuration files as values with places in the text, so that a change leaves the rest of the text as it is. */

interface Place {
  readonly start: number
  readonly end: number
}
/** A string, or any other value that is not changed here. */
export interface Scalar extends Place {
  readonly kind: 'scalar'
  readonly value: unknown
}
export interface List extends Place {
  readonly kind: 'list'
  readonly items: Node[]
  /** YAML: one item a line, each after a dash. */
  readonly block?: boolean
}
export interface Table extends Place {
  readonly kind: 'table'
  readonly members: Map<string, Member>
  /** Written as `{ … }`. */
  readonly inline: boolean
}
export type Node = Scalar | List | Table
export interface Member {
  /** Where its name begins; in TOML, that may be a dotted one. */
  readonly keyStart: number
  /** Where the last part of a dotted name begins. */
  readonly lastKeyStart: number
  readonly value: Node
}

/** A replacement in a text. */
export interface Splice extends Place {
  readonly text: string
}

export interface Format {
  /** Throws a `SyntaxError` that says where the text is wrong. */
  parse(text: string): Table
  /** A string, as the format writes it, also in a list on one line. */
  quote(value: string): string
  /** The text of a string for another place: `raw` as it is, or quoted anew if it would mean something else there. */
  moved(raw: string, value: string): string
  /** Adds a list beside another member of a table. */
  addList(text: string, table: Table, beside: Member, name: string, list: string): Splice
}

/** A file that is not what its format says, with the line and column. */
export function syntaxError(text: string, offset: number, problem: string): SyntaxError {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  const column = offset - before.lastIndexOf('\n')
  return new SyntaxError(`line ${line}, column ${column}: ${problem}`)
}

/** Nested deeper than any configuration; parsers call themselves. */
export const MAX_DEPTH = 200

export function apply(text: string, splices: readonly Splice[]): string {
  let result = ''
  let at = 0
  for (const { start, end, text: added } of splices.toSorted(
    (one, other) => one.start - other.start,
  )) {
    result += text.slice(at, start) + added
    at = end
  }
  return result + text.slice(at)
}

/** The position after everything that a sticky pattern matches, one match after the other. */
export function skipMatches(pattern: RegExp, text: string, position: number): number {
  let at = position
  for (;;) {
    pattern.lastIndex = at
    const [found = ''] = pattern.exec(text) ?? []
    if (found === '') return at
    at += found.length
  }
}

/** The value of a node, for comparisons. */
export function plainValue(node: Node): unknown {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'list') return node.items.map(plainValue)
  return Object.fromEntries(
    Array.from(node.members, ([name, { value }]) => [name, plainValue(value)]),
  )
}

/** The line break before a position, with the indentation that follows it; undefined if other text is between. */
export function lineBreakBefore(text: string, position: number): string | undefined {
  const end = blanksBefore(text, position)
  if (text[end - 1] !== '\n') return undefined
  return text.slice(text[end - 2] === '\r' ? end - 2 : end - 1, position)
}

/** Where the spaces and tabs before a position begin. */
function blanksBefore(text: string, position: number): number {
  let start = position
  while (text[start - 1] === ' ' || text[start - 1] === '\t') start--
  return start
}

/** Puts texts before the first item of a list, as its other items are written. Throws if it cannot. */
export function prepend(text: string, list: List, added: readonly string[]): Splice {
  const [first] = list.items
  if (first === undefined)
    return { start: list.start + 1, end: list.start + 1, text: added.join(', ') }
  const separator = separatorBefore(text, list, first)
  return {
    start: first.start,
    end: first.start,
    text: added.map((item) => item + separator).join(''),
  }
}

function separatorBefore(text: string, list: List, first: Node): string {
  if (list.block === true) {
    const dash = blanksBefore(text, first.start) - 1
    const lineBreak = text[dash] === '-' ? lineBreakBefore(text, dash) : undefined
    if (lineBreak === undefined || dash + 1 === first.start)
      throw new SyntaxError('the list is not written as one item a line')
    return text.slice(dash - lineBreak.length, first.start)
  }
  const lineBreak = lineBreakBefore(text.slice(list.start), first.start - list.start)
  return lineBreak === undefined ? ', ' : `,${lineBreak}`
}

/** Removes the first items of a list: the opposite of `prepend`. */
export function removeFirst({ items }: List, count: number): Splice {
  const start = items[0]?.start ?? 0
  const next = items[count]
  return { start, end: next?.start ?? items[count - 1]?.end ?? start, text: '' }
}
