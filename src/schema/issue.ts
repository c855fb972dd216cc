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
