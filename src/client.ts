import type { Target } from './client/target.js'
import { type Principal, checkPrincipal } from './jsonrpc/channel.js'
import { checkNames, namesOf } from './schema/names.js'
import { type Server, checkServer } from './server/server.js'
import { ServerSession } from './server/session.js'
import { memoryChannels } from './transports/memory.js'
import { ProcessChannel, type ProcessOptions } from './transports/stdio-client.js'

const PROCESS = namesOf<ProcessOptions>()('cwd env stderr framing maxMessage patience')

/** A server that is started as a child process. */
export function stdio(
  command: string,
  args: readonly string[] = [],
  options: ProcessOptions = {},
): Target {
  checkNames('stdio', options, PROCESS)
  return { open: () => new ProcessChannel(command, args, options) }
}

export interface MemoryOptions {
  /** On whose behalf to call. Then a call needs the scopes that its tool, resource or prompt asks for, as over HTTP. */
  principal?: Principal
}

const MEMORY = namesOf<MemoryOptions>()('principal')

/** A server of this same process. */
export function memory(server: Server, options: MemoryOptions = {}): Target {
  checkServer(server)
  checkNames('memory', options, MEMORY)
  const { principal } = options
  if (principal !== undefined) checkPrincipal('memory: "principal" must be', principal)
  return {
    open() {
      const [client, other] = memoryChannels(principal)
      void new ServerSession(server, other)
      return client
    },
  }
}

export type { InputHandlers } from './client/input-handlers.js'
export { type ConnectOptions, connect } from './client/connect.js'
export type { ClientNotifications, Requests, ServerNotifications } from './client/methods.js'
export { type CallOptions, Client, type Progress } from './client/session.js'
export { ConnectionError, type Target, type TargetChannel } from './client/target.js'
export { Timeout } from './jsonrpc/deadline.js'
export { ChannelClosed, type ErrorCode, RpcError } from './jsonrpc/errors.js'
export type { Channel, Principal, Tapped } from './jsonrpc/channel.js'
export type { ProcessOptions } from './transports/stdio-client.js'
export type {
  CreateMessageParams,
  CreateMessageResult,
  ElicitParams,
  ElicitResult,
  Root,
} from './protocol/model.js'
