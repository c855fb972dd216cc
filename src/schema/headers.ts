import { isObject } from '../is-object.js'
import type { JsonSchema } from './issue.js'
import { subschemas } from './schema-index.js'

/** A tool parameter that clients repeat in an HTTP header. */
export interface HeaderParameter {
  /** The annotation's value; the header is `Mcp-Param-` and this name. */
  readonly name: string
  /** The path of the value within the arguments. */
  readonly path: readonly string[]
  readonly type: 'string' | 'integer' | 'boolean'
}

const ANNOTATION = 'x-mcp-header'
/** https://datatracker.ietf.org/doc/html/rfc9110#section-5.6.2 */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * The annotated parameters of an input schema. Throws for an annotation for which clients must reject the tool.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/tools#x-mcp-header
 */
export function headerParameters(schema: JsonSchema): HeaderParameter[] {
  const found: HeaderParameter[] = []
  collect(schema, [], found)
  const seen = new Set<string>()
  for (const { name } of found) {
    if (seen.has(name.toLowerCase()))
      throw new TypeError(`has two parameters with ${ANNOTATION} ${JSON.stringify(name)}`)
    seen.add(name.toLowerCase())
  }
  return found
}

/** `path` is undefined if the schema is not reached through `properties` only. */
function collect(
  schema: JsonSchema,
  path: readonly string[] | undefined,
  found: HeaderParameter[],
): void {
  const { properties } = schema
  if (Object.hasOwn(schema, ANNOTATION)) found.push(parameterOf(schema, path))
  for (const [place, part] of subschemas(schema)) {
    if (isObject(part) && !place.startsWith('properties/')) collect(part, undefined, found)
  }
  if (!isObject(properties)) return
  for (const [name, part] of Object.entries(properties))
    if (isObject(part)) collect(part, path && [...path, name], found)
}

function parameterOf(schema: JsonSchema, path: readonly string[] | undefined): HeaderParameter {
  const { [ANNOTATION]: name, type } = schema
  if (typeof name !== 'string' || !TOKEN.test(name))
    throw new TypeError(
      `has an ${ANNOTATION} that is not a valid header name: ${JSON.stringify(name)}`,
    )
  if (path === undefined || path.length === 0)
    throw new TypeError(
      `has the ${ANNOTATION} ${JSON.stringify(name)} on a schema that is not a (nested) property of the input schema`,
    )
  if (type !== 'string' && type !== 'integer' && type !== 'boolean')
    throw new TypeError(
      `has the ${ANNOTATION} ${JSON.stringify(name)} on a parameter whose type is not string, integer or boolean`,
    )
  return { name, path, type }
}
