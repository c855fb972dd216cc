import { type PlayOptions, type Played, play } from './harness/play.js'
import type { Server } from './server/server.js'
import { Session, type SessionOptions } from './server/session.js'
import { memoryChannels } from './transports/memory.js'
import type { Channel } from './jsonrpc/channel.js'
import { callHook, ignore } from './jsonrpc/hook.js'

/** A client's end of a connection to a server, in memory. */
export function connectInMemory(server: Server, { report, closed, ...options }: SessionOptions = {}): Channel {
  const [client, other] = memoryChannels()
  void new Session(server, other, {
    ...options,
    ...(report && { report: (each) => callHook(() => report(each), ignore) }),
    ...(closed && { closed: (error) => callHook(() => closed(error), ignore) }),
  })
  return client
}

/**
 * Plays a transcript against a server in memory: lines that begin with `>` are
 * sent, lines that begin with `<` are expected, a bare `*` is any value, and
 * the rest is prose.
 */
export function playTranscript(transcript: string, server: Server, options?: PlayOptions): Promise<Played> {
  return play(transcript, connectInMemory(server), options)
}

export { type Absent, type Cell, matrix } from './harness/matrix.js'
export { type Played, type PlayOptions, play } from './harness/play.js'
export { memoryChannels } from './transports/memory.js'
export type { Channel, Receiver } from './jsonrpc/channel.js'
