import type { Principal } from '../../jsonrpc/channel.js'
import { INTERNAL_ERROR, INVALID_PARAMS, RpcError, abortError } from '../../jsonrpc/errors.js'
import { andThen } from '../../jsonrpc/hook.js'
import { type Params, type Request, isObject, isThenable } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { CallToolResult, ToolListing } from '../../protocol/model.js'
import { readRequestMeta } from '../../protocol/revisions/request-meta.js'
import { type Issue, MAX_ISSUES, type Outcome, describeIssues } from '../../schema/standard.js'
import { unknownArguments } from '../../schema/names.js'
import type { Context, InternalServer } from '../context.js'
import { Suspended } from '../ask.js'
import type { ClientOfCall } from '../extensions.js'
import { isToolError } from '../tool-error.js'
import { callerOf } from '../lifecycle.js'
import { ToolSlot } from '../tool-slot.js'
import { newErrorReference } from '../../jsonrpc/reference.js'
import { visibleTo, checkScopes, isVisibleTo, messageOf } from './definition.js'
import { VALUE_HINT, otherMember, resultOf } from './result.js'
import type { ServedTool } from './served-tool.js'

export function allTools({ server, connection }: Context): ToolListing[] | Promise<ToolListing[]> {
  const { extensions } = server
  return andThen(visibleTo(server.tools.values(), connection.caller), (seen) =>
    extensions === undefined
      ? seen.map(({ listing }) => listing)
      : seen.flatMap(
          ({ listing, definition }) => extensions.list(listing, definition, connection) ?? [],
        ),
  )
}

type HeaderParameters = ServedTool['headers']

/** The parameters of a tool that a stateless request must repeat in `Mcp-Param-…` headers; none of a tool that is hidden from the caller. */
export function headerParametersFor(
  server: InternalServer,
  name: string,
  request: Request,
  principal: Principal | undefined,
): HeaderParameters | Promise<HeaderParameters> {
  const tool = server.tools.get(name)
  if (tool === undefined || tool.headers.length === 0) return []
  const meta = readRequestMeta(request)
  if (meta === undefined) return []
  return andThen(isVisibleTo(tool.definition, callerOf(meta, principal)), (visible) =>
    visible ? tool.headers : [],
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
  if (tool === undefined) throw unknownTool(name)
  const visible = isVisibleTo(tool.definition, connection.caller)
  return visible instanceof Promise
    ? visible.then((seen) => callIfVisible(seen, tool, input, context))
    : callIfVisible(visible, tool, input, context)
}

function callIfVisible(
  visible: boolean,
  tool: ServedTool,
  input: unknown,
  context: Context,
): CallToolResult | Promise<CallToolResult> {
  if (!visible) throw unknownTool(tool.listing.name)
  checkScopes(tool.definition, context)
  if (!isObject(input))
    throw new RpcError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
  const outcome = tool.input.check(input)
  return outcome instanceof Promise
    ? outcome.then((checked) => runIfValid(checked, tool, input, context))
    : runIfValid(outcome, tool, input, context)
}

function runIfValid(
  outcome: Outcome,
  tool: ServedTool,
  input: Params,
  context: Context,
): CallToolResult | Promise<CallToolResult> {
  return outcome.issues === undefined
    ? runWrapped(tool, outcome.value, context)
    : invalidArguments(
        tool,
        [...outcome.issues, ...unknownArguments(tool.input.json, input, outcome.issues)],
        context,
      )
}

/** Runs a tool within the wrappers of the extensions: of all, or of those that are inside the one that runs it elsewhere. */
export function runWrapped(
  tool: ServedTool,
  input: unknown,
  context: ToolContext & { readonly connection: ClientOfCall },
  inside?: string,
): CallToolResult | Promise<CallToolResult> {
  const { server, call, connection, report, remote } = context
  if (server.extensions === undefined) return runTool(tool, input, context)
  const given = { tool: tool.definition, input, call, connection, remote }
  return server.extensions.call(
    given,
    (own) => runTool(tool, input, own === call ? context : { server, call: own, report, remote }),
    inside,
  )
}

function unknownTool(name: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Unknown tool: ${truncate(name)}`)
}

function invalidArguments(
  tool: ServedTool,
  issues: readonly Issue[],
  { server }: Context,
): CallToolResult {
  const text = `Invalid arguments for ${tool.listing.name}: ${describeIssues(issues)}`
  if (server.invalidArguments === 'protocol')
    throw new RpcError(INVALID_PARAMS, text, { issues: issues.slice(0, MAX_ISSUES) })
  return errorResult(text)
}

/** What running a tool needs; no connection is part of it. */
type ToolContext = Pick<Context, 'server' | 'call' | 'report' | 'remote'>

/** Runs a tool with valid arguments. */
export function runTool(
  tool: ServedTool,
  input: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  // It may have been cancelled while its arguments were validated, or an extension has waited: it has no result.
  if (!context.call.open) throw abortError(context.call.signal.reason)
  const { definition, semaphore } = tool
  if (definition.timeout === undefined && semaphore === undefined)
    return runHandler(tool, input, context)
  const slot = new ToolSlot(semaphore)
  context.call.slot = slot
  return definition.timeout === undefined
    ? runWithConcurrency(tool, slot, input, context)
    : runTimed(tool, slot, input, context, definition.timeout)
}

/** Waits only if there is no room, so that calls start in order. */
function runWithConcurrency(
  tool: ServedTool,
  slot: ToolSlot,
  input: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  const go = () => {
    let result: CallToolResult | Promise<CallToolResult>
    try {
      result = runHandler(tool, input, context)
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
    // One local client cannot have more calls than may be in progress.
    if (context.remote || tool.definition.queue !== undefined)
      tool.semaphore?.checkQueue(tool.listing.name)
  } catch (error) {
    return errorToResult(tool, error, context)
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
      resolve(errorResult(text))
      controller.abort(new Error(text))
    })
    new Promise<CallToolResult>((begin) => begin(runWithConcurrency(tool, slot, input, context)))
      .then(resolve, reject)
      .finally(() => slot.end())
  })
}

/** Runs the handler; what it throws becomes a result, or an RpcError as the server is configured. */
function runHandler(
  tool: ServedTool,
  input: unknown,
  context: ToolContext,
): CallToolResult | Promise<CallToolResult> {
  const fail = (error: unknown) => errorToResult(tool, error, context)
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
  const other = typeof returned !== 'object' || warned.has(tool) ? undefined : otherMember(returned)
  if (tool.output === undefined ? other : other === '') {
    warned.add(tool)
    const message = `Tool ${tool.listing.name} returned what looks like a CallToolResult${other ? `, but "${other}" is not a member of one; it was sent as JSON text` : `; it was used as the value. ${VALUE_HINT}`}`
    context.report({ level: 'warning', message, id: context.call.id })
  }
  const { maxResult } = tool.definition
  if (maxResult === undefined) return result
  const limit = (whole: CallToolResult) =>
    server.overflow.limit(tool.listing.name, whole, maxResult, call.client)
  return result instanceof Promise ? result.then(limit) : limit(result)
}

function errorToResult(
  tool: ServedTool,
  error: unknown,
  { server, call, report, remote }: ToolContext,
): CallToolResult {
  if (error instanceof RpcError || error instanceof Suspended) throw error
  if (isToolError(error)) return errorResult(String(error.message))
  if (hasStopped(call.signal, error)) {
    report({
      level: 'debug',
      message: `Tool ${tool.listing.name} was aborted by its signal`,
      id: call.id,
    })
    return errorResult(`Tool ${tool.listing.name} was stopped`)
  }
  const known = remote ? ` (reference ${newErrorReference()})` : ''
  report({
    level: 'error',
    message: `Tool ${tool.listing.name} failed${known}`,
    id: call.id,
    error,
  })
  const text = `Tool ${tool.listing.name} failed${remote ? known : `: ${messageOf(error)}`}`
  if (server.unexpectedErrors === 'protocol') throw new RpcError(INTERNAL_ERROR, text)
  return errorResult(text)
}

/** Whether a handler has failed because its signal was aborted. */
function hasStopped({ aborted, reason }: AbortSignal, error: unknown): boolean {
  return (
    aborted &&
    (error === reason ||
      (error instanceof Error && (error.name === 'AbortError' || error.cause === reason)))
  )
}

function errorResult(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}
