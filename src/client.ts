import { checkPrincipal, isExpired } from './auth/principal.js'
import type { Target } from './client/target.js'
import type { Principal } from './jsonrpc/channel.js'
import { RpcError } from './jsonrpc/errors.js'
import { ignore } from './jsonrpc/hook.js'
import { UNAUTHORIZED } from './protocol/errors.js'
import { METHODS } from './protocol/methods.js'
import { checkNames, namesOf } from './schema/names.js'
import { acquire } from './server/acquire.js'
import { checkServer } from './server/context.js'
import type { Server } from './server/server.js'
import { ServerSession } from './server/session.js'
import { type HttpClientOptions, HttpTarget } from './transports/http/client/target.js'
import { memoryChannels } from './transports/memory.js'
import { ProcessChannel, type ProcessOptions, childProcess } from './transports/stdio-client.js'

const PROCESS = namesOf<ProcessOptions>()('cwd env stderr framing maxMessage exitTimeout')

/** A server that is started as a child process, over stdio. Throws in a runtime that cannot start one, such as a browser. */
export function stdio(
  command: string,
  args: readonly string[] = [],
  options: ProcessOptions = {},
): Target {
  if (typeof command !== 'string' || !Array.isArray(args))
    throw new TypeError(
      "stdio: the arguments are stdio(command, args, options), such as stdio('node', ['server.mjs'])",
    )
  checkNames('stdio', options, PROCESS)
  childProcess()
  return { open: () => new ProcessChannel(command, args, options) }
}

const HTTP = namesOf<HttpClientOptions>()('fetch headers authorizer maxMessage')

/** A server at a URL, over Streamable HTTP or HTTP+SSE. */
export function http(url: string | URL, options: HttpClientOptions = {}): Target {
  checkNames('http', options, HTTP)
  return new HttpTarget(url, options, (method) => METHODS.get(method)?.nameParam)
}

export interface MemoryOptions {
  /** The caller. Scopes of tools, resources and prompts are then required, as over HTTP. */
  principal?: Principal
}

const MEMORY = namesOf<MemoryOptions>()('principal')

/** A server in the same process. */
export function memory(server: Server, options: MemoryOptions = {}): Target {
  const internal = checkServer(server)
  checkNames('memory', options, MEMORY)
  const { principal } = options
  if (principal !== undefined) checkPrincipal('memory: "principal" must be', principal)
  return {
    open() {
      if (principal !== undefined && isExpired(principal))
        throw new RpcError(UNAUTHORIZED, 'Unauthorized: the principal has expired')
      const [client, other] = memoryChannels(principal)
      const release = acquire(internal, ignore, { remote: false })
      void new ServerSession(internal, other, { remote: false, closed: () => void release?.() })
      return client
    },
  }
}

export type {
  ClientExtension,
  ClientExtensionMethod,
  ExtensionConnection,
  ExtensionContext,
  ExtensionMembers,
  ResultContext,
} from './client/extension.js'
export type { InputHandlers } from './client/input-handlers.js'
export { type ConnectOptions, connect } from './client/connect.js'
export type { ClientNotifications, Requests, ServerNotifications } from './client/methods.js'
export { Client, type ToolCallOptions } from './client/client.js'
export type { CachedCallOptions, CacheOptions } from './client/cache.js'
export type { ClientEvents } from './client/events.js'
export type { Prior } from './client/prior.js'
export { requiredElicitations, type UrlElicitation } from './client/required-elicitations.js'
export type { ReconnectOptions } from './client/reconnect.js'
export type { CallOptions, Progress } from './client/call-options.js'
export type { ListenOptions, Subscription } from './client/subscription.js'
export type { ListChange, ResourceChange, SubscriptionEnded } from './client/subscriptions.js'
export { InvalidResultError, type TypedToolResult } from './client/tool-results.js'
export { ConnectionError, type Target, type TargetChannel } from './client/target.js'
export { TimeoutError } from './jsonrpc/deadline.js'
export {
  ChannelClosedError,
  type ErrorCode,
  RequestFailedError,
  RpcError,
} from './jsonrpc/errors.js'
export type { Channel, Principal, TappedMessage } from './jsonrpc/channel.js'
export type { Authorizer } from './transports/http/client/authorizer.js'
export type { HttpClientOptions } from './transports/http/client/target.js'
export type { ProcessOptions } from './transports/stdio-client.js'
export type {
  CallToolResult,
  ContentBlock,
  CreateMessageParams,
  CreateMessageResult,
  ElicitParams,
  ElicitResult,
  GetPromptResult,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  Root,
} from './protocol/model.js'
