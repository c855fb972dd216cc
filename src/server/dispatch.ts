import { INVALID_PARAMS, RpcError } from '../jsonrpc/errors.js'
import { andThen } from '../jsonrpc/hook.js'
import type { Params } from '../jsonrpc/message.js'
import { truncateJson } from '../jsonrpc/truncate.js'
import type {
  CacheHint,
  CallToolResult,
  GetPromptResult,
  PromptListing,
  ReadResourceResult,
  ResourceListing,
  ResourceTemplateListing,
  ToolListing,
} from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import {
  describeResult,
  projectCallResult,
  projectPrompt,
  projectPromptResult,
  projectReadResult,
  projectResource,
  projectTemplate,
  projectTool,
} from '../protocol/revisions/project.js'
import type { Context } from './context.js'
import { complete, completes } from './features/completion.js'
import { UNCACHED } from './features/definition.js'
import { page } from './features/listing.js'
import { allPrompts, getPrompt } from './features/prompts.js'
import { allResources, allTemplates, mayWatch, readResource } from './features/resources.js'
import { allTools, callTool } from './features/tools.js'
import { isLogLevel } from './log.js'
import { through } from './middleware.js'
import { discover } from './opening.js'

interface Method {
  serve(context: Context, params: Params): object | Promise<object>
  /** From the newest shape to the one of the revision that is spoken. */
  project?(revision: Revision, result: object): object
  /** How long its result may be kept: as the server says, or as the definition does. */
  cache?: 'list' | 'definition'
  /** Whether its handler may ask the client, so that it may have to be taken up again. */
  asks?: boolean
  /** Whether this server has anything of the kind; what it does not offer, it does not answer. */
  offered?(context: Context): boolean
}

const tools = ({ server }: Context) => server.tools.offered
const resources = ({ server }: Context) => server.resources.offered
const prompts = ({ server }: Context) => server.prompts.offered

/** A list, turned page by page, each item in the shape of the revision. */
function list<Item>(
  method: string,
  member: string,
  all: (context: Context) => readonly Item[] | Promise<readonly Item[]>,
  project: (revision: Revision, item: Item) => object,
): Method {
  type Named = { name: string }
  const turn = (context: Context, params: Params, items: readonly Item[]) =>
    page(method, member, items as readonly (Item & Named)[], context, params) // every listing has a name
  return {
    cache: 'list',
    serve(context, params) {
      return andThen(all(context), (items) => turn(context, params, items))
    },
    project: (revision, result) => ({
      ...result,
      [member]: (result as Record<string, Item[]>)[member]?.map((item) => project(revision, item)),
    }), // made by `page`
  }
}

/** The methods that are served. A new one is one line here. */
const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['server/discover', { serve: ({ server }) => discover(server), cache: 'list' }],
  ['ping', { serve: () => ({}) }],
  [
    'tools/list',
    { ...list<ToolListing>('tools/list', 'tools', allTools, projectTool), offered: tools },
  ],
  [
    'tools/call',
    {
      serve: callTool,
      project: (revision, result) => projectCallResult(revision, result as CallToolResult),
      offered: tools,
      asks: true,
    },
  ],
  [
    'resources/list',
    {
      ...list<ResourceListing>('resources/list', 'resources', allResources, projectResource),
      offered: resources,
    },
  ],
  [
    'resources/templates/list',
    {
      ...list<ResourceTemplateListing>(
        'resources/templates/list',
        'resourceTemplates',
        allTemplates,
        projectTemplate,
      ),
      offered: resources,
    },
  ],
  [
    'resources/read',
    {
      serve: readResource,
      project: (revision, result) => projectReadResult(revision, result as ReadResourceResult),
      cache: 'definition',
      offered: resources,
      asks: true,
    },
  ],
  ['resources/subscribe', { serve: subscribe, offered: resources }],
  ['resources/unsubscribe', { serve: unsubscribe, offered: resources }],
  [
    'prompts/list',
    {
      ...list<PromptListing>('prompts/list', 'prompts', allPrompts, projectPrompt),
      offered: prompts,
    },
  ],
  [
    'prompts/get',
    {
      serve: getPrompt,
      project: (revision, result) => projectPromptResult(revision, result as GetPromptResult),
      offered: prompts,
      asks: true,
    },
  ],
  ['completion/complete', { serve: complete, offered: ({ server }) => completes(server) }],
  ['logging/setLevel', { serve: setLevel }],
  [
    'subscriptions/listen',
    {
      serve: (context, params) =>
        context.watching().listen(context.incoming, params, (uri) => mayWatch(context, uri)),
    },
  ],
])

function uriOf({ uri }: Params): string {
  if (typeof uri === 'string') return uri
  throw new RpcError(INVALID_PARAMS, 'Invalid params: "uri" must be the URI of a resource')
}

function subscribe(context: Context, params: Params): object | Promise<object> {
  const uri = uriOf(params)
  return andThen(mayWatch(context, uri), (may) => {
    // Of one that is hidden nothing is told, not even that it is there.
    if (may) context.watching().subscribe(uri)
    return {}
  })
}

function unsubscribe({ watching }: Context, params: Params): object {
  watching().unsubscribe(uriOf(params))
  return {}
}

function setLevel({ setLogLevel }: Context, { level }: Params): object {
  if (!isLogLevel(level))
    throw new RpcError(
      INVALID_PARAMS,
      `Invalid params: "level" must be a log level, not ${truncateJson(level)}`,
    )
  setLogLevel(level)
  return {}
}

/** Serves a request that the revision knows; undefined where the server has nothing of the kind. */
export function dispatch(name: string, context: Context): unknown {
  const method = METHODS.get(name)
  if (method === undefined || method.offered?.(context) === false) return undefined
  const { revision } = context.connection
  const finish = (result: object) => {
    if (context.call.suspended) {
      const message = `${name} went on although it had asked: let Suspended pass, nobody hears what is returned then`
      context.report({ level: 'warning', message, id: context.call.id })
    }
    const projected = method.project?.(revision, result) ?? result
    return describeResult(revision, projected, context.server.info, hint(method, context, retried))
  }
  // Not held here: a call that lasts may let go of them.
  const params = () => context.incoming.request.params ?? {}
  const retried = isRetry(method, revision, params())
  const { middleware } = context.server
  const around = (serve: () => object | Promise<object>) =>
    middleware.length === 0 ? serve() : through(middleware, context.call, serve)
  const serve = () => around(() => method.serve(context, params()))
  // Before the middleware: that may ask as well. It also sees that the state is refused.
  const refuse = (error: unknown) =>
    around(() => {
      throw error
    })
  const result = retried ? context.call.resume(params()).then(serve, refuse) : serve()
  return result instanceof Promise ? result.then(finish) : finish(result)
}

/** What depends on answers is not to be kept: they are no part of the request by which it would be found. */
function hint(
  { cache }: Method,
  { server, cache: own = UNCACHED }: Context,
  retried: boolean,
): CacheHint | undefined {
  if (cache === undefined) return undefined
  if (retried) return UNCACHED
  return cache === 'list' ? server.listCache() : own
}

/** Whether the request brings back what an earlier one was answered with. */
function isRetry(
  { asks }: Method,
  { asking }: Revision,
  { requestState, inputResponses }: Params,
): boolean {
  return (
    asks === true &&
    asking === 'result' &&
    (requestState !== undefined || inputResponses !== undefined)
  )
}
