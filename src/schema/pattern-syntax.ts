import type { Steps } from './steps.js'

/** The text that is being matched; an object, so that it can be a key of a WeakMap. */
export interface Subject {
  readonly text: string
  /** The steps of the validation that it is a part of. */
  readonly steps: Steps
}

/** A zero-width assertion at a position of the text. */
export type Assertion = (subject: Subject, at: number) => boolean

/** Whether a code point belongs to a character class. */
export type Test = (character: number) => boolean

export type Node =
  | { kind: 'one'; test: Test }
  | { kind: 'assert'; holds: Assertion }
  | { kind: 'lookaround'; part: Node; ahead: boolean; negative: boolean }
  | { kind: 'sequence'; parts: Node[] }
  | { kind: 'choice'; parts: Node[] }
  | { kind: 'repeat'; part: Node; min: number; max: number }

/** The pattern cannot be compiled to the linear-time matcher; its cost may still be bounded. */
export class UnsupportedPatternError extends Error {}

const WORD = /\w/
const atBoundary: Assertion = ({ text }, at) =>
  WORD.test(text.charAt(at - 1)) !== WORD.test(text.charAt(at))

/** Maximum size of a compiled pattern. */
export const MAX_INSTRUCTIONS = 10_000

/** Parses a pattern that `RegExp` has accepted. */
export class Parser {
  readonly #pattern: string
  #at = 0
  #characters = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  parse(): Node {
    return this.#choice()
  }

  /** Reads on by a sticky expression. */
  #take(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at
    const found = expression.exec(this.#pattern)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #choice(): Node {
    const parts = [this.#sequence()]
    while (this.#take(/\|/uy) !== undefined) parts.push(this.#sequence())
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
    // Lazy quantifiers match the same texts.
    const quantifier = this.#take(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/uy)
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
    if (this.#take(/\^/uy) !== undefined) return { kind: 'assert', holds: (_, at) => at === 0 }
    if (this.#take(/\$/uy) !== undefined)
      return { kind: 'assert', holds: ({ text }, at) => at === text.length }
    if (this.#take(/\\b/uy) !== undefined) return { kind: 'assert', holds: atBoundary }
    if (this.#take(/\\B/uy) !== undefined)
      return { kind: 'assert', holds: (subject, at) => !atBoundary(subject, at) }
    const look = this.#take(/\(\?<?[=!]/uy)
    if (look !== undefined)
      return {
        kind: 'lookaround',
        part: this.#group(),
        ahead: !look.includes('<'),
        negative: look.endsWith('!'),
      }
    if (this.#take(/\\(?:[1-9]|k<)/uy) !== undefined)
      throw new UnsupportedPatternError('has a back-reference')
    if (this.#take(/\(\?[^:<]/uy) !== undefined)
      throw new UnsupportedPatternError('has inline flags')
    if (this.#take(/\((?:\?:|\?<[^>]*>)?/uy) !== undefined) return this.#group()
    return { kind: 'one', test: this.#character() }
  }

  /** The content of a group, after its opening parenthesis. */
  #group(): Node {
    const inside = this.#choice()
    this.#take(/\)/uy)
    return inside
  }

  /** A test for one character: a class, an escape, a dot or a literal. */
  #character(): Test {
    if (++this.#characters > MAX_INSTRUCTIONS) throw new UnsupportedPatternError('is too large')
    const written =
      this.#take(/\[(?:[^\]\\]|\\[^])*\]/uy) ??
      this.#take(/\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/uy) ??
      this.#take(
        /\\(?:u\{[\da-fA-F]+\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\}|[^])/uy,
      ) ??
      this.#take(/\./uy)
    if (written === undefined) {
      const literal = this.#take(/[^]/uy)?.codePointAt(0)
      return (character) => character === literal
    }
    return classTest(new RegExp(`^(?:${written})$`, 'u'))
  }
}

/** Caches the result for ASCII: a call of `RegExp` costs more than the rest of a step. */
function classTest(expression: RegExp): Test {
  const isMatch = (character: number) => expression.test(String.fromCodePoint(character))
  const ascii: (boolean | undefined)[] = Array.from({ length: 128 })
  return (character) =>
    character < 128 ? (ascii[character] ??= isMatch(character)) : isMatch(character)
}
