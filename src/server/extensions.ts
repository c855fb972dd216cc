import { RpcError } from '../jsonrpc/errors.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { MISSING_CLIENT_CAPABILITY } from '../protocol/errors.js'
import type { MethodDescriptor } from '../protocol/methods.js'
import type { CallToolResult, ToolListing } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Call, CallEnvironment, Caller, ClientContext } from './call.js'
import type { Tool } from './define.js'
import type { Result } from './middleware.js'
import type { Server } from './server.js'

/** A method of an extension: its facts, and how it is served. */
export interface ExtensionMethod extends Omit<MethodDescriptor, 'capability'> {
  serve(params: Params, call: Call): Result | Promise<Result>
}

/** The client of a request, as an extension sees it. */
export interface ExtensionClient {
  readonly caller: Caller
  /** What the client has declared for the extension; undefined if it has not, or its revision lacks the extension. */
  readonly settings: Params | undefined
}

/** A call of a tool that the caller may use, with valid arguments. */
export interface ToolCall extends ExtensionClient {
  readonly tool: Tool
  readonly input: unknown
  readonly call: Call
}

/** What an extension sends on a stream of `subscriptions/listen`. */
export interface ExtensionStream {
  /** The value of its field in the acknowledgement. */
  readonly acknowledged: unknown
  /** Called after the acknowledgement; `notify` sends a notification on the stream. */
  start(notify: (method: string, params: object) => void): void
  /** Called when a started stream has ended. */
  stop(): void
}

/** What an extension of the protocol consists of; all but the `id` is optional. */
export interface ExtensionDefinition {
  /** Its name, with a prefix: `com.example/audit`. */
  readonly id: string
  /** The protocol revisions that have it (default: all). */
  readonly revisions?: readonly string[]
  /** What the server declares in `capabilities.extensions` (default `{}`). */
  readonly settings?: Params
  /** The ids of the extensions that it needs. */
  readonly requires?: readonly string[]
  /** Its request methods; a client that has not declared the extension gets −32021. */
  readonly methods?: Readonly<Record<string, ExtensionMethod>>
  /** Values of `resultType` that it may return, in revisions whose results have one. */
  readonly resultTypes?: readonly string[]
  /** Members that it adds to the definition of a tool, each with a check that returns what is wrong. */
  readonly toolFields?: Readonly<Record<string, (value: unknown) => string | undefined>>
  /** The listing of a tool for a client; undefined leaves it out of the list. Called in every revision. */
  listTool?(listing: ToolListing, tool: Tool, client: ExtensionClient): ToolListing | undefined
  /** Wraps every `tools/call`, in every revision; `run` runs the tool's handler, for this request or elsewhere. */
  callTool?(
    call: ToolCall,
    run: (environment?: CallEnvironment) => CallToolResult | Promise<CallToolResult>,
  ): Result | CallToolResult | Promise<Result | CallToolResult>
  /** Fields of `subscriptions/listen`; each opens a stream for the value that was sent. */
  readonly listen?: Readonly<
    Record<string, (value: unknown, call: Call) => ExtensionStream | Promise<ExtensionStream>>
  >
  /** Called when the server is first served, before it receives a message. */
  start?(server: Server): void
  /** Called when the last transport has stopped serving it. */
  stop?(): void | Promise<void>
}

/** A stream of an extension, and the field of `subscriptions/listen` that has opened it. */
export type OpenedStream = readonly [field: string, stream: ExtensionStream]

/** An extension, as `extension(…)` makes it. */
export interface Extension extends ExtensionDefinition {
  /** The code that extensions need, so that servers without them do not load it. */
  readonly compose: (all: readonly Extension[], coreMethods: Iterable<string>) => Extensions
}

/** Makes an extension for `createServer({ extensions: [ … ] })`. */
export function extension(definition: ExtensionDefinition): Extension {
  return { ...definition, compose: (all, coreMethods) => new Extensions(all, coreMethods) }
}

/** The extensions of one server. */
export class Extensions {
  readonly #all: readonly Extension[]
  readonly #resultTypes = new Map<unknown, Extension>()
  /** The members that they add to the definition of a tool. */
  readonly toolFields: NonNullable<Extension['toolFields']>
  #users = 0

  /** Throws if two extensions have the same name for something, or one lacks what it requires. */
  constructor(all: readonly Extension[], coreMethods: Iterable<string>) {
    this.#all = all
    const taken = new Map<string, string>()
    for (const method of coreMethods) taken.set(`method ${method}`, 'the protocol')
    for (const type of ['complete', 'input_required'])
      taken.set(`result type ${type}`, 'the protocol')
    for (const extension of all) {
      const {
        id,
        requires = [],
        methods = {},
        resultTypes = [],
        toolFields = {},
        listen = {},
      } = extension
      if (typeof id !== 'string' || !/^[^\s/]+\/[^\s/]+$/.test(id))
        throw new TypeError(`Extension id ${JSON.stringify(id)} must be like "com.example/name"`)
      const missing = requires.find((other) => !all.some((each) => each.id === other))
      if (missing !== undefined) throw new TypeError(`Extension ${id} requires ${missing}; add it`)
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
    this.toolFields = Object.assign({}, ...all.map(({ toolFields }) => toolFields)) as Record<
      string,
      never
    > // each from one extension
  }

  [Symbol.iterator](): Iterator<Extension> {
    return this.#all.values()
  }

  isIn({ revisions }: Extension, { id }: Revision): boolean {
    return revisions === undefined || revisions.includes(id)
  }

  /** Throws if the client has not declared the extension. */
  requireDeclared(extension: Extension, connection: ClientContext): void {
    const { id } = extension
    if (this.#clientOf(extension, connection).settings !== undefined) return
    throw new RpcError(
      MISSING_CLIENT_CAPABILITY,
      `This request needs the extension ${id}; declare it in the client's capabilities`,
      { requiredCapabilities: { extensions: { [id]: {} } } },
    )
  }

  #clientOf(extension: Extension, { revision, caller }: ClientContext): ExtensionClient {
    const declared = caller.capabilities['extensions']
    const settings = isObject(declared) ? declared[extension.id] : undefined
    return {
      caller,
      settings: this.isIn(extension, revision) && isObject(settings) ? settings : undefined,
    }
  }

  /** What the server declares in a revision. */
  capabilities(revision: Revision): object {
    const known = this.#all.filter((extension) => this.isIn(extension, revision))
    if (known.length === 0) return {}
    return { extensions: Object.fromEntries(known.map(({ id, settings = {} }) => [id, settings])) }
  }

  /** Whether tools are listed differently for different clients. */
  get variesByClient(): boolean {
    return this.#all.some(({ listTool }) => listTool !== undefined)
  }

  list(listing: ToolListing, tool: Tool, connection: ClientContext): ToolListing | undefined {
    let listed: ToolListing | undefined = listing
    for (const extension of this.#all)
      if (listed !== undefined && extension.listTool !== undefined)
        listed = extension.listTool(listed, tool, this.#clientOf(extension, connection))
    return listed
  }

  /** Runs a tool within all wrappers, the first one outermost. */
  call(
    {
      tool,
      input,
      call,
      connection,
    }: { tool: Tool; input: unknown; call: Call; connection: ClientContext },
    run: (environment?: CallEnvironment) => CallToolResult | Promise<CallToolResult>,
  ): CallToolResult | Promise<CallToolResult> {
    return this.#all.reduceRight((next, extension) => {
      if (extension.callTool === undefined) return next
      const client = this.#clientOf(extension, connection)
      return (outer) =>
        extension.callTool?.({ ...client, tool, input, call }, (environment = outer) =>
          next(environment),
        ) as unknown as CallToolResult // or another result type
    }, run)()
  }

  /** Whether a result is of a type that an extension has added. Throws if the client does not know it. */
  isExtensionResult(result: object, connection: ClientContext): boolean {
    const extension = 'resultType' in result ? this.#resultTypes.get(result.resultType) : undefined
    if (extension === undefined) return false
    this.requireDeclared(extension, connection)
    if (connection.revision.typedResults) return true
    throw new TypeError(`${extension.id}: results of ${connection.revision.id} have no resultType`)
  }

  /** Opens the streams of all fields of a `subscriptions/listen` that belong to extensions. */
  listen(notifications: unknown, call: Call, connection: ClientContext): Promise<OpenedStream[]> {
    const asked: Params = isObject(notifications) ? notifications : {}
    const opened: Promise<OpenedStream>[] = []
    for (const extension of this.#all)
      for (const [field, open] of Object.entries(extension.listen ?? {})) {
        if (asked[field] === undefined || !this.isIn(extension, connection.revision)) continue
        this.requireDeclared(extension, connection)
        opened.push(Promise.resolve(open(asked[field], call)).then((stream) => [field, stream]))
      }
    return Promise.all(opened)
  }

  /** Starts the extensions for the first user of the server; the last one to call the returned function stops them. */
  acquire(server: Server): (report: (entry: LogEntry) => void) => Promise<void> {
    if (this.#users === 0) for (const extension of this.#all) extension.start?.(server)
    this.#users++
    let used = true
    return async (report) => {
      if (!used) return
      used = false
      if (--this.#users > 0) return
      for (const extension of this.#all.toReversed())
        try {
          await extension.stop?.()
        } catch (error) {
          report({ level: 'error', message: `Extension ${extension.id} failed to stop`, error })
        }
    }
  }
}
