import type { Params } from '../jsonrpc/message.js'
import type { CallToolResult, ListToolsResult } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { type CacheHint, describeResult, projectCallResult, projectTool } from '../protocol/revisions/shapes.js'
import type { Context } from './context.js'
import { callTool, listTools } from './features/tools.js'
import { discover } from './opening.js'

interface Method {
  serve(context: Context, params: Params): object | Promise<object>
  /** From the newest shape to the one of the revision that is spoken. */
  project?(revision: Revision, result: object): object
  cache?: CacheHint
}

/** Nothing is kept, and by nobody else: what is listed may depend on the caller. */
const UNCACHED: CacheHint = { ttlMs: 0, cacheScope: 'private' }

/** The methods that are served. A new one is one line here. */
const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['server/discover', { serve: ({ server }) => discover(server), cache: UNCACHED }],
  ['ping', { serve: () => ({}) }],
  ['tools/list', { serve: listTools, project: projectTools, cache: UNCACHED }],
  ['tools/call', { serve: callTool, project: (revision, result) => projectCallResult(revision, result as CallToolResult) }],
])

function projectTools(revision: Revision, result: object): object {
  const { tools } = result as ListToolsResult // `listTools` made it
  return { tools: tools.map((tool) => projectTool(revision, tool)) }
}

/** Serves a request that the revision knows; undefined where the server has nothing of the kind. */
export function dispatch(name: string, context: Context, params: Params): unknown {
  const method = METHODS.get(name)
  if (method === undefined) return undefined
  const { revision } = context.connection
  const finish = (result: object) => {
    const projected = method.project?.(revision, result) ?? result
    return describeResult(revision, projected, context.server.info, method.cache)
  }
  const result = method.serve(context, params)
  return result instanceof Promise ? result.then(finish) : finish(result)
}
