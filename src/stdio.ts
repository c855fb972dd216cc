import type { Framing } from './framing/detect.js'
import type { TappedMessage } from './jsonrpc/channel.js'
import { onAbort } from './jsonrpc/on-abort.js'
import { atCallOf } from './runtime.js'
import { checkNames, namesOf } from './schema/names.js'
import { checkServer } from './server/context.js'
import type { Server } from './server/server.js'
import { StreamServer, type ServingOptions, checkServing } from './serving.js'
import {
  type ProcessLogLevel,
  type LogStream,
  type Logger,
  standardError,
} from './transports/stdio-log.js'
import {
  type Descriptors,
  descriptorsFromEnvironment,
  standardWire,
} from './transports/stdio-wire.js'
import type { OnBytes } from './transports/stdio-recorded.js'
import type { Input, Output } from './transports/streams.js'

/** Milliseconds between checks whether the parent process still runs. */
const PARENT_CHECK = 2000

/** The options that `serve` and `serveStdio` have in common. */
const SERVING = 'framing maxMessage maxDepth concurrency maxPending maxRetained log logLevel tap'
const SERVE = namesOf<ServeOptions>()(`${SERVING} input output signal`)
const STDIO = namesOf<StdioOptions>()(`${SERVING} wire greeting exit onBytes`)

export interface ServeOptions extends ServingOptions {
  /** Stops serving: no new requests are accepted, those in progress are finished. */
  signal?: AbortSignal
}

/**
 * Serves one client on two byte streams. Resolves when the input has ended or the signal was aborted, and every request
 * has its response; rejects if the output cannot be written.
 */
export async function serve(server: Server, options: ServeOptions): Promise<void>
export async function serve(server: Server, options: Partial<ServeOptions> = {}): Promise<void> {
  const serving = atCallOf(serve, () => {
    checkNames('serve', options, SERVE)
    const { input, output } = options
    if (input === undefined || output === undefined)
      throw new TypeError('serve: set "input" and "output", or use serveStdio for stdin and stdout')
    return new StreamServer(server, { ...options, input, output })
  })
  const { signal } = options
  const stop = () => serving.stop()
  if (signal?.aborted === true) stop()
  const unlisten = signal === undefined ? undefined : onAbort(signal, stop)
  try {
    await serving.finished()
  } finally {
    unlisten?.()
  }
}

export interface StdioOptions extends Omit<ServingOptions, 'input' | 'output'> {
  /** File descriptors to use instead of stdin and stdout; a launcher can name them in CCMCP_WIRE. */
  wire?: Descriptors
  /** Written to stderr if the server is started by hand at a terminal. */
  greeting?: string
  /** Whether the process exits when serving ends (default true). Otherwise open timers and sockets keep it running. */
  exit?: boolean
  /** Called with the bytes that are read (`in`) and written (`out`), before they are parsed. */
  onBytes?: OnBytes
}

/**
 * Serves the client that started this process, on its stdin and stdout. SIGTERM, SIGINT, the end of stdin and the exit of
 * the parent process shut it down gracefully: requests in progress get their responses, then the process exits with 0.
 */
export async function serveStdio(server: Server, options: StdioOptions = {}): Promise<void> {
  // Before anything is changed that an error would leave behind, such as the guard of stdout.
  atCallOf(serveStdio, () => {
    checkNames('serveStdio', options, STDIO)
    checkServer(server)
    checkServing(options)
  })
  const { log = standardError, exit = true, wire: asked, greeting, onBytes, ...common } = options
  const named = descriptorsFromEnvironment()
  const descriptors = asked ?? named
  // Loaded only if needed: less to load before the first response.
  let wire =
    descriptors === undefined
      ? standardWire()
      : (await import('./transports/stdio-isolated.js')).isolatedWire(descriptors)
  if (onBytes !== undefined)
    wire = (await import('./transports/stdio-recorded.js')).recordedWire(wire, onBytes)
  if (wire.interactive && greeting !== undefined) standardError.write(`${greeting}\n`)
  const serving = new StreamServer(server, {
    ...common,
    log,
    input: wire.input,
    output: wire.output,
  })
  // A second signal ends it immediately.
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
    // The client has closed its end: no error to report.
    if (!isClosedPipe(error)) throw error
  } finally {
    unwatch()
    process.off('SIGTERM', stop)
    process.off('SIGINT', stop)
    wire.release()
  }
  if (exit) process.exit()
}

/** Starts something after the current turn of the event loop, so that it does not delay the first response; returns a function that ends it. */
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

/** Calls `exited` when the parent process has exited; returns a function that stops the checks. */
function watchParent(exited: () => void): () => void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid !== parent) exited()
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

export type {
  Framing,
  ProcessLogLevel,
  LogStream,
  Logger,
  Input,
  OnBytes,
  Output,
  TappedMessage,
  Descriptors,
}
