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
  return sameValue(parsePattern(expected), parseExactly(actual))
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

function sameValue(expected: unknown, actual: unknown): boolean {
  if (expected === ANY) return true
  if (typeof expected !== 'object' || expected === null) return expected === actual
  if (typeof actual !== 'object' || actual === null || Array.isArray(expected) !== Array.isArray(actual)) return false
  const [one, other] = [new Map(Object.entries(expected)), new Map(Object.entries(actual))]
  if (one.size !== other.size) return false
  for (const [key, value] of one) if (!other.has(key) || !sameValue(value, other.get(key))) return false
  return true
}
