import { RpcError } from '../jsonrpc/errors.js'
import { callHook, ignore, markHandled } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { type Params, isObject, isThenable } from '../jsonrpc/message.js'
import { truncateJson } from '../jsonrpc/truncate.js'
import { MISSING_CLIENT_CAPABILITY } from '../protocol/errors.js'
import { CORE_RESULT_TYPES } from '../protocol/extension-rules.js'
import type { MethodDescriptor } from '../protocol/methods.js'
import type { CallToolResult, ToolListing } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { namesOf } from '../schema/names.js'
import type { Asking } from './ask.js'
import {
  type Call,
  type CallEnvironment,
  type Caller,
  type ClientContext,
  ServedCall,
} from './call.js'
import type { Resource, Tool } from './define.js'
import { checkDefinition, checkStream } from './extension-checks.js'
import type { Server } from './server.js'

/** A method of an extension: its facts, and how it is served. */
export interface ExtensionMethod extends Omit<MethodDescriptor, 'capability'> {
  /** Returns the result, an object of JSON. */
  serve(params: Params, call: Call): object | Promise<object>
}

/** The client of a request, as an extension sees it. */
export interface ExtensionClient {
  readonly caller: Caller
  /** What the client has declared for the extension; undefined if it has not, or its revision lacks the extension. */
  readonly settings: Params | undefined
}

/** What extensions need to know of the client of a call. */
export type ClientOfCall = Pick<ClientContext, 'revision' | 'caller'>

/** Runs a tool for a call. */
type RunTool = (call: ServedCall) => CallToolResult | Promise<CallToolResult>

/** A call of a tool that the caller may use, with valid arguments. */
export interface ToolCall extends ExtensionClient {
  readonly tool: Tool
  readonly input: unknown
  /** The request; within an extension that runs the handler elsewhere, what it runs there. */
  readonly call: Call
  /** The params of the request: as they were received, or its `name`, `arguments` and `_meta` if it is run elsewhere. */
  readonly params: Params
  /** How the call asks its client, and what it has recorded. */
  asking(): Promise<Asking>
  /** Whether the caller may be anybody: errors hide internals. */
  readonly remote: boolean
}

/** What an extension sends on a stream of `subscriptions/listen`. */
export interface ExtensionStream {
  /** The value of its field in the acknowledgement. Undefined: the field is not accepted, and the stream is not started. */
  readonly acknowledged: unknown
  /** Called after the acknowledgement; `notify` sends a notification on the stream. If it throws, the stream ends. */
  start(notify: (method: string, params: object) => void): void
  /** Called once when the stream has ended, if `start` was called. */
  stop(): void
}

/** How the server is served when its extensions are started. */
export interface Serving {
  /** True over HTTP and in a worker: an operator sees startup errors. False over stdio and in memory. */
  readonly remote: boolean
  /** Given if there are no clients: this process only does work that others have stored, as `ccmcp worker` does. */
  readonly worker?: {
    /** How much of it at the same time; overrides the server's own setting. */
    readonly concurrency?: number
    /** Milliseconds for work in progress to end before it is interrupted (default 0). */
    readonly drain?: number
  }
}

/** What an extension of the protocol consists of; all but the `id` is optional. */
export interface ExtensionDefinition {
  /** Its identifier: a prefix, a slash and a name, such as `com.example/audit`. */
  readonly id: string
  /** The protocol revisions that have it (default: all). */
  readonly revisions?: readonly string[]
  /** What the server declares in `capabilities.extensions` (default `{}`). */
  readonly settings?: Params
  /** The ids of the extensions that it needs. */
  readonly requires?: readonly string[]
  /** Whether clients declare it as well (default true): one that has not gets −32021 for its methods and listen fields. */
  readonly clientDeclares?: boolean
  /** Its request methods. */
  readonly methods?: Readonly<Record<string, ExtensionMethod>>
  /** Values of `resultType` that it may return, in revisions whose results have one. */
  readonly resultTypes?: readonly string[]
  /** Members that it adds to the definition of a tool, each with a check that returns what is wrong. */
  readonly toolFields?: Readonly<Record<string, (value: unknown) => string | undefined>>
  /** The resources that a tool needs: they are added to the server with it. Throws if the extension does not allow the tool. */
  toolResources?(tool: Tool): readonly Resource[]
  /** The listing of a tool for a client; undefined leaves it out of the list. Called in every revision. */
  listTool?(listing: ToolListing, tool: Tool, client: ExtensionClient): ToolListing | undefined
  /**
   * Wraps every `tools/call`, in every revision; `run` runs the tool's handler, for this request or elsewhere. If
   * `call.ask` ends the request and the call is run again, `run` throws `Suspended`, which must reach the
   * caller, and this is called once per attempt (`call.attempt`). Extensions wrap in the order in which they are listed,
   * the first around the others; those with `outermost` come first.
   */
  callTool?(
    call: ToolCall,
    run: (environment?: CallEnvironment) => CallToolResult | Promise<CallToolResult>,
  ): object | Promise<object>
  /** Whether its `callTool` is around those of the extensions without `outermost`, wherever it is listed (default false): for one that runs handlers elsewhere. */
  readonly outermost?: boolean
  /** Fields of `subscriptions/listen`; each opens a stream for the value that was sent. */
  readonly listen?: Readonly<
    Record<string, (value: unknown, call: Call) => ExtensionStream | Promise<ExtensionStream>>
  >
  /**
   * Whether the server has it now (default: always). If not, it is neither declared nor served, and `settings` of clients
   * are undefined. Called often, while the server is served.
   */
  available?(): boolean
  /**
   * Called when the server is first served, before it receives a message; `report` writes to the log of the process.
   * What it throws is thrown by the transport.
   */
  start?(server: Server, report: (entry: LogEntry) => void, serving: Serving): void
  /** Called when the last transport has stopped serving it. */
  stop?(): void | Promise<void>
}

/** A stream of an extension, and the field of `subscriptions/listen` that has opened it. */
export type OpenedStream = readonly [field: string, stream: ExtensionStream]

/** An extension, as `extension(…)` makes it. */
export interface Extension extends ExtensionDefinition {
  /** The code that extensions need, so that servers without them do not load it. */
  readonly compose: (all: readonly Extension[], core: CoreNames) => Extensions
}

/** Names of the core protocol that extensions cannot have. */
export interface CoreNames {
  readonly methods: Iterable<string>
  readonly toolFields: Iterable<string>
  readonly listenFields: Iterable<string>
}

const NAMES = {
  members: namesOf<ExtensionDefinition>()(
    'id revisions settings requires clientDeclares methods resultTypes toolFields toolResources listTool callTool outermost listen available start stop',
  ),
  methodMembers: namesOf<ExtensionMethod>()(
    'serve nameParam paramHeaders mayRequireInput urgent cache stream session',
  ),
}

/** Makes an extension for `createServer({ extensions: [ … ] })`. Throws if the definition is not valid. */
export function extension(definition: ExtensionDefinition): Extension {
  checkDefinition(definition, NAMES)
  return { ...definition, compose: (all, core) => new Extensions(all, core) }
}

/** The extensions of one server. */
export class Extensions {
  readonly #all: readonly Extension[]
  /** Those with a `callTool`, the outermost first. */
  readonly #wrappers: readonly Extension[]
  readonly #resultTypes = new Map<unknown, Extension>()
  /** The members that they add to the definition of a tool. */
  readonly toolFields: NonNullable<Extension['toolFields']>
  #users = 0

  /** Throws if two extensions have the same name for something, or one lacks what it requires. */
  constructor(all: readonly Extension[], core: CoreNames) {
    this.#all = all
    const wrappers = all.filter(({ callTool }) => callTool !== undefined)
    this.#wrappers = [
      ...wrappers.filter(({ outermost }) => outermost === true),
      ...wrappers.filter(({ outermost }) => outermost !== true),
    ]
    const taken = new Map<string, string>()
    for (const [kind, names] of Object.entries({
      method: core.methods,
      'result type': CORE_RESULT_TYPES,
      'tool field': core.toolFields,
      'listen field': core.listenFields,
    }))
      for (const name of names) taken.set(`${kind} ${name}`, 'the core protocol')
    for (const extension of all) {
      const {
        id,
        requires = [],
        methods = {},
        resultTypes = [],
        toolFields = {},
        listen = {},
      } = extension
      const missing = requires.find((other) => !all.some((each) => each.id === other))
      if (missing !== undefined)
        throw new TypeError(`Extension ${id} requires ${missing}; add it to "extensions"`)
      for (const [kind, names] of Object.entries({
        id: [id],
        method: Object.keys(methods),
        'result type': resultTypes,
        'tool field': Object.keys(toolFields),
        'listen field': Object.keys(listen),
      }))
        for (const name of names) {
          const other = taken.get(`${kind} ${name}`)
          if (other !== undefined)
            throw new TypeError(`Extension ${id}: the ${kind} "${name}" is taken by ${other}`)
          taken.set(`${kind} ${name}`, id)
        }
      for (const type of resultTypes) this.#resultTypes.set(type, extension)
    }
    this.toolFields = Object.fromEntries(
      all.flatMap(({ id, toolFields = {} }) =>
        Object.entries(toolFields).map(([field, check]) => [
          field,
          (value: unknown) => problemOf(check(value), id),
        ]),
      ),
    )
  }

  [Symbol.iterator](): Iterator<Extension> {
    return this.#all.values()
  }

  /** Whether an extension is part of a revision, and available. */
  isIn(extension: Extension, { id }: Revision): boolean {
    const { revisions } = extension
    if (revisions !== undefined && !revisions.includes(id)) return false
    return extension.available === undefined || isAvailable(extension.available(), extension)
  }

  /** Throws if the client has not declared the extension, and must. */
  requireDeclared(extension: Extension, connection: ClientOfCall): void {
    const { id, clientDeclares = true } = extension
    if (!clientDeclares || this.#clientOf(extension, connection).settings !== undefined) return
    throw new RpcError(
      MISSING_CLIENT_CAPABILITY,
      `This request needs the extension ${id}; declare it in the client's capabilities`,
      { requiredCapabilities: { extensions: { [id]: {} } } },
    )
  }

  #clientOf(extension: Extension, { revision, caller }: ClientOfCall): ExtensionClient {
    const declared = caller.capabilities['extensions']
    const settings = isObject(declared) ? declared[extension.id] : undefined
    return {
      caller,
      settings: isObject(settings) && this.isIn(extension, revision) ? settings : undefined,
    }
  }

  /** What the server declares in a revision. */
  capabilities(revision: Revision): object {
    const known = this.#all.filter((extension) => this.isIn(extension, revision))
    if (known.length === 0) return {}
    return { extensions: Object.fromEntries(known.map(({ id, settings = {} }) => [id, settings])) }
  }

  /** The resources that the extensions need for a tool. */
  toolResources(tool: Tool): Resource[] {
    return this.#all.flatMap((extension) => extension.toolResources?.(tool) ?? [])
  }

  /** Whether tools are listed differently for different clients. */
  get variesByClient(): boolean {
    return this.#all.some(({ listTool }) => listTool !== undefined)
  }

  list(listing: ToolListing, tool: Tool, connection: ClientContext): ToolListing | undefined {
    let listed: ToolListing | undefined = listing
    for (const extension of this.#all)
      if (listed !== undefined && extension.listTool !== undefined)
        listed = listingOf(
          extension.listTool(listed, tool, this.#clientOf(extension, connection)),
          extension,
        )
    return listed
  }

  /** Runs a tool within all wrappers; if an extension runs it elsewhere (`inside`), within those that are inside its own. */
  call(
    {
      tool,
      input,
      call,
      connection,
      remote,
    }: {
      tool: Tool
      input: unknown
      call: ServedCall
      connection: ClientOfCall
      remote: boolean
    },
    run: RunTool,
    inside?: string,
  ): CallToolResult | Promise<CallToolResult> {
    let next = run
    for (let index = this.#wrappers.length - 1; index >= 0; index--) {
      const extension = this.#wrappers[index]
      if (extension === undefined || extension.id === inside) break
      const { caller, settings } = this.#clientOf(extension, connection)
      const inner = next
      next = (outer) => {
        const { params } = outer
        const asking = () => outer.asking()
        // Without a spread, which would be the most expensive part of a call.
        const toolCall = { caller, settings, tool, input, call: outer, params, asking, remote }
        const returned = extension.callTool?.(toolCall, (environment) => {
          const ran = inner(environment === undefined ? outer : new ServedCall(environment))
          // An extension that does not wait for it must not make its failure an unhandled rejection.
          return ran instanceof Promise ? markHandled(ran) : ran
        })
        return this.#checked(returned, extension, 'callTool') as CallToolResult // or another result type
      }
    }
    return next(call)
  }

  /** Serves a method of an extension. */
  serve(
    extension: Extension,
    method: ExtensionMethod,
    params: Params,
    call: Call,
  ): object | Promise<object> {
    return this.#checked(method.serve(params, call), extension, 'serve')
  }

  /** Throws for a result that clients could not understand. */
  #checked(
    returned: unknown,
    { id }: Pick<Extension, 'id'>,
    what: 'callTool' | 'serve',
  ): object | Promise<object> {
    if (isThenable(returned))
      return Promise.resolve(returned).then((result) => this.#checked(result, { id }, what))
    const where = `Extension ${id}: ${what}`
    if (!isObject(returned))
      throw new TypeError(
        `${where} returned no result; return an object${what === 'callTool' ? ', such as the result of run()' : ''}`,
      )
    const { resultType = 'complete', content } = returned
    if (this.#resultTypes.has(resultType)) return returned
    if (resultType !== 'complete')
      throw new TypeError(
        `${where} returned the resultType ${truncateJson(resultType)}, which no extension of the server has; add it to "resultTypes"`,
      )
    if (what === 'callTool' && !Array.isArray(content))
      throw new TypeError(`${where} returned neither "content" nor a "resultType"`)
    return returned
  }

  /** Whether a result is of a type that an extension has added. Throws if the client does not know it. */
  isExtensionResult(result: object, connection: ClientContext): boolean {
    const extension = 'resultType' in result ? this.#resultTypes.get(result.resultType) : undefined
    if (extension === undefined) return false
    this.requireDeclared(extension, connection)
    if (connection.revision.typedResults) return true
    throw new TypeError(
      `Extension ${extension.id}: protocol revision ${connection.revision.id} has no resultType, so this result cannot be sent`,
    )
  }

  /** Opens the streams of all fields of a `subscriptions/listen` that belong to extensions. */
  listen(notifications: unknown, call: Call, connection: ClientContext): Promise<OpenedStream[]> {
    const asked: Params = isObject(notifications) ? notifications : {}
    const opened: (() => Promise<OpenedStream>)[] = []
    for (const extension of this.#all)
      for (const [field, open] of Object.entries(extension.listen ?? {})) {
        if (asked[field] === undefined || !this.isIn(extension, connection.revision)) continue
        this.requireDeclared(extension, connection)
        opened.push(async () => {
          const stream = await open(asked[field], call)
          checkStream(stream, `Extension ${extension.id}: the listen field "${field}"`)
          return [field, stream]
        })
      }
    return Promise.all(opened.map((open) => open()))
  }

  /** Starts the extensions for the first user of the server; the last one to call the returned function stops them. */
  acquire(
    server: Server,
    report: (entry: LogEntry) => void,
    serving: Serving,
  ): () => Promise<void> {
    if (this.#users === 0) this.#start(server, report, serving)
    this.#users++
    let used = true
    return async () => {
      if (!used) return
      used = false
      if (--this.#users === 0) await stopAll(this.#all, report)
    }
  }

  /** Throws what an extension throws, after the ones before it are stopped. */
  #start(server: Server, report: (entry: LogEntry) => void, serving: Serving): void {
    const started: Extension[] = []
    for (const extension of this.#all)
      try {
        const returned: unknown = extension.start?.(server, report, serving)
        started.push(extension)
        callHook(
          () => returned,
          (error) => report(failure(extension, 'start', error)),
        )
      } catch (error) {
        void stopAll(started, report)
        throw error
      }
  }
}

/** What the check of a tool field says; its type does not hold in JavaScript. */
function problemOf(problem: unknown, id: string): string | undefined {
  if (problem === undefined || typeof problem === 'string') return problem
  callHook(() => problem, ignore)
  throw new TypeError(`Extension ${id}: a check of "toolFields" must return a string or undefined`)
}

/** What `available` says; its type does not hold in JavaScript. */
function isAvailable(available: unknown, { id }: Extension): boolean {
  if (typeof available === 'boolean') return available
  callHook(() => available, ignore)
  throw new TypeError(`Extension ${id}: available must return true or false`)
}

function listingOf(listing: unknown, { id }: Extension): ToolListing | undefined {
  if (listing === undefined) return undefined
  if (isObject(listing) && typeof listing['name'] === 'string' && isObject(listing['inputSchema']))
    return listing as unknown as ToolListing // the rest is as it was, or the extension's choice
  callHook(() => listing, ignore)
  throw new TypeError(`Extension ${id}: listTool must return the listing of a tool, or undefined`)
}

/** Stops extensions, the last one first. */
async function stopAll(
  extensions: readonly Extension[],
  report: (entry: LogEntry) => void,
): Promise<void> {
  for (const extension of extensions.toReversed())
    try {
      await extension.stop?.()
    } catch (error) {
      report(failure(extension, 'stop', error))
    }
}

function failure({ id }: Extension, what: string, error: unknown): LogEntry {
  return { level: 'error', message: `Extension ${id} failed to ${what}`, error }
}
