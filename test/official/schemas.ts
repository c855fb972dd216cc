import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/*
 * The official JSON schemas of the protocol, from the bundled file of the official
 * conformance package, whose version is pinned in the lockfile. It has all
 * revisions but the oldest, which is derived from the next one by undoing its changelog.
 */

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

const require = createRequire(import.meta.url)
const home = dirname(require.resolve('@modelcontextprotocol/conformance/package.json'))
const bundle = readFileSync(join(home, 'dist', 'index.js'), 'utf8')

/** The text of the object literal at an index; counts braces outside of strings. */
function literalAt(start: number): string {
  let depth = 0
  for (let i = start; i < bundle.length; i++) {
    const character = bundle[i]
    if (character === '`' || character === '"' || character === "'") {
      for (i++; bundle[i] !== character; i++) if (bundle[i] === '\\') i++
    } else if (character === '{') depth++
    else if (character === '}' && --depth === 0) return bundle.slice(start, i + 1)
  }
  throw new Error('The bundle ends within a schema')
}

function official(name: string): OfficialSchema {
  const start = bundle.indexOf(`${name}={$schema:`) + name.length + 1
  // The bundle is code, so its literals are evaluated.
  // oxlint-disable-next-line typescript/no-implied-eval -- what runs is pinned by the lockfile
  const { $schema, definitions, $defs } = Function(
    `return ${literalAt(start)}`,
  )() as OfficialSchema & {
    $defs?: OfficialSchema['definitions']
  }
  return { $schema, definitions: definitions ?? $defs ?? {} }
}

/** `{"2025-03-26":Pe,…,[A]:Le}`: the variable of each revision. */
function table(): Record<string, OfficialSchema> {
  const [, inside] = /\{("\d{4}-\d\d-\d\d":[\w$]+,[^{}]*?)\}/.exec(bundle) ?? []
  if (inside === undefined)
    throw new Error('The conformance package has no table of schemas; was it updated?')
  const found: Record<string, OfficialSchema> = {}
  for (const entry of inside.split(',')) {
    const [, date, variable = ''] = /^(?:"([\d-]+)"|\[[\w$]+\]):([\w$]+)$/.exec(entry) ?? []
    // The computed key is the constant for the newest revision.
    found[date ?? '2026-07-28'] = official(variable)
  }
  return found
}

/** 2025-03-26 added these to what was there; https://modelcontextprotocol.io/specification/2025-03-26/changelog */
function undoChangelog(next: OfficialSchema): OfficialSchema {
  const definitions = structuredClone(next.definitions)
  for (const name of [
    'AudioContent',
    'ToolAnnotations',
    'JSONRPCBatchRequest',
    'JSONRPCBatchResponse',
  ])
    delete definitions[name]
  delete definitions['Tool']?.properties?.['annotations']
  delete definitions['ServerCapabilities']?.properties?.['completions']
  delete definitions['ProgressNotification']?.properties?.['params']?.properties?.['message']
  const gone = (each: Definition) =>
    /Audio|Batch/.test(each.$ref ?? '') ||
    (each.type === 'array' && each.items?.anyOf?.some(({ $ref }) => $ref?.includes('JSONRPC')))
  const prune = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { anyOf } = value as Definition
    if (Array.isArray(anyOf)) (value as Definition).anyOf = anyOf.filter((each) => !gone(each))
    for (const each of Object.values(value)) prune(each)
  }
  prune(definitions)
  return { $schema: next.$schema, definitions }
}

/** The JSON schemas of 2025-11-25 and 2026-07-28 have integer instead of number, unlike their TypeScript source. */
function allowNumbers({ definitions }: OfficialSchema): void {
  const { default: value, minimum, maximum } = definitions['NumberSchema']?.properties ?? {}
  for (const each of [value, minimum, maximum]) if (each?.type === 'integer') each.type = 'number'
  const content = definitions['ElicitResult']?.properties?.['content']?.additionalProperties as
    | Definition
    | undefined
  for (const each of content === undefined ? [] : [content, ...(content.anyOf ?? [])])
    if (Array.isArray(each.type)) each.type = [...(each.type as unknown[]), 'number']
}

function all(): Readonly<Record<string, OfficialSchema>> {
  const found = table()
  const next = found['2025-03-26']
  if (next === undefined) throw new Error('The conformance package has no schema of 2025-03-26')
  for (const schema of Object.values(found)) allowNumbers(schema)
  return { '2024-11-05': undoChangelog(next), ...found }
}

export const officialSchemas = all()

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
