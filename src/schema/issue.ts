import { isObject } from '../is-object.js'

export { isObject }

export type JsonSchema = Readonly<Record<string, unknown>>

/** A problem of a value. The path is like `items[2].name`, or empty for the value itself. */
export interface Issue {
  path: string
  message: string
}

/** The value, or the first issues: one more than MAX_ISSUES if there are more than that. */
export type Outcome = { value: unknown; issues?: undefined } | { issues: readonly Issue[] }

/** Maximum number of issues in an error, which must not be larger than the value that it rejects. */
export const MAX_ISSUES = 20
/** Maximum characters of a member name, a path and a message. */
const MAX_NAME = 100
const MAX_PATH = 1000
const MAX_MESSAGE = 1000

/**
 * Collects issues up to a limit. Paths are built on the way out of the recursion, so that a valid value costs nothing.
 * Until `result()` a path has a dot before each name: `.items[2].name`.
 */
export class Issues {
  readonly limit: number
  readonly #list: Issue[] = []

  constructor(limit = MAX_ISSUES + 1) {
    this.limit = limit
  }

  get count(): number {
    return this.#list.length
  }

  get full(): boolean {
    return this.#list.length >= this.limit
  }

  get first(): Issue | undefined {
    return this.#list[0]
  }

  add(message: string, path = ''): void {
    if (!this.full) this.#list.push({ path, message })
  }

  addAll(other: Issues): void {
    for (const { path, message } of other.#list) this.add(message, path)
  }

  /** Prefixes the paths of all issues after the first `count`: they were found in this member or item. */
  prefix(count: number, step: string | number): void {
    for (let index = count; index < this.#list.length; index++) {
      const issue = this.#list[index]
      if (issue !== undefined)
        issue.path = joined(typeof step === 'number' ? `[${step}]` : member(step), issue.path)
    }
  }

  result(): Issue[] {
    return this.#list.map(({ path, message }) => ({ path: shownPath(path), message }))
  }
}

/** A member name as a path segment. */
export function member(name: string): string {
  return `.${shorten(name, MAX_NAME)}`
}

export function shorten(text: string, length = MAX_MESSAGE): string {
  return text.length > length ? `${text.slice(0, boundary(text, length))}…` : text
}

/** The index, or the one before it if it is within a surrogate pair. */
function boundary(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff ? index - 1 : index
}

/** A path that is too long is truncated in the middle. */
function joined(step: string, path: string): string {
  return step.length + path.length > MAX_PATH
    ? `${step}…${path.slice(boundary(path, path.length - MAX_PATH / 2))}`
    : step + path
}

export function shownPath(path: string): string {
  return path.startsWith('.') ? path.slice(1) : path
}

/** Issues as a sentence for a person or a model. */
export function describeIssues(issues: readonly Issue[]): string {
  const lines = issues.slice(0, MAX_ISSUES).map(describeIssue)
  if (issues.length > MAX_ISSUES) lines.push('and more')
  return lines.join('; ')
}

/** `city is required`, `city: Too short`: a message that begins with a verb continues its path. */
export function describeIssue({ path, message }: Issue): string {
  if (path === '') return message
  return `${path}${/^(?:is|must|has|matches) /.test(message) ? '' : ':'} ${message}`
}

const DIALECTS = new Set([
  'https://json-schema.org/draft/2020-12/schema',
  'http://json-schema.org/draft-07/schema',
])

/** Whether `$schema` is a supported dialect. */
export function isDialect(value: unknown): boolean {
  return typeof value === 'string' && DIALECTS.has(value.replace(/#$/, ''))
}

/** A short description of a value, for error messages. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string')
    return value.length <= 40 ? JSON.stringify(value) : `a string of ${sizeOf(value)} characters`
  if (Array.isArray(value)) return 'an array'
  if (isObject(value)) return 'an object'
  return String(value)
}

/* The texts that both validators use, `simple.ts` and `json-schema.ts`. */

export const IS_REQUIRED = 'is required'

/** `must be a string, not 5` */
export function mustBe(expected: string, value: unknown): string {
  return `must be ${expected}, not ${describeValue(value)}`
}

export function unknownProperty(
  known: readonly string[],
  patterns: readonly string[] = [],
): string {
  const names = [...known, ...patterns.map((pattern) => `a name that matches ${pattern}`)]
  return `is an unknown property${names.length === 0 ? '' : shorten(`; expected one of ${names.join(', ')}`)}`
}

/** The values of an `enum`, for error messages. */
export function listValues(values: readonly unknown[]): string {
  const shown = values.slice(0, 50).map((value) => JSON.stringify(value))
  const more = values.length > shown.length ? ` and ${values.length - shown.length} more` : ''
  return values.length === 1 ? shown.join('') : `one of ${shown.join(', ')}${more}`
}

/** The length of a text in code points, as JSON Schema counts it, not in UTF-16 units. */
export function sizeOf(text: string): number {
  let size = text.length
  for (let i = 0; i < text.length; i++) {
    if ((text.codePointAt(i) ?? 0) <= 0xffff) continue
    size--
    i++
  }
  return size
}

/** `a string`, `an integer`, `null`; several with `or`. */
export function listTypes(types: readonly unknown[]): string {
  return types.map((type) => withArticle(String(type))).join(' or ')
}

function withArticle(type: string): string {
  if (type === 'null') return type
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`
}
