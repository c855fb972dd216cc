import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject, isThenable } from '../../jsonrpc/message.js'
import type { CallToolResult, ListToolsResult, ToolListing } from '../../protocol/model.js'
import type { Issue } from '../../schema/standard.js'
import type { Caller } from '../call.js'
import type { Context } from '../context.js'
import { isToolError } from '../define.js'
import { resultOf } from './result.js'
import type { ServedTool } from './served-tool.js'

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
    return outcome.then((checked) =>
      checked.issues === undefined ? run(tool, checked.value, context) : refuse(tool, checked.issues, context),
    )
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
    if (isThenable(returned))
      return Promise.resolve(returned)
        .then((value) => resultOf(value, tool.output))
        .catch(fail)
    const result = resultOf(returned, tool.output)
    return result instanceof Promise ? result.catch(fail) : result
  } catch (error) {
    return fail(error)
  }
}

function failure(tool: ServedTool, error: unknown, { server, call, report }: Context): CallToolResult {
  if (error instanceof RpcError) throw error
  if (isToolError(error)) return { content: [{ type: 'text', text: error.message }], isError: true }
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
