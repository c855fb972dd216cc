import type { Row } from './analysis.js'
import type { Finding } from './findings.js'

/*
 * The filter of views: terms separated by spaces, all of which must match.
 *   method:tools/call  dir:in  status:error  tool:add  id:3  kind:response  rev:2025*  finding:*  dur>100ms  size>=1kb
 * A value may have `*` for any text and alternatives after commas; `-` before a term negates it; a word without a field
 * is searched in the method, the target and the text.
 */

/** What a filter reads of a row. */
export interface FilterRow extends Pick<
  Row,
  | 'kind'
  | 'dir'
  | 'start'
  | 'end'
  | 'revision'
  | 'method'
  | 'target'
  | 'id'
  | 'status'
  | 'duration'
  | 'text'
> {
  findings: readonly Pick<Finding, 'rule' | 'severity'>[]
}

type Predicate = (row: FilterRow) => boolean

const FIELDS: Readonly<Record<string, (row: FilterRow) => readonly (string | undefined)[]>> = {
  method: ({ method }) => [method],
  tool: ({ target }) => [target],
  dir: ({ dir }) => [dir],
  status: ({ status, kind }) => [status ?? (kind === 'unanswered' ? 'pending' : undefined)],
  kind: ({ kind }) => [kind],
  id: ({ id }) => [id, id?.replace(/^"(.*)"$/, '$1')],
  rev: ({ revision }) => [revision],
  finding: ({ findings }) => findings.flatMap(({ rule, severity }) => [rule, severity]),
}

const UNITS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  dur: { ns: 1, us: 1e3, ms: 1e6, s: 1e9, '': 1e6 },
  size: { b: 1, kb: 1024, mb: 1024 * 1024, '': 1 },
}

const QUANTITIES: Readonly<Record<string, (row: FilterRow) => number | undefined>> = {
  dur: ({ duration }) => duration,
  size: ({ dir, start, end }) => (dir === undefined ? undefined : end - start),
}

/** A function that says whether a row matches. Throws a SyntaxError with advice if the filter is invalid. */
export function parseFilter(text: string): Predicate {
  const terms = text.split(/\s+/).filter((term) => term !== '')
  const predicates = terms.map((term) =>
    term.startsWith('-') && term.length > 1 ? negated(parseTerm(term.slice(1))) : parseTerm(term),
  )
  return (row) => predicates.every((matches) => matches(row))
}

function negated(predicate: Predicate): Predicate {
  return (row) => !predicate(row)
}

function parseTerm(term: string): Predicate {
  const comparison = /^(\w+)(<=|>=|<|>)(.*)$/.exec(term)
  if (comparison !== null) {
    const [, field = '', operator = '', value = ''] = comparison
    return parseComparison(field, operator, value)
  }
  const [, name, value = ''] = /^(\w+):(.*)$/.exec(term) ?? []
  if (name === undefined) return searchFor(term)
  const values = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined
  if (values === undefined)
    throw new SyntaxError(
      `unknown field ${JSON.stringify(name)}; expected ${[...Object.keys(FIELDS), ...Object.keys(QUANTITIES)].join(', ')}`,
    )
  if (value === '') throw new SyntaxError(`${name}: needs a value, such as ${name}:*`)
  const patterns = value.split(',').map(patternOf)
  return (row) =>
    values(row).some((each) => each !== undefined && patterns.some((pattern) => pattern(each)))
}

/** `*` stands for any text. Without regular expressions, so that no pattern is slow. */
function patternOf(value: string): (text: string) => boolean {
  const parts = value.toLowerCase().split('*')
  const [first = '', ...rest] = parts
  const last = rest.pop()
  if (last === undefined) return (text) => text.toLowerCase() === first
  return (text) => {
    const lower = text.toLowerCase()
    if (!lower.startsWith(first) || !lower.endsWith(last)) return false
    let at = first.length
    for (const part of rest) {
      const found = lower.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return at <= lower.length - last.length
  }
}

function parseComparison(field: string, operator: string, value: string): Predicate {
  const quantity = Object.hasOwn(QUANTITIES, field) ? QUANTITIES[field] : undefined
  const units = UNITS[field]
  if (quantity === undefined || units === undefined)
    throw new SyntaxError(`${field} cannot be compared with ${operator}; only dur and size can`)
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(value) ?? []
  const factor = Object.hasOwn(units, unit.toLowerCase()) ? units[unit.toLowerCase()] : undefined
  if (digits === undefined || factor === undefined)
    throw new SyntaxError(
      `${field}${operator} needs a number with a unit (${Object.keys(units).filter(Boolean).join(', ')}), not ${JSON.stringify(value)}`,
    )
  const limit = Number(digits) * factor
  return (row) => {
    const actual = quantity(row)
    if (actual === undefined) return false
    if (operator === '<') return actual < limit
    if (operator === '<=') return actual <= limit
    return operator === '>' ? actual > limit : actual >= limit
  }
}

function searchFor(word: string): Predicate {
  const wanted = word.toLowerCase()
  return ({ method = '', target = '', text }) =>
    [method, target, text].some((each) => each.toLowerCase().includes(wanted))
}
