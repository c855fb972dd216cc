import {
  type Holds,
  type Node,
  Parser,
  type Subject,
  type Test,
  Unsupported,
} from './pattern-syntax.js'

/*
 * Regular expressions in linear time. The runtime's own engine backtracks: a
 * pattern such as ^(a+)+$ and forty characters keep it busy for years. Here a
 * pattern becomes a small machine that walks over the text once, with all its
 * possible states at a time (Thompson, 1968). What one character may be (a
 * class, an escape) is left to the runtime, so that it means the same.
 */

type Instruction =
  | { do: 'one'; test: Test }
  | { do: 'assert'; holds: Holds }
  | { do: 'fork'; to: number[] }
  | { do: 'match' }

const MAX_INSTRUCTIONS = 10_000
/** How many steps a walk may take: about half a second, and more only for a text that is itself long. */
const MAX_STEPS = 20_000_000
const MAX_STEPS_A_CHARACTER = 16

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
  const simple =
    /^\^(?:[^()|*+?{}[\]\\]|\[(?:[^\]\\]|\\.)*\]|\\[^bBk1-9])*(?:[*+?]|\{\d+(?:,\d*)?\})?\$?$/u.test(
      pattern,
    )
  if (simple) return (text) => native.test(text)
  try {
    const program = compile(pattern)
    return (text) => walk(program, { text }, false, () => true)
  } catch (error) {
    // `patternProblem` has seen to it that such a one is harmless.
    if (error instanceof Unsupported) return (text) => native.test(text)
    throw error
  }
}

/** What is wrong with a pattern, as part of a sentence: it is invalid, or (if `linear`) its cost is not bounded. */
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
    if (!(error instanceof Unsupported)) throw error
    if (!linear || isHarmless(pattern)) return undefined
    return `${JSON.stringify(pattern)} ${error.message} and could take very long for some texts; write it more simply`
  }
}

/**
 * Whether even an engine that backtracks is soon done: there is at most one choice, and none about what a
 * back-reference repeats, because each way of choosing would be followed by another look at all of it.
 */
function isHarmless(pattern: string): boolean {
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
function around(
  program: readonly Instruction[],
  { ahead, negative }: Node & { kind: 'around' },
): Holds {
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
function walk(
  program: readonly Instruction[],
  subject: Subject,
  backwards: boolean,
  matched: (at: number) => boolean,
): boolean {
  const { text } = subject
  const marks = new Int32Array(program.length).fill(-1)
  let left = Math.max(MAX_STEPS, MAX_STEPS_A_CHARACTER * text.length)
  let now: number[] = []
  for (let at = backwards ? text.length : 0; ;) {
    const character = backwards ? codePointBefore(text, at) : text.codePointAt(at)
    const open = [...now, 0]
    const next: number[] = []
    // The pattern may begin at any place, so state 0 is always among them.
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (marks[state] === at) continue
      marks[state] = at
      if (left-- === 0) throw new TooLong()
      const instruction = program[state]
      if (instruction === undefined) continue
      if (instruction.do === 'match') {
        if (matched(at)) return true
      } else if (instruction.do === 'fork') open.push(...instruction.to)
      else if (instruction.do === 'assert') {
        if (instruction.holds(subject, at)) open.push(state + 1)
      } else if (character !== undefined && instruction.test(character)) next.push(state + 1)
    }
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
