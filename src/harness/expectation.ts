import { matchText } from './text-pattern.js'

/* Whether a message is the one that a transcript expects. */

/** Values of a transcript's variables, by name. */
export type Variables = Map<string, unknown>

/** The wildcards of a transcript, which are not JSON: `*`, `$name`, and `~` before a string. */
export const TOKENS = /~?"(?:\\.|[^"\\])*"|\*|\$[A-Za-z_]\w*/g

/* In a parsed pattern, each wildcard is a string that does not occur in messages. */
const ANY = '\u0000any'
const VARIABLE = '\u0000$'
const TEXT = '\u0000~'

/** Whether a message matches. If so, its `$name`s are added to `variables`. */
export function matches(
  expected: string,
  actual: string,
  variables: Variables = new Map(),
): boolean {
  const found: Variables = new Map(variables)
  if (compareMessages(expected, actual, found).differences.length > 0) return false
  for (const [name, value] of found) variables.set(name, value)
  return true
}

export interface Comparison {
  /** How the message differs, by member. */
  differences: string[]
  /** The message, with the wildcards that match. */
  written: string
}

/** Compares a message with the expected one, and sets each new `$name`. */
export function compareMessages(
  expected: string,
  actual: string,
  variables: Variables,
): Comparison {
  const pattern = parsePattern(expected)
  let value: unknown
  try {
    value = parseExactly(actual)
  } catch {
    return { differences: ['it is not JSON'], written: actual }
  }
  const comparison = new MessageComparison(variables)
  const root = { '': value }
  comparison.compare(pattern, root, '', '')
  return {
    differences: comparison.differences,
    written: comparison.wildcards ? encode(root['']) : actual,
  }
}

function parsePattern(expected: string): unknown {
  const json = expected.replace(TOKENS, (token) => {
    if (token === '*') return JSON.stringify(ANY)
    if (token.startsWith('$')) return JSON.stringify(VARIABLE + token.slice(1))
    return token.startsWith('~') ? `"\\u0000~${token.slice(2)}` : token
  })
  try {
    return parseExactly(json)
  } catch {
    throw new SyntaxError(`This expected message is not JSON: ${expected}`)
  }
}

/** Integers beyond 2^53 are compared by their digits. */
function parseExactly(json: string): unknown {
  return JSON.parse(
    json.replace(/"(?:\\.|[^"\\])*(?:"|$)|(?<!\d)-?\d{16,}(?![\d.eE])/g, (token) =>
      token.startsWith('"') ? token : JSON.stringify(`\u0000${token}`),
    ),
  )
}

/** Encodes a value for a transcript. */
export function encode(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /"\\u0000(?:(any)|(\$\w+|-?\d+)|~((?:\\.|[^"\\])*))"/g,
    (_, any: string | undefined, plain: string | undefined, text: string) =>
      any === undefined ? (plain ?? `~"${text}"`) : '*',
  )
}

class MessageComparison {
  readonly differences: string[] = []
  wildcards = false
  readonly #variables: Variables

  constructor(variables: Variables) {
    this.#variables = variables
  }

  /** Compares one member of an object or array; a wildcard that matches replaces it. */
  compare(expected: unknown, holder: object, key: string, path: string): void {
    const members = holder as Record<string, unknown> // an array has its indices
    const actual = members[key]
    if (typeof expected === 'string' && this.#matchesWildcard(expected, actual)) {
      this.wildcards = true
      members[key] = expected
    } else if (
      !isStructure(expected) ||
      !isStructure(actual) ||
      Array.isArray(expected) !== Array.isArray(actual)
    ) {
      if (expected !== actual)
        this.differences.push(`${path || 'it'} is ${show(actual)}, not ${this.#show(expected)}`)
    } else this.#compareMembers(expected, actual, path)
  }

  #compareMembers(expected: object, actual: object, path: string): void {
    const wanted = new Map<string, unknown>(Object.entries(expected))
    const inner = (key: string) =>
      Array.isArray(expected) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    for (const [key, value] of wanted) {
      if (Object.hasOwn(actual, key)) this.compare(value, actual, key, inner(key))
      else this.differences.push(`${inner(key)} is missing`)
    }
    for (const [key, value] of Object.entries(actual))
      if (!wanted.has(key)) this.differences.push(`${inner(key)} is unexpected: ${show(value)}`)
  }

  /** Whether the expected value is a wildcard that matches. */
  #matchesWildcard(expected: string, actual: unknown): boolean {
    if (expected === ANY) return true
    if (expected.startsWith(VARIABLE)) {
      const name = expected.slice(VARIABLE.length)
      if (this.#variables.has(name)) return encode(this.#variables.get(name)) === encode(actual)
      // A copy: the compared value is modified.
      this.#variables.set(name, structuredClone(actual))
      return true
    }
    if (!expected.startsWith(TEXT) || typeof actual !== 'string') return false
    const found = matchText(expected.slice(TEXT.length), actual, (name) =>
      textOf(this.#variables, name),
    )
    for (const [name, text] of found ?? []) this.#variables.set(name, text)
    return found !== undefined
  }

  #show(expected: unknown): string {
    const name =
      typeof expected === 'string' && expected.startsWith(VARIABLE)
        ? expected.slice(VARIABLE.length)
        : undefined
    return name === undefined
      ? show(expected)
      : `$${name}, which is ${show(this.#variables.get(name))}`
  }
}

function isStructure(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** The value of a variable within a string. */
export function textOf(variables: Variables, name: string): string | undefined {
  if (!variables.has(name)) return undefined
  const value = variables.get(name)
  return typeof value === 'string' && !/^\u0000-?\d+$/.test(value) ? value : encode(value)
}

/** Encodes a value, truncated if it is long. */
function show(value: unknown): string {
  const text = encode(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
