import { officialSchemas as load } from '../../src/capture/schemas/index.js'

/* The official JSON schemas of the protocol, as the package has them: without prose, and with their known errors corrected. */

export interface Definition {
  properties?: Record<string, Definition>
  required?: string[]
  const?: unknown
  anyOf?: Definition[]
  $ref?: string
  type?: unknown
  enum?: unknown[]
  items?: Definition
  additionalProperties?: unknown
  description?: string
}

export interface OfficialSchema {
  $schema: string
  definitions: Record<string, Definition>
}

const loaded = [...(await load())].map(([revision, { dialect, definitions }]) => [
  revision,
  { $schema: String(dialect), definitions },
])

export const officialSchemas = Object.fromEntries(loaded) as Readonly<
  Record<string, OfficialSchema>
> // JSON schemas

/** The members of a union type; a union of one is that type itself. */
export function members(schema: OfficialSchema, union: string): string[] {
  const definition = schema.definitions[union]
  if (definition === undefined) return []
  if (definition.anyOf === undefined && definition.$ref === undefined) return [union]
  return (definition.anyOf ?? [definition]).map(({ $ref }) => $ref?.split('/').at(-1) ?? '')
}

/** The method of a request or notification type. */
export function methodOf(schema: OfficialSchema, name: string): string {
  return String(schema.definitions[name]?.properties?.['method']?.const)
}
