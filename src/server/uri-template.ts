/*
 * URI templates (RFC 6570, all four levels): expanded, and matched back to their
 * variables. Matching goes over the URI once, from left to right: a variable
 * ends where the text behind its expression begins. Templates in which that
 * cannot be told, such as `{a}{b}`, are refused when they are read.
 */

import { looseKey, normalizeUri } from './uri.js'

interface Variable {
  name: string
  explode: boolean
  prefix: number | undefined
}
interface Expression {
  operator: string
  variables: Variable[]
}
type Part = string | Expression

export type Values = Readonly<Record<string, string | readonly string[]>>

interface Style {
  first: string
  separator: string
  named: boolean
  /** What follows the name of an empty value. */
  empty: string
  reserved: boolean
}

const STYLES: Readonly<Record<string, Style>> = {
  '': { first: '', separator: ',', named: false, empty: '', reserved: false },
  '+': { first: '', separator: ',', named: false, empty: '', reserved: true },
  '#': { first: '#', separator: ',', named: false, empty: '', reserved: true },
  '.': { first: '.', separator: '.', named: false, empty: '', reserved: false },
  '/': { first: '/', separator: '/', named: false, empty: '', reserved: false },
  ';': { first: ';', separator: ';', named: true, empty: '', reserved: false },
  '?': { first: '?', separator: '&', named: true, empty: '=', reserved: false },
  '&': { first: '&', separator: '&', named: true, empty: '=', reserved: false },
}

/** Maximum length of a URI that is matched. */
export const MAX_LENGTH = 8192

export class UriTemplate {
  readonly source: string
  readonly #parts: Part[]
  /** The same with its text in normal form. */
  readonly #normal: Part[]
  #folded: Part[] | undefined

  /** Throws if the template is invalid or ambiguous. */
  constructor(source: string) {
    this.source = source
    this.#parts = parse(source)
    this.#normal = rewriteLiterals(this.#parts, '/', (uri) => normalizeUri(uri).text)
    for (const [index, part] of this.#parts.entries()) {
      const next = this.#parts[index + 1]
      if (typeof part === 'string' || typeof next !== 'object') continue
      // The first character of such an expression ends the one before it.
      if (styleOf(next).first === '' || styleOf(part).reserved)
        throw new TypeError(`"${source}" cannot be matched: adjacent variables are ambiguous`)
    }
    const names = this.variables
    const twice = names.find((name, index) => names.indexOf(name) !== index)
    if (twice !== undefined) throw new TypeError(`"${source}" has the variable ${twice} twice`)
  }

  get variables(): string[] {
    return this.#parts.flatMap((part) =>
      typeof part === 'string' ? [] : part.variables.map(({ name }) => name),
    )
  }

  /** The template without the names of its variables: two of the same shape match the same URIs. */
  get shape(): string {
    return this.#normal
      .map((part) =>
        typeof part === 'string'
          ? part
          : `{${part.operator}${part.variables.map((each) => (each.explode ? '*' : '-')).join()}}`,
      )
      .join('')
  }

  expand(values: Values): string {
    return this.#parts
      .map((part) => (typeof part === 'string' ? part : expandExpression(part, values)))
      .join('')
  }

  /**
   * The values of the variables in a URI in normal form, or undefined if it is not of this template. They are taken
   * from `cased`: the same URI with the host in the case in which it was sent.
   */
  match(uri: string, cased = uri): Record<string, string | string[]> | undefined {
    return matchParts(this.#normal, uri, cased)
  }

  /** Whether a URI that `looseKey` returned matches this template. */
  matchesFolded(uri: string): boolean {
    return matchParts(this.#foldedParts, uri, uri) !== undefined
  }

  /** The text before the first variable and behind the last one, of URIs in normal form and of those that `looseKey` returned. */
  get ends(): { normal: Ends; folded: Ends } {
    return { normal: endsOf(this.#normal), folded: endsOf(this.#foldedParts) }
  }

  get #foldedParts(): Part[] {
    return (this.#folded ??= rewriteLiterals(this.#parts, '', (uri) => looseKey(normalizeUri(uri))))
  }

  /** Whether a value would escape from the path that it is inserted in. */
  escapesPath(values: Values): boolean {
    return this.#parts.some((part, index) => {
      if (typeof part === 'string') return false
      const before = this.#parts[index - 1]
      return part.variables.some(({ name }) =>
        [values[name] ?? []].flat().some((value) => valueEscapesPath(value, part, before)),
      )
    })
  }
}

export type Ends = readonly [first: string, last: string]

function endsOf(parts: readonly Part[]): Ends {
  const text = (part: Part | undefined) => (typeof part === 'string' ? part : '')
  return [text(parts[0]), parts.length > 1 ? text(parts.at(-1)) : '']
}

/** Placeholders for expressions while the text around them is normalized: for those that can be part of a host, and for others. */
const IN_HOST = 'zz1variable1zz'
const AFTER_HOST = 'zz2variable2zz'

/** The parts with their literals rewritten as a URI; `afterHost` is inserted before expressions that cannot be part of a host. */
function rewriteLiterals(
  parts: readonly Part[],
  afterHost: string,
  rewrite: (uri: string) => string,
): Part[] {
  const expressions = parts.filter((part) => typeof part !== 'string')
  const place = ({ operator }: Expression) =>
    operator === '' || operator === '.' ? IN_HOST : afterHost + AFTER_HOST
  const uri = parts.map((part) => (typeof part === 'string' ? part : place(part))).join('')
  const literals = rewrite(uri).split(new RegExp(`${IN_HOST}|${afterHost}${AFTER_HOST}`))
  // A template that contains a placeholder itself is left as it is.
  if (literals.length !== expressions.length + 1) return [...parts]
  return literals
    .flatMap((literal, index) => [literal, expressions[index] ?? ''])
    .filter((part) => part !== '')
}

function matchParts(
  parts: readonly Part[],
  uri: string,
  cased: string,
): Record<string, string | string[]> | undefined {
  if (uri.length > MAX_LENGTH) return undefined
  const found: Record<string, string | string[]> = Object.create(null) as Record<
    string,
    string | string[]
  >
  let at = 0
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'string') {
      if (!uri.startsWith(part, at)) return undefined
      at += part.length
      continue
    }
    const end = endOf(part, parts[index + 1], uri, at)
    if (end === undefined || !matchExpression(part, cased.slice(at, end), found)) return undefined
    at = end
  }
  return at === uri.length ? found : undefined
}

/** The end of the expression that begins at `at`. */
function endOf(
  expression: Expression,
  next: Part | undefined,
  uri: string,
  at: number,
): number | undefined {
  const { first, reserved } = styleOf(expression)
  // Without its first character the expression is empty.
  if (first !== '' && !uri.startsWith(first, at)) return at
  const span = spanOf(uri, at + first.length, expression.operator, reserved)
  if (next === undefined) return span
  const behind = typeof next === 'string' ? next : styleOf(next).first
  const end = uri.indexOf(behind, at + first.length)
  if (end !== -1 && end <= span) return end
  return typeof next === 'string' ? undefined : span
}

function styleOf({ operator }: Expression): Style {
  return STYLES[operator] ?? (STYLES[''] as Style)
}

/** The end of the characters that the value may have. */
function spanOf(uri: string, start: number, operator: string, reserved: boolean): number {
  if (reserved) return uri.length
  const stops =
    operator === '' || operator === '.'
      ? '/?#'
      : operator === '/'
        ? '?#'
        : operator === ';'
          ? '/?#'
          : '#'
  let end = start
  while (end < uri.length && !stops.includes(uri[end] ?? '')) end++
  return end
}

function parse(source: string): Part[] {
  const parts: Part[] = []
  for (const piece of source.split(/(\{[^{}]*\})/)) {
    if (piece === '') continue
    if (!piece.startsWith('{')) {
      if (/[{}]/.test(piece))
        throw new TypeError(`"${source}" is not a URI template: unbalanced brace`)
      parts.push(piece)
      continue
    }
    const [, operator = '', list = ''] = /^\{([+#./;?&]?)(.+)\}$/.exec(piece) ?? []
    const variables = list.split(',').map((written) => {
      const [, name, explode, prefix] =
        /^((?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:[A-Za-z0-9_.]|%[0-9A-Fa-f]{2})*)(\*)?(?::([1-9]\d{0,3}))?$/.exec(
          written,
        ) ?? []
      if (name === undefined || (explode !== undefined && prefix !== undefined))
        throw new TypeError(`"${source}" is not a URI template: ${piece} is not an expression`)
      return {
        name,
        explode: explode !== undefined,
        prefix: prefix === undefined ? undefined : Number(prefix),
      }
    })
    parts.push({ operator, variables })
  }
  return parts
}

function expandExpression(expression: Expression, values: Values): string {
  const style = styleOf(expression)
  const shown: string[] = []
  for (const { name, explode, prefix } of expression.variables) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined || (typeof value !== 'string' && value.length === 0)) continue
    if (typeof value === 'string')
      shown.push(
        named(
          style,
          name,
          encode(
            prefix === undefined ? value : Array.from(value).slice(0, prefix).join(''),
            style.reserved,
          ),
        ),
      )
    else if (explode)
      for (const item of value) shown.push(named(style, name, encode(item, style.reserved)))
    else shown.push(named(style, name, value.map((item) => encode(item, style.reserved)).join(',')))
  }
  return shown.length === 0 ? '' : style.first + shown.join(style.separator)
}

function named(style: Style, name: string, value: string): string {
  if (!style.named) return value
  return value === '' ? `${name}${style.empty}` : `${name}=${value}`
}

function encode(value: string, reserved: boolean): string {
  const encoded = encodeURIComponent(value.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  if (!reserved) return encoded
  // Reserved characters and what is encoded already stay as they are.
  return encodeURI(value.toWellFormed())
    .replaceAll(/%25([0-9A-Fa-f]{2})/g, '%$1')
    .replaceAll(/%5B/g, '[')
    .replaceAll(/%5D/g, ']')
}

function matchExpression(
  expression: Expression,
  text: string,
  found: Record<string, string | string[]>,
): boolean {
  const style = styleOf(expression)
  if (text === '' && style.first !== '') return true
  const { variables } = expression
  const rest = text.slice(style.first.length)
  // Where reserved characters are not encoded, a comma is part of the value, as in `{+path}`.
  const whole = style.reserved && variables.length === 1 && variables[0]?.explode === false
  const pieces = whole ? [rest] : rest.split(style.separator)
  return style.named ? matchNamed(variables, pieces, found) : matchListed(variables, pieces, found)
}

function matchNamed(
  variables: readonly Variable[],
  pieces: readonly string[],
  found: Record<string, string | string[]>,
): boolean {
  const known = new Map(variables.map((variable) => [variable.name, variable]))
  for (const piece of pieces) {
    const equals = piece.indexOf('=')
    const variable = known.get(equals === -1 ? piece : piece.slice(0, equals))
    const value = decode(equals === -1 ? '' : piece.slice(equals + 1))
    if (variable === undefined || value === undefined) return false
    const before = found[variable.name]
    if (variable.explode) found[variable.name] = [...(Array.isArray(before) ? before : []), value]
    else if (before === undefined) found[variable.name] = value
    else return false
  }
  return true
}

function matchListed(
  variables: readonly Variable[],
  pieces: readonly string[],
  found: Record<string, string | string[]>,
): boolean {
  const last = variables.at(-1)
  if (last === undefined || (pieces.length > variables.length && !last.explode)) return false
  for (const [index, variable] of variables.entries()) {
    const taken = variable.explode
      ? pieces.slice(index, index === variables.length - 1 ? undefined : index + 1)
      : pieces.slice(index, index + 1)
    const values = taken.map(decode)
    if (values.some((value) => value === undefined)) return false
    if (variable.explode) found[variable.name] = values as string[] // none is undefined
    else if (values[0] !== undefined) found[variable.name] = values[0]
  }
  return true
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** An encoded slash or a leading one escapes from a path as `..` does. */
function valueEscapesPath(
  value: string,
  { operator }: Expression,
  before: Part | undefined,
): boolean {
  if (hasDotSegment(value)) return true
  // A query is not a path.
  if (operator === '?' || operator === '&') return false
  if (operator !== '+' && operator !== '#') return /[/\\]/.test(value)
  // `file://{+path}` is the whole disk: nothing is outside of it.
  if (typeof before !== 'string' || !before.endsWith('/') || /^[^/]*:\/*$/.test(before))
    return false
  return /^([/\\]|[A-Za-z]:)/.test(value)
}

/** Whether a value has a segment `.` or `..`, or a NUL. */
export function hasDotSegment(value: string): boolean {
  return (
    value.includes('\0') ||
    value.split(/[/\\]/).some((segment) => segment === '..' || segment === '.')
  )
}
