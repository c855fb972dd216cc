import { checkPrincipal } from './auth/principal.js'
import { type MemoryOptions, memory } from './client.js'
import type { Target } from './client/target.js'
import { HttpChannel } from './harness/http-channel.js'
import { type PlayOptions, type PlayResult, play } from './harness/play.js'
import { type HttpOptions, httpHandler } from './http.js'
import type { Channel } from './jsonrpc/channel.js'
import type { LogEntry } from './jsonrpc/log-entry.js'
import { checkNames } from './schema/names.js'
import { acquire } from './server/acquire.js'
import { checkServer } from './server/context.js'
import type { Server } from './server/server.js'
import { ServerSession, type ServerSessionOptions } from './server/session.js'
import { memoryChannels } from './transports/memory.js'
import { callHook, ignore } from './jsonrpc/hook.js'

/** Connects to a server in memory; returns the client's channel. */
export function connectInMemory(
  server: Server,
  { report, closed, remote = false, ...options }: Partial<ServerSessionOptions> = {},
): Channel {
  const [client, other] = memoryChannels()
  const internal = checkServer(server)
  const safeReport = (entry: LogEntry) => callHook(() => report?.(entry), ignore)
  const release = acquire(internal, safeReport, { remote })
  void new ServerSession(internal, other, {
    ...options,
    remote,
    report: safeReport,
    closed: (error) => {
      void release?.()
      callHook(() => closed?.(error), ignore)
    },
  })
  return client
}

/**
 * A server over Streamable HTTP in the same process, without a port: real requests and responses, but no network. For
 * tests, also as a column of a `matrix`.
 */
export function inProcessHttp(server: Server, options: MemoryOptions = {}): Target {
  checkNames('inProcessHttp', options, 'principal')
  const { principal } = options
  if (principal !== undefined) checkPrincipal('inProcessHttp: "principal" must be', principal)
  const settings: HttpOptions = {
    retryInterval: 1,
    ...(principal === undefined ? {} : { auth: { verify: () => principal } }),
  }
  return {
    open() {
      const handler = httpHandler(server, settings)
      return new HttpChannel({
        fetch: handler,
        headers: principal === undefined ? {} : { Authorization: 'Bearer in-process' },
        parametersOf: (tool) => checkServer(server).tools.get(tool)?.headers ?? [],
        methodOf: (method) => checkServer(server).methods.get(method),
        close: () => handler.close(0),
      })
    },
  }
}

/**
 * Plays a transcript against a server in memory: lines that begin with `>` are
 * sent, lines that begin with `<` are expected, `*` matches any value, and other
 * lines are comments.
 */
export function playTranscript(
  transcript: string,
  server: Server,
  options: PlayOptions & MemoryOptions = {},
): Promise<PlayResult> {
  const { principal, ...playing } = options
  return play(
    transcript,
    memory(server, principal === undefined ? {} : { principal }).open(),
    playing,
  )
}

export { type Absent, type Cell, matrix } from './harness/matrix.js'
export { type PlayResult, type PlayOptions, play } from './harness/play.js'
export { memoryChannels } from './transports/memory.js'
export type { Channel, Receiver } from './jsonrpc/channel.js'
