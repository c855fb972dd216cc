import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject, isThenable } from '../../jsonrpc/message.js'
import type { CallToolResult, ListToolsResult, ToolListing } from '../../protocol/model.js'
import { lint } from '../../schema/lint.js'
import { type Checker, type Issue, type JsonSchema, checker, toJsonSchema } from '../../schema/standard.js'
import type { Caller, ServedCall } from '../call.js'
import { type Schema, type Tool, ToolError } from '../define.js'
import type { Context } from '../dispatch.js'
import { resultOf } from './result.js'
import { Turnstile } from '../turnstile.js'

/** A tool, ready to be listed and called. */
export interface ServedTool {
  readonly definition: Tool
  readonly listing: ToolListing
  readonly input: Checker
  readonly output: Checker | undefined
  readonly run: (input: unknown, call: ServedCall) => unknown
  readonly turnstile: Turnstile | undefined
}

type Handle = (name: string, input: unknown, call: ServedCall) => unknown

export function prepareTools(tools: readonly Tool[], handle: Handle | undefined): Map<string, ServedTool> {
  const prepared = new Map<string, ServedTool>()
  for (const definition of tools) {
    const { name } = definition
    if (prepared.has(name)) throw new TypeError(`Tool "${name}" is defined twice; give one of them another name`)
    prepared.set(name, prepare(definition, handle))
  }
  return prepared
}

function prepare(definition: Tool, handle: Handle | undefined): ServedTool {
  const { name, title, description, annotations, icons, meta, timeout, concurrency, run } = definition
  // https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    throw new TypeError(`Tool name ${JSON.stringify(name)} is not allowed: use 1 to 128 of the characters A-Z a-z 0-9 _ - .`)
  }
  const fail = (problem: string) => new TypeError(`Tool "${name}": ${problem}`)
  const inputJson = schemaOf(definition.input, 'input', fail)
  if (inputJson['type'] !== 'object') throw fail('its input schema must have "type": "object" at the top; hosts refuse the whole list otherwise')
  const outputJson = definition.output === undefined ? undefined : schemaOf(definition.output, 'output', fail)
  if (timeout !== undefined && !(timeout > 0)) throw fail('"timeout" must be a number of milliseconds above 0')
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency > 0)) throw fail('"concurrency" must be a whole number above 0')
  const runner = run ?? (handle === undefined ? undefined : (input: unknown, call: ServedCall) => handle(name, input, call))
  if (runner === undefined) throw fail('it has no "run", and the server has no "handle" for it')
  const listing: ToolListing = { name, inputSchema: inputJson }
  if (title !== undefined) listing.title = title
  if (description !== undefined) listing.description = description
  if (outputJson !== undefined) listing.outputSchema = outputJson
  if (annotations !== undefined) listing.annotations = annotations
  if (icons !== undefined) listing.icons = icons
  if (meta !== undefined) listing._meta = meta
  return {
    definition,
    listing,
    input: checker(definition.input, inputJson),
    output: definition.output === undefined || outputJson === undefined ? undefined : checker(definition.output, outputJson),
    run: runner,
    turnstile: concurrency === undefined ? undefined : new Turnstile(concurrency),
  }
}

function schemaOf(schema: Schema, side: 'input' | 'output', fail: (problem: string) => Error): JsonSchema {
  let json: JsonSchema
  try {
    json = toJsonSchema(schema, side)
  } catch (error) {
    throw fail(`its ${side} schema: ${error instanceof Error ? error.message : String(error)}`)
  }
  const [problem] = lint(json)
  if (problem !== undefined) throw fail(`its ${side} schema is not valid: ${problem}`)
  return json
}

function isVisible(tool: ServedTool, caller: Caller): boolean {
  return tool.definition.visible?.(caller) ?? true
}

export function listTools({ server, connection }: Context): ListToolsResult {
  const tools: ToolListing[] = []
  for (const tool of server.tools.values()) if (isVisible(tool, connection.caller)) tools.push(tool.listing)
  return { tools }
}

export function callTool(context: Context, params: Params): CallToolResult | Promise<CallToolResult> {
  const { server, connection } = context
  const { name, arguments: input = {} } = params
  if (typeof name !== 'string') throw new RpcError(INVALID_PARAMS, 'Invalid params: "name" must be the name of a tool')
  const tool = server.tools.get(name)
  if (tool === undefined || !isVisible(tool, connection.caller)) throw new RpcError(INVALID_PARAMS, `Unknown tool: ${name}`)
  if (!isObject(input)) throw new RpcError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
  const outcome = tool.input.check(input)
  if (outcome instanceof Promise) {
    return outcome.then((checked) => (checked.issues === undefined ? run(tool, checked.value, context) : refuse(tool, checked.issues, context)))
  }
  return outcome.issues === undefined ? run(tool, outcome.value, context) : refuse(tool, outcome.issues, context)
}

function refuse(tool: ServedTool, issues: readonly Issue[], { server }: Context): CallToolResult {
  const lines = issues.map(({ path, message }) => (path === '' ? message : `${path} ${message}`))
  const text = `Invalid arguments for ${tool.listing.name}: ${lines.join('; ')}`
  if (server.invalidArguments === 'protocol') throw new RpcError(INVALID_PARAMS, text, { issues })
  return { content: [{ type: 'text', text }], isError: true }
}

function run(tool: ServedTool, input: unknown, context: Context): CallToolResult | Promise<CallToolResult> {
  const { definition, turnstile } = tool
  if (definition.timeout === undefined && turnstile === undefined) return attempt(tool, input, context)
  return runLimited(tool, input, context)
}

async function runLimited(tool: ServedTool, input: unknown, context: Context): Promise<CallToolResult> {
  const { turnstile, definition, listing } = tool
  const { call } = context
  if (turnstile !== undefined) await turnstile.enter(call.signal)
  const { timeout } = definition
  let timer: ReturnType<typeof setTimeout> | undefined
  const limits: Promise<CallToolResult>[] = []
  if (timeout !== undefined) {
    const controller = new AbortController()
    call.endWith(controller)
    limits.push(
      new Promise((resolve) => {
        timer = setTimeout(() => {
          const text = `${listing.name} did not finish within ${timeout} ms and was stopped`
          resolve({ content: [{ type: 'text', text }], isError: true })
          controller.abort(new Error(text))
        }, timeout)
      }),
    )
  }
  const running = new Promise<CallToolResult>((resolve) => resolve(attempt(tool, input, context))).finally(() => {
    clearTimeout(timer)
    turnstile?.leave()
  })
  return await Promise.race([running, ...limits])
}

/** Runs the handler; whatever it does becomes a result, or an RpcError where the server wants that. */
function attempt(tool: ServedTool, input: unknown, context: Context): CallToolResult | Promise<CallToolResult> {
  const fail = (error: unknown) => failure(tool, error, context)
  try {
    const returned = tool.run(input, context.call)
    if (isThenable(returned)) return Promise.resolve(returned).then((value) => resultOf(value, tool.output)).catch(fail)
    const result = resultOf(returned, tool.output)
    return result instanceof Promise ? result.catch(fail) : result
  } catch (error) {
    return fail(error)
  }
}

function failure(tool: ServedTool, error: unknown, { server, call, report }: Context): CallToolResult {
  if (error instanceof RpcError) throw error
  if (error instanceof ToolError) return { content: [{ type: 'text', text: error.message }], isError: true }
  report({ level: 'error', message: `Tool ${tool.listing.name} failed`, id: call.id, error })
  const text = `Tool ${tool.listing.name} failed: ${messageOf(error)}`
  if (server.unexpectedErrors === 'protocol') throw new RpcError(INTERNAL_ERROR, text)
  return { content: [{ type: 'text', text }], isError: true }
}

/** The words of whatever was thrown; never the stack. */
function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message
  return typeof error === 'string' ? error : 'it threw something that is no error'
}
