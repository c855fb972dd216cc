import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { andThen } from '../../jsonrpc/hook.js'
import { type Params, isObject, isThenable } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { CallToolResult, ToolListing } from '../../protocol/model.js'
import { type Issue, MAX_ISSUES, type Outcome, describeIssues } from '../../schema/standard.js'
import type { Context } from '../context.js'
import { Suspended } from '../ask.js'
import { ServedCall } from '../call.js'
import { isToolError } from '../failure.js'
import { ToolSlot } from '../tool-slot.js'
import { reference } from '../../jsonrpc/reference.js'
import { allSeenBy, checkScopes, isVisibleTo } from './definition.js'
import { VALUE_HINT, isResultShaped, resultOf } from './result.js'
import type { ServedTool } from './served-tool.js'

export function allTools({ server, connection }: Context): ToolListing[] | Promise<ToolListing[]> {
  const { extensions } = server
  return andThen(allSeenBy(server.tools.values(), connection.caller), (seen) =>
    extensions === undefined
      ? seen.map(({ listing }) => listing)
      : seen.flatMap(
          ({ listing, definition }) => extensions.list(listing, definition, connection) ?? [],
        ),
  )
}

export function callTool(
  context: Context,
  params: Params,
): CallToolResult | Promise<CallToolResult> {
  const { server, connection } = context
  const { name, arguments: input = {} } = params
  if (typeof name !== 'string')
    throw new RpcError(INVALID_PARAMS, 'Invalid params: "name" must be the name of a tool')
  const tool = server.tools.get(name)
  if (tool === undefined) throw unknown(name)
  return andThen<boolean, CallToolResult>(
    isVisibleTo(tool.definition, connection.caller),
    (seen) => {
      if (!seen) throw unknown(name)
      return callSeen(tool, input, context)
    },
  )
}

function callSeen(
  tool: ServedTool,
  input: unknown,
  context: Context,
): CallToolResult | Promise<CallToolResult> {
  checkScopes(tool.definition, context)
  if (!isObject(input))
    throw new RpcError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
  return andThen<Outcome, CallToolResult>(tool.input.check(input), (outcome) =>
    outcome.issues === undefined
      ? runWrapped(tool, outcome.value, context)
      : refuse(tool, outcome.issues, context),
  )
}

function runWrapped(
  tool: ServedTool,
  input: unknown,
  context: Context,
): CallToolResult | Promise<CallToolResult> {
  const { server, call, connection, report, remote } = context
  if (server.extensions === undefined) return runTool(tool, input, context)
  return server.extensions.call(
    { tool: tool.definition, input, call, connection },
    (environment) => {
      if (environment === undefined) return runTool(tool, input, context)
      return runTool(tool, input, { server, call: new ServedCall(environment), report, remote })
    },
  )
}

function unknown(name: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Unknown tool: ${truncate(name)}`)
}

function refuse(tool: ServedTool, issues: readonly Issue[], { server }: Context): CallToolResult {
  const text = `Invalid arguments for ${tool.listing.name}: ${describeIssues(issues)}`
  if (server.invalidArguments === 'protocol')
    throw new RpcError(INVALID_PARAMS, text, { issues: issues.slice(0, MAX_ISSUES) })
  return failed(text)
}

/** What running a tool needs; no connection is part of it. */
export type ToolContext = Pick<Context, 'server' | 'call' | 'report' | 'remote'>

/** Runs a tool with valid arguments. */
export function runTool(
  tool: ServedTool,
  input: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  // It may have been cancelled while its arguments were validated.
  if (!context.call.open) return { content: [] }
  const { definition, semaphore } = tool
  if (definition.timeout === undefined && semaphore === undefined)
    return attempt(tool, input, context)
  const slot = new ToolSlot(semaphore)
  context.call.slot = slot
  return definition.timeout === undefined
    ? runInTurn(tool, slot, input, context)
    : runTimed(tool, slot, input, context, definition.timeout)
}

/** Waits only if there is no room, so that calls start in order. */
function runInTurn(
  tool: ServedTool,
  slot: ToolSlot,
  input: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  const go = () => {
    let result: CallToolResult | Promise<CallToolResult>
    try {
      result = attempt(tool, input, context)
    } catch (error) {
      slot.end()
      throw error
    }
    if (result instanceof Promise) return result.finally(() => slot.end())
    slot.end()
    return result
  }
  if (slot.tryEnter()) return go()
  try {
    tool.semaphore?.checkQueue(tool.listing.name)
  } catch (error) {
    return failure(tool, error, context)
  }
  return slot.enter(context.call.signal).then(go)
}

/** The timeout includes the time in the queue. */
function runTimed(
  tool: ServedTool,
  slot: ToolSlot,
  input: unknown,
  context: ToolContext,
  timeout: number,
): Promise<CallToolResult> {
  const controller = new AbortController()
  context.call.endWith(controller.signal)
  return new Promise((resolve, reject) => {
    slot.limit(timeout, () => {
      const text = `${tool.listing.name} did not finish within ${timeout} ms and was stopped`
      resolve(failed(text))
      controller.abort(new Error(text))
    })
    new Promise<CallToolResult>((begin) => begin(runInTurn(tool, slot, input, context)))
      .then(resolve, reject)
      .finally(() => slot.end())
  })
}

/** Runs the handler; what it throws becomes a result, or an RpcError as the server is configured. */
function attempt(
  tool: ServedTool,
  input: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  const fail = (error: unknown) => failure(tool, error, context)
  try {
    const returned = tool.run(input, context.call)
    if (isThenable(returned))
      return Promise.resolve(returned)
        .then((value) => finish(tool, value, context))
        .catch(fail)
    const result = finish(tool, returned, context)
    return result instanceof Promise ? result.catch(fail) : result
  } catch (error) {
    return fail(error)
  }
}

/** Tools that have been warned about: one warning each. */
const warned = new WeakSet<ServedTool>()

function finish(
  tool: ServedTool,
  returned: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  const { server, call } = context
  const result = resultOf(returned, tool.output)
  if (tool.output !== undefined && !warned.has(tool) && isResultShaped(returned)) {
    warned.add(tool)
    const message = `Tool ${tool.listing.name} returned what looks like a CallToolResult; it was used as the value. ${VALUE_HINT}`
    context.report({ level: 'warning', message, id: context.call.id })
  }
  const { maxResult } = tool.definition
  if (maxResult === undefined) return result
  const limit = (whole: CallToolResult) =>
    server.overflow.limit(tool.listing.name, whole, maxResult, call.client)
  return result instanceof Promise ? result.then(limit) : limit(result)
}

function failure(
  tool: ServedTool,
  error: unknown,
  { server, call, report, remote }: ToolContext,
): CallToolResult {
  if (error instanceof RpcError || error instanceof Suspended) throw error
  if (isToolError(error)) return failed(String(error.message))
  if (hasStopped(call.signal, error)) {
    report({
      level: 'debug',
      message: `Tool ${tool.listing.name} was aborted by its signal`,
      id: call.id,
    })
    return failed(`Tool ${tool.listing.name} was stopped`)
  }
  const known = remote ? ` (reference ${reference()})` : ''
  report({
    level: 'error',
    message: `Tool ${tool.listing.name} failed${known}`,
    id: call.id,
    error,
  })
  const text = `Tool ${tool.listing.name} failed${remote ? known : `: ${messageOf(error)}`}`
  if (server.unexpectedErrors === 'protocol') throw new RpcError(INTERNAL_ERROR, text)
  return failed(text)
}

/** Whether a handler has failed because its signal was aborted. */
function hasStopped({ aborted, reason }: AbortSignal, error: unknown): boolean {
  return (
    aborted &&
    (error === reason ||
      (error instanceof Error && (error.name === 'AbortError' || error.cause === reason)))
  )
}

function failed(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}

/** The message of whatever was thrown; never the stack. */
function messageOf(error: unknown): string {
  if (error instanceof Error) return String(error.message)
  return typeof error === 'string' ? error : 'it threw a value that is not an Error'
}
