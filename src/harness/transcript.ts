import { TOKENS, type Variables, encode, textOf } from './expectation.js'
import { fillText, variablesOf } from './text-pattern.js'

/*
 * A transcript is a conversation as a text file. Lines that begin with `>` are
 * sent, lines that begin with `<` are expected back, in that order; every other
 * line is prose. In an expected message `*` stands for any value, `$name` for
 * one that is remembered, and `~"…"` is a text with either in it. In a message
 * that is sent, `$name` and `~"…"` stand for what was remembered.
 */

export interface Step {
  /** Its line in the file, from 1. */
  line: number
  direction: 'send' | 'expect'
  text: string
  /** The variables that it needs to be sent, or gives a value when it has come. */
  variables: readonly string[]
}

/** The lines that are messages. Throws where one sends a variable that no line before it can give a value. */
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
      throw new SyntaxError(`line ${line} sends $${unknown}, but no "<" line before it has it`)
    // Whatever it is, it was not meant to be JSON: it is sent as it stands.
    else steps.push({ line, direction: 'send', text, variables: [] })
  }
  return steps
}

/** The message that a line sends, or the variables that have no value. */
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

/** A message that is sent, as JSON, whatever its variables will be; as it stands where it is none. */
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

/** Whether a line would be JSON if its variables had values. */
function isTemplate(text: string): boolean {
  try {
    JSON.parse(withoutVariables(text))
    return true
  } catch {
    return false
  }
}

/** The text of `~"…"`; undefined where the string is no JSON. */
function patternOf(token: string): string | undefined {
  try {
    return String(JSON.parse(token.slice(1)))
  } catch {
    return undefined
  }
}
