import { TOKENS, type Variables, encode, textOf } from './expectation.js'
import { fillText, variablesOf } from './text-pattern.js'

/*
 * A transcript is a text file of messages. Lines that begin with `>` are sent,
 * lines that begin with `<` are expected, in that order; every other line is a
 * comment. In an expected message `*` matches any value, `$name` any value and
 * stores it, and `~"…"` is a string with either in it. In a sent message, `$name`
 * and `~"…"` are replaced by the stored values.
 */

export interface Step {
  /** The line number, from 1. */
  line: number
  direction: 'send' | 'expect'
  text: string
  /** The variables that it uses (`send`) or sets (`expect`). */
  variables: readonly string[]
}

/** The messages of a transcript. Throws if one sends a variable that no earlier line sets. */
export function parseTranscript(transcript: string): Step[] {
  const steps: Step[] = []
  const given = new Set<string>()
  for (const [index, written] of transcript.split('\n').entries()) {
    const mark = written[0]
    if (mark !== '>' && mark !== '<') continue
    const line = index + 1
    const text = written.slice(1).trim()
    const names = namesIn(text)
    if (mark === '<') for (const name of names) given.add(name)
    const unknown = names.find((name) => !given.has(name))
    if (unknown === undefined)
      steps.push({ line, direction: mark === '>' ? 'send' : 'expect', text, variables: names })
    else if (isTemplate(text))
      throw new SyntaxError(`line ${line} sends $${unknown}, but no "<" line before it sets it`)
    // Not JSON, so `$` is not a variable: the line is sent as it is.
    else steps.push({ line, direction: 'send', text, variables: [] })
  }
  return steps
}

/** The message to send, or the variables without a value. */
export function fill(
  { text, variables: names }: Step,
  variables: Variables,
): string | { missing: readonly string[] } {
  if (names.length === 0) return text
  const missing = names.filter((name) => !variables.has(name))
  if (missing.length > 0) return { missing }
  return replaced(
    text,
    (name) => encode(variables.get(name)),
    (name) => textOf(variables, name),
  )
}

/** A sent message with placeholders for its variables, so that it can be parsed. */
export function withoutVariables(text: string): string {
  return replaced(
    text,
    () => 'null',
    () => '',
  )
}

function replaced(
  text: string,
  value: (name: string) => string,
  inText: (name: string) => string | undefined,
): string {
  return text.replace(TOKENS, (token) => {
    if (token.startsWith('$')) return value(token.slice(1))
    if (!token.startsWith('~')) return token
    const pattern = patternOf(token)
    return pattern === undefined ? token : JSON.stringify(fillText(pattern, inText))
  })
}

function namesIn(text: string): string[] {
  const names = [...text.matchAll(TOKENS)].flatMap(([token]) =>
    token.startsWith('$')
      ? [token.slice(1)]
      : token.startsWith('~')
        ? variablesOf(patternOf(token) ?? '')
        : [],
  )
  return [...new Set(names)]
}

/** Whether a line is JSON once its variables have values. */
function isTemplate(text: string): boolean {
  try {
    JSON.parse(withoutVariables(text))
    return true
  } catch {
    return false
  }
}

/** The text of `~"…"`; undefined if the string is not JSON. */
function patternOf(token: string): string | undefined {
  try {
    return String(JSON.parse(token.slice(1)))
  } catch {
    return undefined
  }
}
