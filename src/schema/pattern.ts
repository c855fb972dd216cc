import {
  type Assertion,
  MAX_INSTRUCTIONS,
  type Node,
  Parser,
  type Subject,
  type Test,
  UnsupportedPatternError,
} from './pattern-syntax.js'
import { StepLimitError, Steps } from './steps.js'

/*
 * Regular expressions in linear time. `RegExp` backtracks: for ^(a+)+$ and a text of forty characters it runs for years.
 * Here a pattern is compiled to a nondeterministic finite automaton that reads the text once and follows all possible
 * states at the same time (Thompson, 1968). `RegExp` decides whether a character belongs to a class, so that classes have
 * the same meaning.
 */

type Instruction =
  | { do: 'one'; test: Test }
  | { do: 'assert'; holds: Assertion }
  | { do: 'fork'; to: number[] }
  | { do: 'match' }

/** The steps that the compilation of a character or an instruction counts for, and of a class such as `\p{L}`. */
const COMPILE_STEPS = 30
const CLASS_STEPS = 5000
/** Maximum instructions and characters that stay compiled: about 32 MB. */
const MAX_COMPILED = 200_000

type Matcher = (text: string, steps: Steps) => boolean

const matchers = new Map<string, Matcher>()
/** Instructions and characters that were compiled since `matchers` was empty. */
let compiled = 0

/** Whether the pattern matches somewhere in the text; throws a StepLimitError if that takes too many steps. */
export function matches(pattern: string, text: string, steps = new Steps(text)): boolean {
  try {
    steps.spend(text.length + 16)
    let matcher = matchers.get(pattern)
    if (matcher === undefined) {
      if (matchers.size > 1000 || compiled > MAX_COMPILED) {
        matchers.clear()
        compiled = 0
      }
      matcher = makeMatcher(pattern, steps)
      matchers.set(pattern, matcher)
    }
    return matcher(text, steps)
  } catch (error) {
    if (error instanceof StepLimitError)
      error.message = `takes too many steps to be compared with the pattern ${pattern}`
    throw error
  }
}

function makeMatcher(pattern: string, steps: Steps): Matcher {
  const native = nativeOf(pattern, steps)
  // Anchored at the start and with at most one quantifier at the end, backtracking is linear too.
  const simple =
    /^\^(?:[^()|*+?{}[\]\\]|\[(?:[^\]\\]|\\.)*\]|\\[^bBk1-9])*(?:[*+?]|\{\d+(?:,\d*)?\})?\$?$/u.test(
      pattern,
    )
  compiled += pattern.length
  if (simple) return (text) => native.test(text)
  try {
    const program = compile(pattern, steps)
    return (text, spent) => walk(program, { text, steps: spent }, false, () => true)
  } catch (error) {
    // `patternProblem` has rejected those whose cost is not bounded.
    if (error instanceof UnsupportedPatternError) return (text) => native.test(text)
    throw error
  }
}

/** The problem of a pattern, as part of a sentence: it is invalid, or (if `linear`) its cost is not bounded. */
export function patternProblem(
  pattern: string,
  linear = true,
  steps = new Steps(pattern),
): string | undefined {
  const shown = () => JSON.stringify(pattern)
  let native: RegExp | undefined
  try {
    native = nativeOf(pattern, steps)
    compile(pattern, steps)
    return undefined
  } catch (error) {
    if (error instanceof StepLimitError)
      return 'the patterns of the schema are too large in total; simplify them'
    if (native === undefined) return `${shown()} is not a regular expression`
    if (error instanceof RangeError) return `${shown()} is nested too deeply; simplify it`
    if (!(error instanceof UnsupportedPatternError)) throw error
    if (!linear) return undefined
    if (!hasBoundedBacktracking(pattern))
      return `${shown()} ${error.message} and can take more than linear time; simplify it`
    return isUsable(native) ? undefined : `${shown()} is too large; simplify it`
  }
}

function nativeOf(pattern: string, steps: Steps): RegExp {
  const classes = pattern.split(/\\p/i).length - 1
  steps.spend(COMPILE_STEPS * (pattern.length + 10) + CLASS_STEPS * classes)
  return new RegExp(pattern, 'u')
}

/** The runtime compiles an expression when it is used first, and rejects it then if it is too large. */
function isUsable(expression: RegExp): boolean {
  try {
    expression.test('')
    return true
  } catch {
    return false
  }
}

/**
 * Whether backtracking is bounded for a pattern: it has at most one choice (quantifier or alternative), and none within a
 * group if there is a back-reference, which would compare the captured text again for each choice.
 */
function hasBoundedBacktracking(pattern: string): boolean {
  const bare = pattern
    .replaceAll(/\\[^]|\[(?:[^\]\\]|\\[^])*\]/gu, (part) => (/^\\[1-9k]/.test(part) ? '#' : 'x'))
    .replaceAll(/\(\?(?:[:=!]|<[=!]|<[^>]*>)?/g, '(')
  if (bare.includes('#') && hasRepeatInGroup(bare)) return false
  const repeats = bare.match(/[*+?]\??|\{\d+,\d*\}\??/g) ?? []
  const choices = repeats.length + bare.split('|').length - 1
  if (choices > 1 || /\)(?:[*+]|\{)/.test(bare)) return false
  return repeats.length === 0 || bare.startsWith('^')
}

function hasRepeatInGroup(bare: string): boolean {
  let depth = 0
  for (const character of bare) {
    if (character === '(') depth++
    else if (character === ')') depth--
    else if (depth > 0 && '*+?{'.includes(character)) return true
  }
  return false
}

interface Emitter {
  program: Instruction[]
  /** Whether the text is read from its end. */
  backwards: boolean
  readonly room: { left: number }
  readonly steps: Steps
}

function compile(pattern: string, steps: Steps): Instruction[] {
  return programOf(new Parser(pattern).parse(), false, { room: { left: MAX_INSTRUCTIONS }, steps })
}

function programOf(
  node: Node,
  backwards: boolean,
  { room, steps }: Pick<Emitter, 'room' | 'steps'>,
): Instruction[] {
  const program: Instruction[] = []
  emit(node, { program, backwards, room, steps })
  program.push({ do: 'match' })
  return program
}

function emit(node: Node, emitter: Emitter): void {
  const { program, backwards, room, steps } = emitter
  if (room.left-- <= 0) throw new UnsupportedPatternError('is too large')
  steps.spend(COMPILE_STEPS)
  compiled++
  switch (node.kind) {
    case 'one':
      program.push({ do: 'one', test: node.test })
      return
    case 'assert':
      program.push({ do: 'assert', holds: node.holds })
      return
    case 'lookaround':
      program.push({
        do: 'assert',
        holds: lookaround(programOf(node.part, node.ahead, emitter), node),
      })
      return
    case 'sequence':
      for (const part of backwards ? node.parts.toReversed() : node.parts) emit(part, emitter)
      return
    case 'choice':
      emitChoice(node.parts, emitter)
      return
    case 'repeat':
      emitRepeat(node, emitter)
  }
}

/** Lookahead and lookbehind: one pass over the text finds all positions where the part matches. */
function lookaround(
  program: readonly Instruction[],
  { ahead, negative }: Node & { kind: 'lookaround' },
): Assertion {
  const known = new WeakMap<Subject, Uint8Array>()
  return (subject, at) => {
    let places = known.get(subject)
    if (places === undefined) {
      const found = new Uint8Array(subject.text.length + 1)
      walk(program, subject, ahead, (place) => {
        found[place] = 1
        return false
      })
      known.set(subject, found)
      places = found
    }
    return (places[at] === 1) !== negative
  }
}

function emitChoice(parts: readonly Node[], emitter: Emitter): void {
  const { program } = emitter
  const fork: Instruction = { do: 'fork', to: [] }
  program.push(fork)
  const ends: { do: 'fork'; to: number[] }[] = []
  for (const part of parts) {
    fork.to.push(program.length)
    emit(part, emitter)
    const end = { do: 'fork' as const, to: [] }
    program.push(end)
    ends.push(end)
  }
  for (const end of ends) end.to.push(program.length)
}

function emitRepeat({ part, min, max }: Node & { kind: 'repeat' }, emitter: Emitter): void {
  const { program } = emitter
  for (let i = 0; i < min; i++) emit(part, emitter)
  if (max === Infinity) {
    const fork: Instruction = { do: 'fork', to: [program.length + 1] }
    const start = program.push(fork) - 1
    emit(part, emitter)
    program.push({ do: 'fork', to: [start] })
    fork.to.push(program.length)
    return
  }
  const forks: { do: 'fork'; to: number[] }[] = []
  for (let i = min; i < max; i++) {
    const fork = { do: 'fork' as const, to: [program.length + 1] }
    forks.push(fork)
    program.push(fork)
    emit(part, emitter)
  }
  for (const fork of forks) fork.to.push(program.length)
}

/** Reads the text once from one end to the other; `now` has all states that the automaton can be in. */
function walk(
  program: readonly Instruction[],
  subject: Subject,
  backwards: boolean,
  matched: (at: number) => boolean,
): boolean {
  const { text, steps } = subject
  steps.spend(program.length / 32)
  const marks = new Int32Array(program.length).fill(-1)
  let now: number[] = []
  for (let at = backwards ? text.length : 0; ;) {
    const character = backwards ? codePointBefore(text, at) : text.codePointAt(at)
    const open = [...now, 0]
    const next: number[] = []
    let visited = 0
    // The pattern may begin anywhere, so state 0 is always one of them.
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (marks[state] === at) continue
      marks[state] = at
      visited++
      const instruction = program[state]
      if (instruction === undefined) continue
      if (instruction.do === 'match') {
        if (matched(at)) return true
      } else if (instruction.do === 'fork') open.push(...instruction.to)
      else if (instruction.do === 'assert') {
        if (instruction.holds(subject, at)) open.push(state + 1)
      } else if (character !== undefined && instruction.test(character)) next.push(state + 1)
    }
    steps.spend(visited)
    if (character === undefined) return false
    const size = character > 0xffff ? 2 : 1
    at += backwards ? -size : size
    now = next
  }
}

function codePointBefore(text: string, at: number): number | undefined {
  const pair = text.codePointAt(at - 2)
  return pair !== undefined && pair > 0xffff ? pair : text.codePointAt(at - 1)
}
