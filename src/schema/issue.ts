export type JsonSchema = Readonly<Record<string, unknown>>

/** What is wrong with a value, and where: `items[2].name`, or empty for the value itself. */
export interface Issue {
  path: string
  message: string
}

export type Outcome = { value: unknown; issues?: undefined } | { issues: readonly Issue[] }

/** The path of a member of the value at `path`. */
export function step(path: string, key: PropertyKey): string {
  if (/^\d+$/.test(String(key))) return `${path}[${String(key)}]`
  return path === '' ? String(key) : `${path}.${String(key)}`
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const DIALECTS = new Set(['https://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema'])

/** Whether a `$schema` names a dialect that is understood here. */
export function isDialect(value: unknown): boolean {
  return typeof value === 'string' && DIALECTS.has(value.replace(/#$/, ''))
}
