/*
 * Regular expressions in linear time. The runtime's own engine backtracks: a
 * pattern such as ^(a+)+$ and forty characters keep it busy for years. Here a
 * pattern becomes a small machine that walks over the text once, with all its
 * possible states at a time (Thompson, 1968). What one character may be (a
 * class, an escape) is left to the runtime, so that it means the same.
 */

/** Whether something is true between two characters of a text. */
type Holds = (text: readonly string[], at: number) => boolean

type Node =
  | { kind: 'one'; test: (character: string) => boolean }
  | { kind: 'assert'; holds: Holds }
  | { kind: 'around'; part: Node; ahead: boolean; negative: boolean }
  | { kind: 'sequence'; parts: Node[] }
  | { kind: 'choice'; parts: Node[] }
  | { kind: 'repeat'; part: Node; min: number; max: number }

type Instruction =
  | { do: 'one'; test: (character: string) => boolean }
  | { do: 'assert'; holds: Holds }
  | { do: 'fork'; to: number[] }
  | { do: 'match' }

const MAX_INSTRUCTIONS = 10_000
/** How many steps a walk may take: about half a second, and more only for a text that is itself long. */
const MAX_STEPS = 20_000_000
const MAX_STEPS_A_CHARACTER = 16

/** Why a pattern cannot be matched in linear time; it may still be harmless. */
class Unsupported extends Error {}
/** A text is too long for what its pattern has to try at each place. */
class TooLong extends Error {}

const matchers = new Map<string, (text: string) => boolean>()

/** Whether a text holds what the pattern describes; undefined where it would take too long to say. */
export function matches(pattern: string, text: string): boolean | undefined {
  let matcher = matchers.get(pattern)
  if (matcher === undefined) {
    matcher = makeMatcher(pattern)
    if (matchers.size > 1000) matchers.clear()
    matchers.set(pattern, matcher)
  }
  try {
    return matcher(text)
  } catch (error) {
    if (error instanceof TooLong) return undefined
    throw error
  }
}

function makeMatcher(pattern: string): (text: string) => boolean {
  const native = new RegExp(pattern, 'u')
  // At the start of the text and with one place to choose from, no engine can go wrong.
  const simple = /^\^(?:[^()|*+?{}[\]\\]|\[(?:[^\]\\]|\\.)*\]|\\[^bBk1-9])*(?:[*+?]|\{\d+(?:,\d*)?\})?\$?$/u.test(pattern)
  if (simple) return (text) => native.test(text)
  try {
    const program = compile(pattern)
    return (text) => walk(program, Array.from(text), false, () => true)
  } catch (error) {
    // `patternProblem` has seen to it that such a one is harmless.
    if (error instanceof Unsupported) return (text) => native.test(text)
    throw error
  }
}

/** What is wrong with a pattern, as part of a sentence. */
export function patternProblem(pattern: string): string | undefined {
  try {
    RegExp(pattern, 'u')
  } catch {
    return `${JSON.stringify(pattern)} is not a regular expression`
  }
  try {
    compile(pattern)
    return undefined
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error
    if (isHarmless(pattern)) return undefined
    return `${JSON.stringify(pattern)} ${error.message} and could take very long for some texts; write it more simply`
  }
}

/** Whether even an engine that tries one way after the other is soon done: there is at most one choice. */
function isHarmless(pattern: string): boolean {
  const bare = pattern.replaceAll(/\\[^]|\[(?:[^\]\\]|\\[^])*\]/gu, 'x').replaceAll(/\(\?(?:[:=!]|<[=!]|<[^>]*>)?/g, '(')
  const repeats = bare.match(/[*+?]\??|\{\d+,\d*\}\??/g) ?? []
  const choices = repeats.length + bare.split('|').length - 1
  if (choices > 1 || /\)(?:[*+]|\{)/.test(bare)) return false
  return repeats.length === 0 || bare.startsWith('^')
}

interface Writing {
  program: Instruction[]
  /** Whether the text will be read from its end. */
  backwards: boolean
  room: { left: number }
}

function compile(pattern: string): Instruction[] {
  return programOf(new Parser(pattern).parse(), false, { left: MAX_INSTRUCTIONS })
}

function programOf(node: Node, backwards: boolean, room: { left: number }): Instruction[] {
  const program: Instruction[] = []
  emit(node, { program, backwards, room })
  program.push({ do: 'match' })
  return program
}

function emit(node: Node, writing: Writing): void {
  const { program, backwards, room } = writing
  if (room.left-- <= 0) throw new Unsupported('is too large')
  switch (node.kind) {
    case 'one':
      program.push({ do: 'one', test: node.test })
      return
    case 'assert':
      program.push({ do: 'assert', holds: node.holds })
      return
    case 'around':
      program.push({ do: 'assert', holds: around(programOf(node.part, node.ahead, room), node) })
      return
    case 'sequence':
      for (const part of backwards ? node.parts.toReversed() : node.parts) emit(part, writing)
      return
    case 'choice':
      emitChoice(node.parts, writing)
      return
    case 'repeat':
      emitRepeat(node, writing)
  }
}

/** Looks around: where the part begins (ahead) or ends (behind) is found for all places of a text in one walk. */
function around(program: readonly Instruction[], { ahead, negative }: Node & { kind: 'around' }): Holds {
  const known = new WeakMap<readonly string[], Uint8Array>()
  return (text, at) => {
    let places = known.get(text)
    if (places === undefined) {
      const found = new Uint8Array(text.length + 1)
      walk(program, text, ahead, (place) => {
        found[place] = 1
        return false
      })
      known.set(text, found)
      places = found
    }
    return (places[at] === 1) !== negative
  }
}

function emitChoice(parts: readonly Node[], writing: Writing): void {
  const { program } = writing
  const fork: Instruction = { do: 'fork', to: [] }
  program.push(fork)
  const ends: { do: 'fork'; to: number[] }[] = []
  for (const part of parts) {
    fork.to.push(program.length)
    emit(part, writing)
    const end = { do: 'fork' as const, to: [] }
    program.push(end)
    ends.push(end)
  }
  for (const end of ends) end.to.push(program.length)
}

function emitRepeat({ part, min, max }: Node & { kind: 'repeat' }, writing: Writing): void {
  const { program } = writing
  for (let i = 0; i < min; i++) emit(part, writing)
  if (max === Infinity) {
    const fork: Instruction = { do: 'fork', to: [program.length + 1] }
    const start = program.push(fork) - 1
    emit(part, writing)
    program.push({ do: 'fork', to: [start] })
    fork.to.push(program.length)
    return
  }
  const forks: { do: 'fork'; to: number[] }[] = []
  for (let i = min; i < max; i++) {
    const fork = { do: 'fork' as const, to: [program.length + 1] }
    forks.push(fork)
    program.push(fork)
    emit(part, writing)
  }
  for (const fork of forks) fork.to.push(program.length)
}

/** Walks over the text once, from one end to the other; `now` holds every state that the machine can be in. */
function walk(program: readonly Instruction[], text: readonly string[], backwards: boolean, matched: (at: number) => boolean): boolean {
  const marks = new Int32Array(program.length).fill(-1)
  let left = Math.max(MAX_STEPS, MAX_STEPS_A_CHARACTER * text.length)
  let now: number[] = []
  for (let step = 0; step <= text.length; step++) {
    const at = backwards ? text.length - step : step
    const character = text[backwards ? at - 1 : at]
    const open = [...now, 0]
    const next: number[] = []
    // The pattern may begin at any place, so state 0 is always among them.
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (marks[state] === step) continue
      marks[state] = step
      if (left-- === 0) throw new TooLong()
      const instruction = program[state]
      if (instruction === undefined) continue
      if (instruction.do === 'match') {
        if (matched(at)) return true
      } else if (instruction.do === 'fork') open.push(...instruction.to)
      else if (instruction.do === 'assert') {
        if (instruction.holds(text, at)) open.push(state + 1)
      } else if (character !== undefined && instruction.test(character)) next.push(state + 1)
    }
    now = next
  }
  return false
}

const isWord = (character: string | undefined) => character !== undefined && /^\w$/.test(character)
const atBoundary = (text: readonly string[], at: number) => isWord(text[at - 1]) !== isWord(text[at])

/** Reads a pattern that the runtime has found valid. */
class Parser {
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
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at] ?? '')) parts.push(this.#repeated())
    return { kind: 'sequence', parts }
  }

  #repeated(): Node {
    const part = this.#atom()
    // Lazy or not, the same texts match.
    const quantifier = this.#take(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/)
    if (quantifier === undefined) return part
    const [, low, comma, high] = /^\{(\d+)(,?)(\d*)\}/.exec(quantifier) ?? []
    if (low !== undefined)
      return { kind: 'repeat', part, min: Number(low), max: comma === '' ? Number(low) : high === '' ? Infinity : Number(high) }
    return { kind: 'repeat', part, min: quantifier.startsWith('+') ? 1 : 0, max: quantifier.startsWith('?') ? 1 : Infinity }
  }

  #atom(): Node {
    if (this.#take(/\^/) !== undefined) return { kind: 'assert', holds: (_, at) => at === 0 }
    if (this.#take(/\$/) !== undefined) return { kind: 'assert', holds: (text, at) => at === text.length }
    if (this.#take(/\\b/) !== undefined) return { kind: 'assert', holds: atBoundary }
    if (this.#take(/\\B/) !== undefined) return { kind: 'assert', holds: (text, at) => !atBoundary(text, at) }
    const look = this.#take(/\(\?<?[=!]/)
    if (look !== undefined) return { kind: 'around', part: this.#group(), ahead: !look.includes('<'), negative: look.endsWith('!') }
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
  #character(): (character: string) => boolean {
    const written =
      this.#take(/\[(?:[^\]\\]|\\[^])*\]/) ??
      this.#take(/\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/) ??
      this.#take(/\\(?:u\{[\da-fA-F]+\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\}|[^])/) ??
      this.#take(/\./)
    if (written === undefined) {
      const literal = this.#take(/[^]/) ?? ''
      return (character) => character === literal
    }
    const expression = new RegExp(`^(?:${written})$`, 'u')
    return (character) => expression.test(character)
  }
}
