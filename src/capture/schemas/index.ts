import { isObject, type JsonSchema } from '../../schema/issue.js'

/* The official JSON schemas of the protocol, without their descriptions. They are loaded when they are needed. */

export interface OfficialSchema {
  dialect: unknown
  /** The member that has the definitions: `$defs` since dialect 2020-12. */
  root: 'definitions' | '$defs'
  definitions: Readonly<Record<string, JsonSchema>>
}

/** The schemas of all revisions, with their known errors corrected. */
export async function officialSchemas(): Promise<Map<string, OfficialSchema>> {
  const files = {
    '2024-11-05': await import('./2024-11-05.json', { with: { type: 'json' } }),
    '2025-03-26': await import('./2025-03-26.json', { with: { type: 'json' } }),
    '2025-06-18': await import('./2025-06-18.json', { with: { type: 'json' } }),
    '2025-11-25': await import('./2025-11-25.json', { with: { type: 'json' } }),
    '2026-07-28': await import('./2026-07-28.json', { with: { type: 'json' } }),
  }
  return new Map(
    Object.entries(files).map(([revision, { default: file }]) => [revision, corrected(file)]),
  )
}

function corrected(file: object): OfficialSchema {
  const schema = structuredClone(file) as Record<string, unknown> // JSON
  const root = '$defs' in schema ? '$defs' : 'definitions'
  const definitions = schema[root] as Record<string, JsonSchema> // as the files have it
  allowNumbers(definitions)
  return { dialect: schema['$schema'], root, definitions }
}

/**
 * Errata. The schemas of 2025-11-25 and 2026-07-28 have `integer` where their TypeScript source has `number`: for the
 * default, minimum and maximum of a number in a form, and for the values of a form's result.
 */
function allowNumbers(definitions: Readonly<Record<string, JsonSchema>>): void {
  const correct = (value: unknown): void => {
    if (!isObject(value)) return
    if (value['type'] === 'integer') value['type'] = 'number'
    if (Array.isArray(value['type'])) value['type'].push('number')
    if (Array.isArray(value['anyOf'])) for (const each of value['anyOf']) correct(each)
  }
  const properties = definitions['NumberSchema']?.['properties']
  if (isObject(properties))
    for (const name of ['default', 'minimum', 'maximum']) correct(properties[name])
  const result = definitions['ElicitResult']?.['properties']
  const content = isObject(result) ? result['content'] : undefined
  if (isObject(content)) correct(content['additionalProperties'])
}
