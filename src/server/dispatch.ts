import { INVALID_PARAMS, RpcError } from '../jsonrpc/errors.js'
import { andThen } from '../jsonrpc/hook.js'
import type { Params } from '../jsonrpc/message.js'
import { truncateJson } from '../jsonrpc/truncate.js'
import {
  type CacheHint,
  type CallToolResult,
  type GetPromptResult,
  LOG_LEVELS,
  type PromptListing,
  type ReadResourceResult,
  type ResourceListing,
  type ResourceTemplateListing,
  type ToolListing,
} from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import {
  addResultFields,
  projectCallResult,
  projectPrompt,
  projectPromptResult,
  projectReadResult,
  projectResource,
  projectResourceTemplate,
  projectTool,
} from '../protocol/revisions/project.js'
import type { Context, Handler, ServedMethod } from './context.js'
import type { OpenedStream } from './extensions.js'
import { UNCACHED } from './features/definition.js'
import { page } from './features/listing.js'
import { allPrompts, getPrompt } from './features/prompts.js'
import { allResources, allTemplates, maySubscribe, readResource } from './features/resources.js'
import { allTools, callTool } from './features/tools.js'
import { isLogLevel } from './log.js'
import { runMiddleware } from './middleware.js'
import { discover } from './lifecycle.js'
import { checkUri } from './subscriptions.js'
import { normalizeUri } from './uri.js'

/** A paginated list, each item projected to the revision. */
function list<Item>(
  method: string,
  member: string,
  all: (context: Context) => readonly Item[] | Promise<readonly Item[]>,
  project: (revision: Revision, item: Item) => object,
): Handler {
  type Named = { name: string }
  const toPage = (context: Context, params: Params, items: readonly Item[]) =>
    page(method, member, items as readonly (Item & Named)[], context, params) // every listing has a name
  return {
    serve(context, params) {
      return andThen(all(context), (items) => toPage(context, params, items))
    },
    project: (revision, result) => ({
      ...result,
      [member]: (result as Record<string, Item[]>)[member]?.map((item) => project(revision, item)),
    }), // made by `page`
  }
}

/** The methods that are served. `initialize` is not among them: the session serves it. */
export const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['server/discover', { serve: ({ server, connection }) => discover(server, connection.revision) }],
  ['ping', { serve: () => ({}) }],
  ['tools/list', list<ToolListing>('tools/list', 'tools', allTools, projectTool)],
  [
    'tools/call',
    {
      serve: callTool,
      project: (revision, result) => projectCallResult(revision, result as CallToolResult),
    },
  ],
  [
    'resources/list',
    list<ResourceListing>('resources/list', 'resources', allResources, projectResource),
  ],
  [
    'resources/templates/list',
    list<ResourceTemplateListing>(
      'resources/templates/list',
      'resourceTemplates',
      allTemplates,
      projectResourceTemplate,
    ),
  ],
  [
    'resources/read',
    {
      serve: readResource,
      project: (revision, result) => projectReadResult(revision, result as ReadResourceResult),
    },
  ],
  ['resources/subscribe', { serve: subscribe }],
  ['resources/unsubscribe', { serve: unsubscribe }],
  ['prompts/list', list<PromptListing>('prompts/list', 'prompts', allPrompts, projectPrompt)],
  [
    'prompts/get',
    {
      serve: getPrompt,
      project: (revision, result) => projectPromptResult(revision, result as GetPromptResult),
    },
  ],
  [
    'completion/complete',
    {
      // Loaded when it is first needed: few clients complete.
      async serve(context, params) {
        const { complete } = await import('./features/completion.js')
        return complete(context, params)
      },
    },
  ],
  ['logging/setLevel', { serve: setLevel }],
  ['subscriptions/listen', { serve: listen }],
])

function uriOf({ uri }: Params): string {
  if (typeof uri === 'string') return uri
  throw new RpcError(INVALID_PARAMS, 'Invalid params: "uri" must be the URI of a resource')
}

function subscribe(context: Context, params: Params): object | Promise<object> {
  const uri = uriOf(params)
  checkUri(uri)
  const normalized = normalizeUri(uri)
  return andThen(maySubscribe(context, uri, normalized), (may) => {
    // A hidden resource is not subscribed to; the response does not reveal it.
    if (may) context.subscriptions().subscribe(uri, normalized.text)
    return {}
  })
}

function unsubscribe({ subscriptions }: Context, params: Params): object {
  subscriptions().unsubscribe(uriOf(params))
  return {}
}

function listen(context: Context, params: Params): Promise<object> {
  const { server, incoming, call, connection } = context
  const begin = (streams: readonly OpenedStream[]) =>
    context
      .subscriptions()
      .listen(
        incoming,
        params,
        (uri, normalized) => maySubscribe(context, uri, normalized),
        streams,
      )
  if (server.extensions === undefined) return begin([])
  return server.extensions.listen(params['notifications'], call, connection).then(begin)
}

function setLevel({ setLogLevel }: Context, { level }: Params): object {
  if (!isLogLevel(level))
    throw new RpcError(
      INVALID_PARAMS,
      `Invalid params: "level" must be one of ${LOG_LEVELS.join(', ')}, not ${truncateJson(level)}`,
    )
  setLogLevel(level)
  return {}
}

/** Serves a request of a method that the revision and the server have. */
export function dispatch(method: ServedMethod, context: Context): unknown {
  const { server, connection } = context
  if (method.extension !== undefined)
    server.extensions?.requireDeclared(method.extension, connection)
  const params = context.incoming.request.params ?? {}
  const retried = isRetry(method, connection.revision, params)
  if (retried || server.middleware.length > 0) return serveWithMiddleware(method, context, retried)
  // Most requests: without a closure around them.
  const result = method.serve(context, params)
  return result instanceof Promise
    ? finishLater(result, method, context)
    : finish(result, method, context, false)
}

/** Serves a request through the middleware; a retry gets its state first, since the middleware may ask too. */
function serveWithMiddleware(method: ServedMethod, context: Context, retried: boolean): unknown {
  const { middleware } = context.server
  // Not stored here: a long call may release them.
  const params = () => context.incoming.request.params ?? {}
  const withMiddleware = (serve: () => object | Promise<object>) =>
    middleware.length === 0 ? serve() : runMiddleware(middleware, context.call, serve)
  const serve = () => withMiddleware(() => method.serve(context, params()))
  // The middleware also sees a refused state.
  const refuse = (error: unknown) =>
    withMiddleware(() => {
      throw error
    })
  const result = retried ? context.call.resume(params()).then(serve, refuse) : serve()
  const end = (value: object) => finish(value, method, context, retried)
  return result instanceof Promise ? result.then(end) : end(result)
}

/** Apart from `dispatch`, so that the closure does not hold the params. */
function finishLater(result: Promise<object>, method: ServedMethod, context: Context): unknown {
  return result.then((value) => finish(value, method, context, false))
}

/** Converts a result to the negotiated revision. */
function finish(result: object, method: ServedMethod, context: Context, retried: boolean): object {
  const { server, connection, call, incoming } = context
  const { revision } = connection
  if (call.suspended) {
    const message = `${incoming.request.method} returned a result after call.ask suspended it; the result is discarded. Do not catch Suspended`
    context.report({ level: 'warning', message, id: call.id })
  }
  const extended = server.extensions?.isExtensionResult(result, connection) === true
  const projected = extended ? result : (method.project?.(revision, result) ?? result)
  return addResultFields(revision, projected, server.info, hint(method, context, retried))
}

/** A result that depends on answers is not cacheable: they are not part of the cache key. */
function hint(
  { cache }: ServedMethod,
  { server, cache: own = UNCACHED }: Context,
  retried: boolean,
): CacheHint | undefined {
  if (cache === undefined) return undefined
  if (retried) return UNCACHED
  return cache === 'list' ? server.listCache() : own
}

/** Whether the request is a retry after `input_required`. */
function isRetry(
  { mayRequireInput }: ServedMethod,
  { asksBy }: Revision,
  { requestState, inputResponses }: Params,
): boolean {
  return (
    mayRequireInput === true &&
    asksBy === 'result' &&
    (requestState !== undefined || inputResponses !== undefined)
  )
}
