import { matchText } from './text-pattern.js'

/* Whether a message is the one that a transcript expects. */

/** What the variables of a transcript stand for, by name. */
export type Variables = Map<string, unknown>

/** What stands outside of strings in a line of a transcript and is no JSON: `*`, `$name`, and `~` before a string. */
export const TOKENS = /~?"(?:\\.|[^"\\])*"|\*|\$[A-Za-z_]\w*/g

/* In a pattern, each of them is a string that no message holds by accident. */
const ANY = '\u0000any'
const VARIABLE = '\u0000$'
const TEXT = '\u0000~'

/** Whether a message is the expected one. Then `variables` has what its `$name`s stand for. */
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
  /** Where a message is not the expected one, by its members. */
  differences: string[]
  /** The message with the wildcards of the expected one, wherever they fit. */
  written: string
}

/** Compares a message with the expected one. Each `$name` that is new, and has a counterpart, gets a value. */
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
    return { differences: ['it is no JSON'], written: actual }
  }
  const comparison = new Comparing(variables)
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
    json.replace(/"(?:\\.|[^"\\])*"|-?\d{16,}(?![\d.eE])/g, (token) =>
      token.startsWith('"') ? token : JSON.stringify(`\u0000${token}`),
    ),
  )
}

/** A value as it stands in a transcript. */
export function encode(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /"\\u0000(?:(any)|(\$\w+|-?\d+)|~((?:\\.|[^"\\])*))"/g,
    (_, any: string | undefined, plain: string | undefined, text: string) =>
      any === undefined ? (plain ?? `~"${text}"`) : '*',
  )
}

class Comparing {
  readonly differences: string[] = []
  wildcards = false
  readonly #variables: Variables

  constructor(variables: Variables) {
    this.#variables = variables
  }

  /** Compares what a member of an object or array holds, and leaves the wildcard in its place where one fits. */
  compare(expected: unknown, holder: object, key: string, path: string): void {
    const members = holder as Record<string, unknown> // an array has its indices
    const actual = members[key]
    if (typeof expected === 'string' && this.#fits(expected, actual)) {
      this.wildcards = true
      members[key] = expected
    } else if (
      !isStructure(expected) ||
      !isStructure(actual) ||
      Array.isArray(expected) !== Array.isArray(actual)
    ) {
      if (expected !== actual)
        this.differences.push(
          `${path || 'it'} is ${inWords(actual)}, not ${this.#inWords(expected)}`,
        )
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
      if (!wanted.has(key)) this.differences.push(`${inner(key)} is too much: ${inWords(value)}`)
  }

  /** Whether the expected value is a wildcard that takes this one. */
  #fits(expected: string, actual: unknown): boolean {
    if (expected === ANY) return true
    if (expected.startsWith(VARIABLE)) {
      const name = expected.slice(VARIABLE.length)
      if (this.#variables.has(name)) return encode(this.#variables.get(name)) === encode(actual)
      // A copy: what is compared is changed.
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

  #inWords(expected: unknown): string {
    const name =
      typeof expected === 'string' && expected.startsWith(VARIABLE)
        ? expected.slice(VARIABLE.length)
        : undefined
    return name === undefined
      ? inWords(expected)
      : `$${name}, which is ${inWords(this.#variables.get(name))}`
  }
}

function isStructure(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** What a variable stands for within a text. */
export function textOf(variables: Variables, name: string): string | undefined {
  if (!variables.has(name)) return undefined
  const value = variables.get(name)
  return typeof value === 'string' && !/^\u0000-?\d+$/.test(value) ? value : encode(value)
}

/** A value as it stands in the file, cut where it is long. */
function inWords(value: unknown): string {
  const text = encode(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
