import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject, isThenable } from '../../jsonrpc/message.js'
import type { CallToolResult, ToolListing } from '../../protocol/model.js'
import type { Issue } from '../../schema/standard.js'
import type { Context } from '../context.js'
import { isToolError } from '../define.js'
import { reference } from '../reference.js'
import { checkScopes, seenBy } from './definition.js'
import { resultOf } from './result.js'
import type { Turnstile } from '../turnstile.js'
import type { ServedTool } from './served-tool.js'

/** A refusal names so many faults at most: it must not be larger than what it refuses. */
const MAX_ISSUES = 20

export function allTools({ server, connection }: Context): ToolListing[] {
  const found: ToolListing[] = []
  for (const { definition, listing } of server.tools.values()) if (seenBy(definition, connection.caller)) found.push(listing)
  return found
}

export function callTool(context: Context, params: Params): CallToolResult | Promise<CallToolResult> {
  const { server, connection } = context
  const { name, arguments: input = {} } = params
  if (typeof name !== 'string') throw new RpcError(INVALID_PARAMS, 'Invalid params: "name" must be the name of a tool')
  const tool = server.tools.get(name)
  if (tool === undefined || !seenBy(tool.definition, connection.caller)) throw new RpcError(INVALID_PARAMS, `Unknown tool: ${name}`)
  checkScopes(tool.definition, context)
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
  const shown = issues.slice(0, MAX_ISSUES)
  const lines = shown.map(({ path, message }) => (path === '' ? message : `${path} ${message}`))
  if (issues.length > shown.length) lines.push(`and ${issues.length - shown.length} more`)
  const text = `Invalid arguments for ${tool.listing.name}: ${lines.join('; ')}`
  if (server.invalidArguments === 'protocol') throw new RpcError(INVALID_PARAMS, text, { issues: shown })
  return { content: [{ type: 'text', text }], isError: true }
}

function run(tool: ServedTool, input: unknown, context: Context): CallToolResult | Promise<CallToolResult> {
  const { definition, turnstile } = tool
  // Its arguments may have been checked for a while: it may be cancelled by now.
  if (!context.call.open) return { content: [] }
  if (definition.timeout !== undefined) return runTimed(tool, input, context, definition.timeout)
  return turnstile === undefined ? attempt(tool, input, context) : runInTurn(tool, turnstile, input, context)
}

/** Waits for its turn only if there is no room, so that calls start in the order in which they came. */
function runInTurn(tool: ServedTool, turnstile: Turnstile, input: unknown, context: Context): CallToolResult | Promise<CallToolResult> {
  const go = () => {
    let result: CallToolResult | Promise<CallToolResult>
    try {
      result = attempt(tool, input, context)
    } catch (error) {
      turnstile.leave()
      throw error
    }
    if (result instanceof Promise) return result.finally(() => turnstile.leave())
    turnstile.leave()
    return result
  }
  return turnstile.tryEnter() ? go() : turnstile.enter(context.call.signal).then(go)
}

/** The time includes waiting for its turn: the caller waits for both. */
function runTimed(tool: ServedTool, input: unknown, context: Context, timeout: number): Promise<CallToolResult> {
  const { turnstile, listing } = tool
  const controller = new AbortController()
  context.call.endWith(controller.signal)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const text = `${listing.name} did not finish within ${timeout} ms and was stopped`
      resolve({ content: [{ type: 'text', text }], isError: true })
      controller.abort(new Error(text))
    }, timeout)
    new Promise<CallToolResult>((begin) =>
      begin(turnstile === undefined ? attempt(tool, input, context) : runInTurn(tool, turnstile, input, context)),
    )
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
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

function failure(tool: ServedTool, error: unknown, { server, call, report, remote }: Context): CallToolResult {
  if (error instanceof RpcError) throw error
  if (isToolError(error)) return { content: [{ type: 'text', text: String(error.message) }], isError: true }
  const known = remote ? ` (reference ${reference()})` : ''
  report({ level: 'error', message: `Tool ${tool.listing.name} failed${known}`, id: call.id, error })
  const text = `Tool ${tool.listing.name} failed${remote ? known : `: ${messageOf(error)}`}`
  if (server.unexpectedErrors === 'protocol') throw new RpcError(INTERNAL_ERROR, text)
  return { content: [{ type: 'text', text }], isError: true }
}

/** The words of whatever was thrown; never the stack. */
function messageOf(error: unknown): string {
  if (error instanceof Error) return String(error.message)
  return typeof error === 'string' ? error : 'it threw something that is no error'
}
