import type { IncomingRequest } from '../jsonrpc/incoming.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { MethodDescriptor } from '../protocol/methods.js'
import type { CacheHint, LogLevel } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Observer } from '../protocol/telemetry.js'
import type { StateOptions } from './ask.js'
import type { Caller, ClientContext, ServedCall } from './call.js'
import type { Prompt, Resource, Tool } from './define.js'
import type { Extension, Extensions } from './extensions.js'
import type { Overflow } from './features/overflow.js'
import type { ResourceIndex } from './features/resource-index.js'
import type { ServedPrompt } from './features/served-prompt.js'
import type { ServedResource } from './features/served-resource.js'
import type { ServedTool } from './features/served-tool.js'
import type { Log } from './log.js'
import type { Middleware } from './middleware.js'
import type { ChangeEmitter, Registry } from './registry.js'
import type { Cipher } from './cipher.js'
import type { ChangeBus } from '../stores/change-bus.js'
import type { Server } from './server.js'
import type { Subscriptions } from './subscriptions.js'

/** How a method is served. */
export interface Handler {
  serve(context: Context, params: Params): object | Promise<object>
  /** From the newest shape to the one of the negotiated revision. */
  project?(revision: Revision, result: object): object
}

/** A row of a server's method table: the facts of a method, and its handler. */
export interface ServedMethod extends MethodDescriptor, Handler {
  /** The extension that it belongs to. */
  readonly extension?: Extension
}

/** A server as the rest of the code sees it; `createServer` makes it, `checkServer` gets it. */
export interface InternalServer extends Server {
  readonly tools: Registry<Tool, ServedTool>
  readonly resources: Registry<Resource, ServedResource>
  readonly resourceIndex: ResourceIndex
  readonly prompts: Registry<Prompt, ServedPrompt>
  /** The methods that it serves. */
  readonly methods: ReadonlyMap<string, ServedMethod>
  /** Undefined if there are none. */
  readonly extensions: Extensions | undefined
  readonly middleware: readonly Middleware[]
  /** The caching hint of lists. */
  listCache(): CacheHint
  readonly overflow: Overflow
  readonly changes: ChangeEmitter
  /** Tells other processes of changes. */
  readonly bus: ChangeBus | undefined
  readonly cipher: Cipher
  readonly onInitialized:
    | ((client: { caller: Caller; log: Log }) => void | Promise<void>)
    | undefined
  readonly state: Required<Omit<StateOptions, 'keys' | 'once'>> & Pick<StateOptions, 'once'>
  readonly pageSize: number
  readonly logLevel: LogLevel
  readonly unsupportedRevision: 'negotiate' | 'echo' | 'reject'
  readonly invalidArguments: 'result' | 'protocol'
  readonly unexpectedErrors: 'result' | 'protocol'
  /** Undefined without telemetry. */
  telemetry: Observer | undefined
}

/** The server behind its public type; throws if something else was given. */
export function checkServer(server: Server): InternalServer {
  if (isObject(server) && 'changes' in server && 'methods' in server)
    return server as unknown as InternalServer // nothing but `createServer` makes a `Server`
  throw new TypeError('Not a server: pass the return value of createServer()')
}

/** All that serving one request may need. */
export interface Context {
  readonly server: InternalServer
  readonly connection: ClientContext
  readonly call: ServedCall
  readonly incoming: IncomingRequest
  subscriptions(): Subscriptions
  /** The caching hint of the result, if the definition has one. */
  cache?: CacheHint
  /** Sets the lowest level of log messages for the rest of the session. */
  setLogLevel(level: LogLevel): void
  report(report: LogEntry): void
  /** Whether the caller may be anybody: errors hide internals, and the scopes of definitions are required. */
  readonly remote: boolean
}
