import {
  type Assertion,
  type Node,
  Parser,
  type Subject,
  type Test,
  UnsupportedPatternError,
} from './pattern-syntax.js'

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

const MAX_INSTRUCTIONS = 10_000
/** Maximum steps of a match: about half a second. */
const MAX_STEPS = 20_000_000
/** Maximum steps of one validation, of which matches and compilations are a part: about two seconds. */
const MAX_TOTAL_STEPS = 5 * MAX_STEPS
/** The steps that the compilation of a character or an instruction counts for. */
const COMPILE_STEPS = 50
/** Maximum instructions that stay compiled: about 32 MB. */
const MAX_COMPILED = 200_000
/** Steps for each character that count against neither. */
const FREE_STEPS = 16

/** The maximum steps are exceeded, and the value cannot be validated. */
export class StepLimitError extends Error {}

let totalLeft = MAX_TOTAL_STEPS

/** Begins the validation of a value or of a schema, with the maximum steps. */
export function resetSteps(): void {
  totalLeft = MAX_TOTAL_STEPS
}

/** Counts steps of a validation. The cost of a schema is multiplied by that of the value, and both may be a peer's. */
export function spend(steps: number): void {
  totalLeft -= steps
  if (totalLeft < 0) throw new StepLimitError('takes too many steps to be validated')
}

const matchers = new Map<string, (text: string) => boolean>()
/** Instructions that were compiled since `matchers` was empty. */
let compiled = 0

/** Whether the pattern matches somewhere in the text; throws a StepLimitError if that takes too many steps. */
export function matches(pattern: string, text: string): boolean {
  try {
    spend(text.length + 16)
    let matcher = matchers.get(pattern)
    if (matcher === undefined) {
      if (matchers.size > 1000 || compiled > MAX_COMPILED) {
        matchers.clear()
        compiled = 0
      }
      matcher = makeMatcher(pattern)
      matchers.set(pattern, matcher)
    }
    return matcher(text)
  } catch (error) {
    if (error instanceof StepLimitError)
      error.message = `takes too many steps to be compared with the pattern ${pattern}`
    throw error
  }
}

function makeMatcher(pattern: string): (text: string) => boolean {
  spend(COMPILE_STEPS * (pattern.length + 10))
  const native = new RegExp(pattern, 'u')
  // Anchored at the start and with at most one quantifier at the end, backtracking is linear too.
  const simple =
    /^\^(?:[^()|*+?{}[\]\\]|\[(?:[^\]\\]|\\.)*\]|\\[^bBk1-9])*(?:[*+?]|\{\d+(?:,\d*)?\})?\$?$/u.test(
      pattern,
    )
  if (simple) return (text) => native.test(text)
  try {
    const program = compile(pattern)
    return (text) => walk(program, { text }, false, () => true)
  } catch (error) {
    // `patternProblem` has rejected those whose cost is not bounded.
    if (error instanceof UnsupportedPatternError) return (text) => native.test(text)
    throw error
  }
}

/** The problem of a pattern, as part of a sentence: it is invalid, or (if `linear`) its cost is not bounded. */
export function patternProblem(pattern: string, linear = true): string | undefined {
  try {
    RegExp(pattern, 'u')
  } catch {
    return `${JSON.stringify(pattern)} is not a regular expression`
  }
  try {
    compile(pattern)
    return undefined
  } catch (error) {
    if (error instanceof StepLimitError)
      return 'the patterns of the schema are too large in total; simplify them'
    if (!(error instanceof UnsupportedPatternError)) throw error
    if (!linear || hasBoundedBacktracking(pattern)) return undefined
    return `${JSON.stringify(pattern)} ${error.message} and can take more than linear time; simplify it`
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

function emit(node: Node, emitter: Emitter): void {
  const { program, backwards, room } = emitter
  if (room.left-- <= 0) throw new UnsupportedPatternError('is too large')
  spend(COMPILE_STEPS)
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
        holds: lookaround(programOf(node.part, node.ahead, room), node),
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
  const { text } = subject
  const marks = new Int32Array(program.length).fill(-1)
  const free = FREE_STEPS * text.length
  const most = free + Math.max(0, Math.min(MAX_STEPS, totalLeft))
  let left = most
  const end = (found: boolean) => {
    totalLeft -= Math.max(0, most - left - free)
    return found
  }
  let now: number[] = []
  for (let at = backwards ? text.length : 0; ;) {
    const character = backwards ? codePointBefore(text, at) : text.codePointAt(at)
    const open = [...now, 0]
    const next: number[] = []
    // The pattern may begin anywhere, so state 0 is always one of them.
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (marks[state] === at) continue
      marks[state] = at
      if (left-- <= 0) throw new StepLimitError()
      const instruction = program[state]
      if (instruction === undefined) continue
      if (instruction.do === 'match') {
        if (matched(at)) return end(true)
      } else if (instruction.do === 'fork') open.push(...instruction.to)
      else if (instruction.do === 'assert') {
        if (instruction.holds(subject, at)) open.push(state + 1)
      } else if (character !== undefined && instruction.test(character)) next.push(state + 1)
    }
    if (character === undefined) return end(false)
    const size = character > 0xffff ? 2 : 1
    at += backwards ? -size : size
    now = next
  }
}

function codePointBefore(text: string, at: number): number | undefined {
  const pair = text.codePointAt(at - 2)
  return pair !== undefined && pair > 0xffff ? pair : text.codePointAt(at - 1)
}
