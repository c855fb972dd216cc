import type { Framing } from './framing/detect.js'
import type { Tapped } from './jsonrpc/channel.js'
import { checkNames, namesOf } from './schema/names.js'
import type { Server } from './server/server.js'
import { Serving, type ServingOptions } from './serving.js'
import { type ProcessLogLevel, type LogStream, standardError } from './transports/stdio-log.js'
import {
  type Descriptors,
  descriptorsFromEnvironment,
  standardWire,
} from './transports/stdio-wire.js'
import type { Input, Output } from './transports/streams.js'

/** How often a server looks whether its parent still lives. */
const PARENT_CHECK = 2000

/** The options that `serve` and `serveStdio` have in common. */
const SERVING = 'framing maxMessage maxDepth maxPending maxRetained log logLevel tap'
const SERVE = namesOf<ServeOptions>()(`${SERVING} input output signal`)
const STDIO = namesOf<StdioOptions>()(`${SERVING} wire greeting exit`)

export interface ServeOptions extends ServingOptions {
  /** Ends serving: no new work is taken, what is in flight is finished. */
  signal?: AbortSignal
}

/**
 * Serves one client on two byte streams. Resolves when the input has ended (or
 * the signal fired) and everything received has been answered; rejects where
 * the output cannot be written.
 */
export async function serve(server: Server, options: ServeOptions): Promise<void> {
  checkNames('serve', options, SERVE)
  const { signal } = options
  const serving = new Serving(server, options)
  const stop = () => serving.stop()
  if (signal?.aborted === true) stop()
  signal?.addEventListener('abort', stop)
  try {
    await serving.finished()
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

export interface StdioOptions extends Omit<ServingOptions, 'input' | 'output'> {
  /** The wire on descriptors other than stdin and stdout; the launcher names them in CCMCP_WIRE. */
  wire?: Descriptors
  /** What a person at a terminal is told who has started the server by hand. */
  greeting?: string
  /** Whether the process ends when serving does (default true). Without it, what still runs keeps it alive. */
  exit?: boolean
}

/**
 * Serves the client that started this process, on its stdin and stdout.
 * SIGTERM, SIGINT, end of input and the death of the parent all end it
 * cleanly: what is in flight is answered, then the process exits with 0.
 */
export async function serveStdio(server: Server, options: StdioOptions = {}): Promise<void> {
  checkNames('serveStdio', options, STDIO)
  const { log = standardError, exit = true, wire: asked, greeting, ...common } = options
  const named = descriptorsFromEnvironment()
  const descriptors = asked ?? named
  // Loaded only where it is needed: what comes before the first answer counts.
  const wire =
    descriptors === undefined
      ? standardWire()
      : (await import('./transports/stdio-isolated.js')).isolatedWire(descriptors)
  if (wire.interactive && greeting !== undefined) standardError.write(`${greeting}\n`)
  const serving = new Serving(server, { ...common, log, input: wire.input, output: wire.output })
  // The second signal means now.
  const stop = () => serving.stop()
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  const unwatch = afterFirstTurn(() => {
    standardError.open()
    return watchParent(() => {
      if (!serving.stopped) serving.stop()
    })
  })
  try {
    await serving.finished()
  } catch (error) {
    // The client has closed its end: nobody is left to tell.
    if (!isClosedPipe(error)) throw error
  } finally {
    unwatch()
    process.off('SIGTERM', stop)
    process.off('SIGINT', stop)
    wire.release()
  }
  if (exit) process.exit()
}

/** Begins something that can wait for the first answer; returns how to end it. */
function afterFirstTurn(begin: () => () => void): () => void {
  let end = () => {}
  const later = setImmediate(() => {
    end = begin()
  })
  return () => {
    clearImmediate(later)
    end()
  }
}

/** Calls when the process that started this one is gone; returns how to stop looking. */
function watchParent(gone: () => void): () => void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid !== parent) gone()
  }, PARENT_CHECK).unref()
  return () => clearInterval(timer)
}

function isClosedPipe(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EPIPE' || error.code === 'ECONNRESET' || error.code === 'ERR_STREAM_DESTROYED')
  )
}

export type { Framing, ProcessLogLevel, LogStream, Input, Output, Tapped, Descriptors }
