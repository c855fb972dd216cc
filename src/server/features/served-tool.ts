import { isObject } from '../../jsonrpc/message.js'
import type { ToolListing } from '../../protocol/model.js'
import { type Checker, checker } from '../../schema/standard.js'
import type { Call } from '../call.js'
import type { Schema, Tool } from '../define.js'
import { Turnstile } from '../turnstile.js'

/** A tool, ready to be listed and called. */
export interface ServedTool {
  readonly definition: Tool
  readonly listing: ToolListing
  readonly input: Checker
  readonly output: Checker | undefined
  readonly run: (input: unknown, call: Call) => unknown
  readonly turnstile: Turnstile | undefined
}

type Handle = (name: string, input: unknown, call: Call) => unknown

export function prepareTools(tools: readonly Tool[], handle: Handle | undefined): Map<string, ServedTool> {
  const prepared = new Map<string, ServedTool>()
  for (const definition of tools) {
    const name = definition?.name
    if (prepared.has(name)) throw new TypeError(`Tool "${name}" is defined twice; give one of them another name`)
    prepared.set(name, prepare(definition, handle))
  }
  return prepared
}

function prepare(definition: Tool, handle: Handle | undefined): ServedTool {
  if (!isObject(definition)) throw new TypeError('A tool must be an object, as tool({ … }) makes it')
  const { name, title, description, annotations, icons, meta, timeout, concurrency, run } = definition
  // https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    throw new TypeError(`Tool name ${JSON.stringify(name)} is not allowed: use 1 to 128 of the characters A-Z a-z 0-9 _ - .`)
  }
  const fail = (problem: string) => new TypeError(`Tool "${name}": ${problem}`)
  for (const [field, value] of Object.entries({ title, description })) {
    if (value !== undefined && typeof value !== 'string') throw fail(`"${field}" must be a string`)
  }
  for (const [field, value] of Object.entries({ annotations, meta })) {
    if (value !== undefined && !isObject(value)) throw fail(`"${field}" must be an object`)
  }
  if (icons !== undefined && !(Array.isArray(icons) && icons.every((icon) => isObject(icon) && typeof icon.src === 'string'))) {
    throw fail('"icons" must be an array of objects with a "src"')
  }
  const input = ready(definition.input, 'input', fail)
  if (input.json['type'] !== 'object')
    throw fail('its input schema must have "type": "object" at the top; hosts refuse the whole list otherwise')
  const output = definition.output === undefined ? undefined : ready(definition.output, 'output', fail)
  // What is longer, a timer takes for no time at all.
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && timeout < 2 ** 31)) {
    throw fail('"timeout" must be a number of milliseconds above 0 and below 2147483648')
  }
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency > 0))
    throw fail('"concurrency" must be a whole number above 0')
  const runner = run ?? (handle === undefined ? undefined : (input: unknown, call: Call) => handle(name, input, call))
  if (runner === undefined) throw fail('it has no "run", and the server has no "handle" for it')
  const listing: ToolListing = { name, inputSchema: input.json }
  if (title !== undefined) listing.title = title
  if (description !== undefined) listing.description = description
  if (output !== undefined) listing.outputSchema = output.json
  if (annotations !== undefined) listing.annotations = annotations
  if (icons !== undefined) listing.icons = icons
  if (meta !== undefined) listing._meta = meta
  try {
    JSON.stringify(listing)
  } catch (error) {
    throw fail(`it cannot be listed, since not all of it is JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  return {
    definition,
    listing,
    input,
    output,
    run: runner,
    turnstile: concurrency === undefined ? undefined : new Turnstile(concurrency),
  }
}

function ready(schema: Schema, side: 'input' | 'output', fail: (problem: string) => Error): Checker {
  try {
    return checker(schema, side)
  } catch (error) {
    throw fail(`its ${side} schema ${error instanceof Error ? error.message : String(error)}`)
  }
}
