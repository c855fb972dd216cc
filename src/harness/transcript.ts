/*
 * A transcript is a conversation as a text file. Lines that begin with `>` are
 * sent, lines that begin with `<` are expected back, in that order; every other
 * line is prose. A bare `*` in an expected message stands for any value.
 */

export interface Step {
  /** Its line in the file, from 1. */
  line: number
  direction: 'send' | 'expect'
  text: string
}

export function parseTranscript(transcript: string): Step[] {
  const steps: Step[] = []
  for (const [index, line] of transcript.split('\n').entries()) {
    const mark = line[0]
    if (mark === '>' || mark === '<')
      steps.push({ line: index + 1, direction: mark === '>' ? 'send' : 'expect', text: line.slice(1).trim() })
  }
  return steps
}

const ANY = '\u0000any'

/** Whether a message is the expected one, key order and `*` aside. */
export function matches(expected: string, actual: string): boolean {
  return differencesOf(expected, actual).length === 0
}

/** Where a message is not the expected one, by its members. */
export function differencesOf(expected: string, actual: string): string[] {
  const pattern = parsePattern(expected)
  let value: unknown
  try {
    value = parseExactly(actual)
  } catch {
    return ['it is no JSON']
  }
  const found: string[] = []
  compare(pattern, value, '', found)
  return found
}

function parsePattern(expected: string): unknown {
  // A star outside of strings becomes a string that no message can hold by accident.
  const json = expected.replace(/"(?:\\.|[^"\\])*"|\*/g, (token) => (token === '*' ? JSON.stringify(ANY) : token))
  try {
    return parseExactly(json)
  } catch {
    throw new SyntaxError(`This expected message is not JSON: ${expected}`)
  }
}

/** Integers beyond 2^53 are compared by their digits. */
function parseExactly(json: string): unknown {
  return JSON.parse(
    json.replace(/"(?:\\.|[^"\\])*"|-?\d{16,}(?![\d.eE])/g, (token) => (token.startsWith('"') ? token : JSON.stringify(`\u0000${token}`))),
  )
}

function compare(expected: unknown, actual: unknown, path: string, found: string[]): void {
  if (expected === ANY) return
  const at = path === '' ? 'it' : path
  if (typeof expected !== 'object' || expected === null || typeof actual !== 'object' || actual === null) {
    if (expected !== actual) found.push(`${at} is ${inWords(actual)}, not ${inWords(expected)}`)
    return
  }
  if (Array.isArray(expected) !== Array.isArray(actual)) {
    found.push(`${at} is ${inWords(actual)}, not ${inWords(expected)}`)
    return
  }
  const [one, other] = [new Map<string, unknown>(Object.entries(expected)), new Map<string, unknown>(Object.entries(actual))]
  const inner = (key: string) => (Array.isArray(expected) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`)
  for (const [key, value] of one) {
    if (other.has(key)) compare(value, other.get(key), inner(key), found)
    else found.push(`${inner(key)} is missing`)
  }
  for (const [key, value] of other) if (!one.has(key)) found.push(`${inner(key)} is too much: ${inWords(value)}`)
}

/** A value as it stands in the file, cut where it is long. */
function inWords(value: unknown): string {
  const json = JSON.stringify(value).replaceAll(/"\\u0000(any|-?\d+)"/g, (_, token: string) => (token === 'any' ? '*' : token))
  return json.length > 200 ? `${json.slice(0, 200)}…` : json
}
