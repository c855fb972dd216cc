import type { Params } from '../jsonrpc/message.js'
import type { CallToolResult, ListToolsResult } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { projectCallResult, projectTool } from '../protocol/revisions/shapes.js'
import type { Context } from './context.js'
import { callTool, listTools } from './features/tools.js'

interface Method<Result> {
  serve(context: Context, params: Params): Result | Promise<Result>
  /** From the newest shape to the one of the revision that is spoken. */
  project(revision: Revision, result: Result): object
}

const method = <Result>(serve: Method<Result>['serve'], project: Method<Result>['project']): Method<unknown> => ({
  serve,
  project: (revision, result) => project(revision, result as Result), // `serve` made it
})

/** The methods that a server with tools serves. A new one is one line here. */
const METHODS: ReadonlyMap<string, Method<unknown>> = new Map([
  [
    'ping',
    method(
      () => ({}),
      (_, result) => result,
    ),
  ],
  [
    'tools/list',
    method<ListToolsResult>(listTools, (revision, { tools }) => ({ tools: tools.map((tool) => projectTool(revision, tool)) })),
  ],
  ['tools/call', method<CallToolResult>(callTool, projectCallResult)],
])

/** Serves a request that the revision knows; undefined where the server has nothing of the kind. */
export function dispatch(name: string, context: Context, params: Params): unknown {
  const found = METHODS.get(name)
  if (found === undefined) return undefined
  const { revision } = context.connection
  const result = found.serve(context, params)
  return result instanceof Promise ? result.then((value) => found.project(revision, value)) : found.project(revision, result)
}
