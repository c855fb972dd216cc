export type JsonSchema = Readonly<Record<string, unknown>>

/** What is wrong with a value, and where: `items[2].name`, or empty for the value itself. */
export interface Issue {
  path: string
  message: string
}

export type Outcome = { value: unknown; issues?: undefined } | { issues: readonly Issue[] }

export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const DIALECTS = new Set(['https://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema'])

/** Whether a `$schema` names a dialect that is understood here. */
export function isDialect(value: unknown): boolean {
  return typeof value === 'string' && DIALECTS.has(value.replace(/#$/, ''))
}

/** A value in a few words, for a model or a person to recognise. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return value.length <= 40 ? JSON.stringify(value) : `a string of ${sizeOf(value)} characters`
  if (Array.isArray(value)) return 'an array'
  if (isRecord(value)) return 'an object'
  return String(value)
}

/** What a value may be, where that can be counted. */
export function listValues(values: readonly unknown[]): string {
  const shown = values.slice(0, 50).map((value) => JSON.stringify(value))
  const more = values.length > shown.length ? ` and ${values.length - shown.length} more` : ''
  return values.length === 1 ? shown.join('') : `one of ${shown.join(', ')}${more}`
}

/** The length of a text in characters, as JSON Schema counts them, not in UTF-16 units. */
export function sizeOf(text: string): number {
  let size = text.length
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = text.charCodeAt(i + 1)
    if (next >= 0xdc00 && next <= 0xdfff) {
      size--
      i++
    }
  }
  return size
}

/** Whether two JSON values are equal, whatever the order of their keys. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((item, index) => sameJson(item, other[index]))
  if (!isRecord(one) || !isRecord(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
}

/** `a string`, `an integer`, `null`; several with `or`. */
export function listTypes(types: readonly unknown[]): string {
  return types
    .map((type) => (type === 'null' ? type : /^[aeio]/.test(String(type)) ? `an ${String(type)}` : `a ${String(type)}`))
    .join(' or ')
}
