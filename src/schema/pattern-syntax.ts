/** A text that is being matched: an object, so that what is known of it can be kept beside it. */
export interface Subject {
  readonly text: string
}

/** Whether something is true between two characters of a text. */
export type Holds = (subject: Subject, at: number) => boolean

/** Whether a character, given by its code point, is of a class. */
export type Test = (character: number) => boolean

export type Node =
  | { kind: 'one'; test: Test }
  | { kind: 'assert'; holds: Holds }
  | { kind: 'around'; part: Node; ahead: boolean; negative: boolean }
  | { kind: 'sequence'; parts: Node[] }
  | { kind: 'choice'; parts: Node[] }
  | { kind: 'repeat'; part: Node; min: number; max: number }

/** Why a pattern cannot be matched in linear time; it may still be harmless. */
export class Unsupported extends Error {}

const WORD = /\w/
const atBoundary: Holds = ({ text }, at) =>
  WORD.test(text.charAt(at - 1)) !== WORD.test(text.charAt(at))

/** Reads a pattern that the runtime has found valid. */
export class Parser {
  readonly #pattern: string
  #at = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  parse(): Node {
    return this.#choice()
  }

  #take(expression: RegExp): string | undefined {
    const sticky = new RegExp(expression.source, 'uy')
    sticky.lastIndex = this.#at
    const found = sticky.exec(this.#pattern)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #choice(): Node {
    const parts = [this.#sequence()]
    while (this.#take(/\|/) !== undefined) parts.push(this.#sequence())
    const [only] = parts
    return parts.length === 1 && only !== undefined ? only : { kind: 'choice', parts }
  }

  #sequence(): Node {
    const parts: Node[] = []
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at] ?? ''))
      parts.push(this.#repeated())
    return { kind: 'sequence', parts }
  }

  #repeated(): Node {
    const part = this.#atom()
    // Lazy or not, the same texts match.
    const quantifier = this.#take(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/)
    if (quantifier === undefined) return part
    // {2}, {2,} or {2,4}
    const [, low, comma, high] = /^\{(\d+)(,?)(\d*)\}/.exec(quantifier) ?? []
    if (low !== undefined) {
      const atMost = high === '' ? Infinity : Number(high)
      const max = comma === '' ? Number(low) : atMost
      return { kind: 'repeat', part, min: Number(low), max }
    }
    return {
      kind: 'repeat',
      part,
      min: quantifier.startsWith('+') ? 1 : 0,
      max: quantifier.startsWith('?') ? 1 : Infinity,
    }
  }

  #atom(): Node {
    if (this.#take(/\^/) !== undefined) return { kind: 'assert', holds: (_, at) => at === 0 }
    if (this.#take(/\$/) !== undefined)
      return { kind: 'assert', holds: ({ text }, at) => at === text.length }
    if (this.#take(/\\b/) !== undefined) return { kind: 'assert', holds: atBoundary }
    if (this.#take(/\\B/) !== undefined)
      return { kind: 'assert', holds: (subject, at) => !atBoundary(subject, at) }
    const look = this.#take(/\(\?<?[=!]/)
    if (look !== undefined)
      return {
        kind: 'around',
        part: this.#group(),
        ahead: !look.includes('<'),
        negative: look.endsWith('!'),
      }
    if (this.#take(/\\(?:[1-9]|k<)/) !== undefined) throw new Unsupported('refers back')
    if (this.#take(/\(\?[^:<]/) !== undefined) throw new Unsupported('changes its own flags')
    if (this.#take(/\((?:\?:|\?<[^>]*>)?/) !== undefined) return this.#group()
    return { kind: 'one', test: this.#character() }
  }

  /** What is within a group that has been opened. */
  #group(): Node {
    const inside = this.#choice()
    this.#take(/\)/)
    return inside
  }

  /** One character of the text: a class, an escape, a dot, or itself. */
  #character(): Test {
    const written =
      this.#take(/\[(?:[^\]\\]|\\[^])*\]/) ??
      this.#take(/\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/) ??
      this.#take(
        /\\(?:u\{[\da-fA-F]+\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\}|[^])/,
      ) ??
      this.#take(/\./)
    if (written === undefined) {
      const literal = this.#take(/[^]/)?.codePointAt(0)
      return (character) => character === literal
    }
    return classTest(new RegExp(`^(?:${written})$`, 'u'))
  }
}

/** Asks the expression once for each ASCII character: a call of the runtime's engine costs more than the rest of a step. */
function classTest(expression: RegExp): Test {
  const isMatch = (character: number) => expression.test(String.fromCodePoint(character))
  const ascii: (boolean | undefined)[] = Array.from({ length: 128 })
  return (character) =>
    character < 128 ? (ascii[character] ??= isMatch(character)) : isMatch(character)
}
