import { type JsonSchema, isRecord } from './issue.js'
import { subschemas } from './walk.js'

/** A tool's parameter that clients mirror into an HTTP header. */
export interface HeaderParameter {
  /** As annotated; the header is `Mcp-Param-` and this. */
  readonly name: string
  /** Where the value is in the arguments. */
  readonly path: readonly string[]
  readonly type: 'string' | 'integer' | 'boolean'
}

const ANNOTATION = 'x-mcp-header'
/** https://datatracker.ietf.org/doc/html/rfc9110#section-5.6.2 */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * The annotated parameters of an input schema; throws where clients would
 * refuse the tool because of one.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/tools#x-mcp-header
 */
export function headerParameters(schema: JsonSchema): HeaderParameter[] {
  const found: HeaderParameter[] = []
  collect(schema, [], found)
  const seen = new Set<string>()
  for (const { name } of found) {
    if (seen.has(name.toLowerCase()))
      throw new TypeError(`has two parameters for the header ${JSON.stringify(name)}`)
    seen.add(name.toLowerCase())
  }
  return found
}

/** Where `path` is undefined, no chain of properties leads to the schema. */
function collect(
  schema: JsonSchema,
  path: readonly string[] | undefined,
  found: HeaderParameter[],
): void {
  const { properties } = schema
  if (Object.hasOwn(schema, ANNOTATION)) found.push(parameterOf(schema, path))
  for (const [place, part] of subschemas(schema)) {
    if (isRecord(part) && !place.startsWith('properties/')) collect(part, undefined, found)
  }
  if (!isRecord(properties)) return
  for (const [name, part] of Object.entries(properties))
    if (isRecord(part)) collect(part, path && [...path, name], found)
}

function parameterOf(schema: JsonSchema, path: readonly string[] | undefined): HeaderParameter {
  const { [ANNOTATION]: name, type } = schema
  if (typeof name !== 'string' || !TOKEN.test(name))
    throw new TypeError(`has an ${ANNOTATION} that is no name of a header: ${JSON.stringify(name)}`)
  if (path === undefined || path.length === 0)
    throw new TypeError(
      `has the ${ANNOTATION} ${JSON.stringify(name)} where no chain of "properties" leads`,
    )
  if (type !== 'string' && type !== 'integer' && type !== 'boolean')
    throw new TypeError(
      `has the ${ANNOTATION} ${JSON.stringify(name)} on a parameter that is neither a string, an integer nor a boolean`,
    )
  return { name, path, type }
}
