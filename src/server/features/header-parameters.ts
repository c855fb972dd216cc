import { isObject } from '../../jsonrpc/message.js'
import type { ServedTool } from './served-tool.js'

/** A parameter that clients mirror in a header of HTTP, by the annotation `x-mcp-header` of its schema. */
export interface HeaderParameter {
  name: string
  path: readonly string[]
  type: string
}

const known = new WeakMap<ServedTool, readonly HeaderParameter[]>()
const NONE: readonly HeaderParameter[] = []

export function headerParametersOf(tool: ServedTool | undefined): readonly HeaderParameter[] {
  if (tool === undefined) return NONE
  let found = known.get(tool)
  if (found === undefined) {
    found = [...annotated(tool.listing.inputSchema, [])]
    known.set(tool, found)
  }
  return found
}

function* annotated(schema: Readonly<Record<string, unknown>>, path: readonly string[]): Generator<HeaderParameter> {
  const { 'x-mcp-header': name, type, properties } = schema
  if (typeof name === 'string') yield { name, path, type: typeof type === 'string' ? type : 'string' }
  if (isObject(properties)) for (const [key, each] of Object.entries(properties)) if (isObject(each)) yield* annotated(each, [...path, key])
}
