import {
  type CacheHint,
  type Icon,
  type Implementation,
  LOG_LEVELS,
  type LogLevel,
} from '../protocol/model.js'
import type { ChangeBus } from '../stores/change-bus.js'
import { isObject } from '../jsonrpc/message.js'
import { METHODS } from '../protocol/methods.js'
import { type Telemetry, observerOf } from '../protocol/telemetry.js'
import { atCallOf } from '../runtime.js'
import { checkNames, namesOf } from '../schema/names.js'
import { checkBus } from './acquire.js'
import type { StateOptions } from './ask.js'
import type { Call, Caller } from './call.js'
import type { Prompt, Resource, Tool } from './define.js'
import type { InternalServer, ServedMethod } from './context.js'
import { HANDLERS } from './dispatch.js'
import type { Extension, Extensions } from './extensions.js'
import { UNCACHED, checkSharedProperties, hintOf } from './features/definition.js'
import { Overflow } from './features/overflow.js'
import { ResourceIndex } from './features/resource-index.js'
import { preparePrompt } from './features/served-prompt.js'
import { prepareResource } from './features/served-resource.js'
import { TOOL_MEMBERS, prepareTool } from './features/served-tool.js'
import { type Log, makeLog } from './log.js'
import type { Middleware } from './middleware.js'
import { ChangeEmitter, Registry } from './registry.js'
import { Cipher } from './cipher.js'
import type { Server } from './server.js'
import { LISTEN_FIELDS } from './subscriptions.js'
import { normalizeUri } from './uri.js'

export interface ServerOptions {
  /** The programmatic name, such as `calculator`. */
  name: string
  /** The version of the server itself, not of the protocol. */
  version: string
  /** The display name; default is the name. */
  title?: string
  /** What it is for. */
  description?: string
  /** The web site of the server. */
  websiteUrl?: string
  /** Icons, each with a `src`. */
  icons?: Icon[]
  /** Instructions for the model: how to use this server. */
  instructions?: string
  /** Tools, created with `tool(…)`. More can be added at run time. */
  tools?: readonly Tool[]
  /** Resources, created with `resource(…)`. */
  resources?: readonly Resource[]
  /** Prompts, created with `prompt(…)`. */
  prompts?: readonly Prompt[]
  /** Extensions of the protocol, created with `extension(…)` of `ccmcp/extensions` (default: none). */
  extensions?: readonly Extension[]
  /** Tells other processes of the same server of changes, and this one of theirs: `redis(…).changes`, or `changeBus(…)` of `ccmcp/http`. */
  changes?: ChangeBus
  /** One handler for all tools that have no `run` of their own. */
  handle?: (name: string, input: unknown, call: Call) => unknown
  /**
   * Called once for each client that has initialized, after the first response
   * that follows `notifications/initialized`. Its log goes to that client alone.
   */
  onInitialized?: (client: { caller: Caller; log: Log }) => void | Promise<void>
  /** Caching hints of lists (default: not cacheable). Lists that depend on the caller are never public. */
  cache?: Partial<CacheHint>
  /** The state of questions to the client between two requests: see `call.ask`. */
  state?: StateOptions
  /** Maximum items of a page of a list (default 1000); many clients read the first page only. */
  pageSize?: number
  /** The lowest level of log messages to clients until they set one (default `info`). */
  logLevel?: LogLevel
  /** An unknown revision in `initialize`: negotiate (as MCP specifies), echo it, or reject it. */
  unsupportedRevision?: 'negotiate' | 'echo' | 'reject'
  /** Arguments that do not match the schema: a result that the model can act on, or error −32602. */
  invalidArguments?: 'result' | 'protocol'
  /** An exception in a tool other than ToolError: a result with `isError`, or error −32603. */
  unexpectedErrors?: 'result' | 'protocol'
  /** Spans and metrics: `otel()` of `ccmcp/telemetry`, `prometheus()` of `ccmcp/prometheus`, or both in an array (default: none). */
  telemetry?: Telemetry | readonly Telemetry[]
}

const OPTIONS = namesOf<ServerOptions>()(
  'name version title description websiteUrl icons instructions tools resources prompts extensions changes handle onInitialized cache state pageSize logLevel unsupportedRevision invalidArguments unexpectedErrors telemetry',
)

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  unsupportedRevision: ['negotiate', 'echo', 'reject'],
  invalidArguments: ['result', 'protocol'],
  unexpectedErrors: ['result', 'protocol'],
  logLevel: LOG_LEVELS,
}

/** Creates a server. Throws if a definition is invalid. */
export function createServer(options: ServerOptions): Server
export function createServer(options: ServerOptions, more?: unknown): Server {
  return atCallOf(createServer, () => create(options, more))
}

function create(options: ServerOptions, more: unknown): Server {
  if (!isObject(options))
    throw new TypeError('createServer: pass an object with a "name" and a "version"')
  // Not a number: it may be the callback of `map`.
  if (isObject(more))
    throw new TypeError(
      'createServer takes one object: add "instructions" to it; capabilities follow from the definitions',
    )
  checkNames('createServer', options, OPTIONS)
  const {
    instructions,
    tools = [],
    resources = [],
    prompts = [],
    extensions: added = [],
    changes: bus,
    handle,
    onInitialized,
    state = {},
    pageSize = 1000,
    logLevel = 'info',
  } = options
  const {
    unsupportedRevision = 'negotiate',
    invalidArguments = 'result',
    unexpectedErrors = 'result',
  } = options
  for (const [option, value] of Object.entries({
    unsupportedRevision,
    invalidArguments,
    unexpectedErrors,
    logLevel,
  })) {
    const allowed = CHOICES[option] ?? []
    if (!allowed.includes(value))
      throw new TypeError(
        `createServer: "${option}" must be one of ${allowed.join(', ')}, not ${JSON.stringify(value)}`,
      )
  }
  for (const [option, value] of Object.entries({ tools, resources, prompts, extensions: added }))
    if (!Array.isArray(value)) throw new TypeError(`createServer: "${option}" must be an array`)
  if (!(Number.isInteger(pageSize) && pageSize > 0))
    throw new TypeError('createServer: "pageSize" must be an integer greater than 0')
  const cache = hintOf(
    options.cache ?? UNCACHED,
    (problem) => new TypeError(`createServer: ${problem}`),
  )
  const extensions = compose(added)
  if (bus !== undefined) checkBus(bus, 'createServer: ')
  const changes = new ChangeEmitter(uriKey)
  const overflow = new Overflow()
  const resourceIndex = new ResourceIndex()
  const middleware: Middleware[] = []
  let log: Log | undefined
  const changed = (list: 'tools' | 'resources' | 'prompts') => () => changes.emit({ list })
  const server: InternalServer = {
    info: infoOf(options),
    instructions,
    tools: new Registry(
      'Tool',
      (each) => each?.name,
      (each) => {
        const served = prepareTool(each, handle, extensions?.toolFields)
        if (each.maxResult !== undefined && !server.resources.has(overflow.resource.uri))
          server.resources.add(overflow.resource)
        for (const needed of extensions?.toolResources(each) ?? [])
          if (server.resources.entry(needed.uri)?.definition !== needed)
            server.resources.add(needed)
        return served
      },
      changed('tools'),
    ),
    resources: new Registry(
      'Resource',
      (each) => each?.uri,
      prepareResource,
      changed('resources'),
      uriKey,
      resourceIndex,
    ),
    resourceIndex,
    prompts: new Registry('Prompt', (each) => each?.name, preparePrompt, changed('prompts')),
    use: (each) => void middleware.push(each),
    middleware,
    methods: methodTable(extensions),
    extensions,
    listCache: () =>
      cache.cacheScope === 'public' && listsVaryByCaller(server)
        ? { ...cache, cacheScope: 'private' }
        : cache,
    overflow,
    updated(uri) {
      if (typeof uri !== 'string') throw new TypeError('server.updated: the URI must be a string')
      changes.emit({ uri })
    },
    // Made when it is first used: it would delay the first response.
    get log() {
      log ??= makeLog((message) => changes.emit({ log: message }))
      return log
    },
    changes,
    bus,
    cipher: new Cipher(state.keys),
    state: stateOf(state),
    onInitialized,
    pageSize,
    logLevel,
    unsupportedRevision,
    invalidArguments,
    unexpectedErrors,
    telemetry: observerOf('createServer', options.telemetry),
  }
  server.tools.add(...tools)
  server.resources.add(...resources)
  server.prompts.add(...prompts)
  return server
}

function compose(added: readonly Extension[]): Extensions | undefined {
  for (const [index, each] of added.entries())
    if (typeof (each as Partial<Extension> | undefined)?.compose !== 'function')
      throw new TypeError(
        `createServer: "extensions[${index}]" must be made with extension({ … }) of ccmcp/extensions`,
      )
  return added[0]?.compose(added, {
    methods: METHODS.keys(),
    toolFields: TOOL_MEMBERS,
    listenFields: LISTEN_FIELDS,
  })
}

/** The facts of each method beside its handler. */
function methodTable(extensions: Extensions | undefined): ReadonlyMap<string, ServedMethod> {
  const table = new Map<string, ServedMethod>()
  for (const [name, handler] of HANDLERS) table.set(name, { ...METHODS.get(name), ...handler })
  for (const extension of extensions ?? [])
    for (const [name, method] of Object.entries(extension.methods ?? {}))
      table.set(name, {
        ...method,
        extension,
        serve: ({ server, call }, params) =>
          server.extensions?.serve(extension, method, params, call) ?? {},
      })
  return table
}

/** The normal form by which URIs are compared. */
function uriKey(uri: string): string {
  return typeof uri === 'string' ? normalizeUri(uri).text : uri
}

/** Whether what is listed may depend on the caller. */
function listsVaryByCaller({ tools, resources, prompts, extensions }: InternalServer): boolean {
  if (extensions?.variesByClient === true) return true
  for (const { definition } of [...tools.values(), ...resources.values(), ...prompts.values()])
    if (definition.visible !== undefined || 'list' in definition) return true
  return false
}

function stateOf({
  keys = [],
  ttl = 600_000,
  maxBytes = 65_536,
  once,
}: StateOptions): InternalServer['state'] {
  if (keys.some((key) => typeof key !== 'string' || key.length < 32))
    throw new TypeError(
      'createServer: each of "state.keys" must be a secret of 32 characters or more',
    )
  if (!(ttl > 0 && ttl < 2 ** 31))
    throw new TypeError('createServer: "state.ttl" must be a number of milliseconds greater than 0')
  if (!(maxBytes > 0))
    throw new TypeError('createServer: "state.maxBytes" must be a number of bytes above 0')
  return once === undefined ? { ttl, maxBytes } : { ttl, maxBytes, once }
}

function infoOf({
  name,
  version,
  title,
  description,
  websiteUrl,
  icons,
}: ServerOptions): Implementation {
  for (const [field, value] of Object.entries({ name, version })) {
    if (typeof value !== 'string' || value === '')
      throw new TypeError(`createServer: "${field}" must be a non-empty string`)
  }
  checkSharedProperties(
    { title, description, icons },
    (problem) => new TypeError(`createServer: ${problem}`),
  )
  const info: Implementation = { name, version }
  if (title !== undefined) info.title = title
  if (description !== undefined) info.description = description
  if (websiteUrl !== undefined) info.websiteUrl = websiteUrl
  if (icons !== undefined) info.icons = icons
  return info
}
