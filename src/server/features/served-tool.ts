import { isObject } from '../../jsonrpc/message.js'
import type { ToolListing } from '../../protocol/model.js'
import type { HeaderParameter } from '../../schema/headers.js'
import { namesOf } from '../../schema/names.js'
import { type Validator, type Schema, checker, headersOf } from '../../schema/standard.js'
import type { Call } from '../call.js'
import { NO_INPUT, type Tool, type ToolFields } from '../define.js'
import type { Extension } from '../extensions.js'
import { Semaphore } from '../semaphore.js'
import {
  SHARED_MEMBERS,
  checkMemberNames,
  checkSharedProperties,
  checkListable,
  withoutUndefined,
} from './definition.js'

/** A tool, ready to be listed and called. */
export interface ServedTool {
  readonly definition: Tool
  readonly listing: ToolListing
  readonly input: Validator
  readonly output: Validator | undefined
  readonly run: (input: unknown, call: Call) => unknown
  readonly semaphore: Semaphore | undefined
  /** The parameters that clients mirror into headers. */
  readonly headers: readonly HeaderParameter[]
}

const MEMBERS = namesOf<Omit<Tool, keyof ToolFields>>()(
  `${SHARED_MEMBERS} annotations timeout concurrency maxResult queue input output run`,
)

/** What extensions cannot add to a tool. */
export const TOOL_MEMBERS: readonly string[] = `${MEMBERS} inputSchema outputSchema _meta`.split(
  ' ',
)

type Handle = (name: string, input: unknown, call: Call) => unknown

export function prepareTool(
  definition: Tool,
  handle: Handle | undefined,
  fields: Extension['toolFields'] = {},
): ServedTool {
  if (!isObject(definition))
    throw new TypeError('A tool must be an object, as tool({ … }) makes it')
  const {
    name,
    title,
    description,
    annotations,
    icons,
    meta,
    timeout,
    concurrency,
    queue = 1000,
    maxResult,
    input: accepted = NO_INPUT,
    run,
  } = definition
  // https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    throw new TypeError(
      `Tool name ${JSON.stringify(name)} is not allowed: use 1 to 128 of the characters A-Z a-z 0-9 _ - .`,
    )
  }
  const fail = (problem: string) => new TypeError(`Tool "${name}": ${problem}`)
  checkMemberNames(definition, [MEMBERS, ...Object.keys(fields)].join(' '), fail)
  for (const [field, check] of Object.entries(fields)) {
    const problem =
      field in definition
        ? check((definition as unknown as Record<string, unknown>)[field])
        : undefined
    if (problem !== undefined) throw fail(`"${field}" ${problem}`)
  }
  for (const [field, value] of Object.entries(definition))
    if (!(field in fields) && isObject(value) && typeof value['extension'] === 'string')
      throw fail(`"${field}" needs the extension ${value['extension']}; add it to "extensions"`)
  checkSharedProperties(definition, fail)
  const input = prepareSchema(accepted, 'input', fail)
  if (input.json['type'] !== 'object')
    throw fail(
      'its input schema must have "type": "object" at the top; otherwise hosts drop the whole list',
    )
  const output =
    definition.output === undefined ? undefined : prepareSchema(definition.output, 'output', fail)
  for (const [side, schema] of Object.entries({ input, output }))
    checkProperties(schema?.json['properties'], side, fail)
  // A longer timer would fire immediately.
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && timeout < 2 ** 31)) {
    throw fail('"timeout" must be a number of milliseconds greater than 0 and less than 2147483648')
  }
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency > 0))
    throw fail('"concurrency" must be an integer greater than 0')
  if (maxResult !== undefined && !(Number.isInteger(maxResult) && maxResult > 0))
    throw fail('"maxResult" must be a number of bytes greater than 0')
  if (!(Number.isInteger(queue) && queue >= 0)) throw fail('"queue" must be a non-negative integer')
  const runner =
    run ??
    (handle === undefined ? undefined : (input: unknown, call: Call) => handle(name, input, call))
  if (runner === undefined) throw fail('it has no "run", and the server has no "handle" for it')
  for (const [field, value] of Object.entries({ run, handle }))
    if (value !== undefined && typeof value !== 'function')
      throw fail(`"${field}" must be a function`)
  const shown = { title, description, outputSchema: output?.json, annotations, icons, _meta: meta }
  const listing: ToolListing = checkListable(
    { name, inputSchema: input.json, ...withoutUndefined(shown) },
    fail,
  )
  return {
    definition,
    listing,
    input,
    output,
    run: runner,
    headers: withSchemaError(() => headersOf(input.json), 'input', fail),
    semaphore: concurrency === undefined ? undefined : new Semaphore(concurrency, queue),
  }
}

/** Valid JSON Schema that MCP does not allow. https://modelcontextprotocol.io/specification/2025-11-25/schema#tool */
function checkProperties(
  properties: unknown,
  side: string,
  fail: (problem: string) => Error,
): void {
  for (const [name, schema] of Object.entries(Object(properties)))
    if (typeof schema === 'boolean')
      throw fail(
        `its ${side} schema has "${name}": ${schema}; write ${schema ? '{}' : '{ "not": {} }'}, otherwise hosts drop the whole list`,
      )
}

function prepareSchema(
  schema: Schema,
  side: 'input' | 'output',
  fail: (problem: string) => Error,
): Validator {
  return withSchemaError(() => checker(schema, side), side, fail)
}

function withSchemaError<Value>(
  make: () => Value,
  side: 'input' | 'output',
  fail: (problem: string) => Error,
): Value {
  try {
    return make()
  } catch (error) {
    throw fail(`its ${side} schema ${error instanceof Error ? error.message : String(error)}`)
  }
}
