import type { Framing } from './framing/detect.js'
import { tap, type Tapped } from './jsonrpc/channel.js'
import type { Server } from './server/server.js'
import { Session } from './server/session.js'
import { type LogLevel, type LogStream, logTo } from './transports/stdio-log.js'
import { type Input, type Output, StreamChannel } from './transports/stdio-server.js'
import { type Descriptors, descriptorsFromEnvironment, standardWire } from './transports/stdio-wire.js'

/** After end of input, what is in flight has this long to finish. */
const DRAIN_AFTER_END = 5000
/** After a signal it has less: hosts kill after about two seconds. */
const DRAIN_AFTER_SIGNAL = 1000
/** How often a server looks whether its parent still lives. */
const PARENT_CHECK = 2000

interface CommonOptions {
  /** How messages are told apart; by default the first bytes of the client decide. */
  framing?: Framing
  /** The longest message that is taken in, in bytes (default 32 MiB). */
  maxMessage?: number
  /** The deepest nesting of a message (default 512). */
  maxDepth?: number
  /** The lowest level that is logged (default `warning`). */
  logLevel?: LogLevel
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

export interface ServeOptions extends CommonOptions {
  input: Input
  output: Output
  /** Where log lines go; without it nothing is logged. */
  log?: LogStream
  /** Ends serving: no new work is taken, what is in flight is finished. */
  signal?: AbortSignal
}

/**
 * Serves one client on two byte streams. Resolves when the input has ended (or
 * the signal fired) and everything received has been answered; rejects where
 * the output cannot be written.
 */
export async function serve(server: Server, options: ServeOptions): Promise<void> {
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

/** One client being served, until its input ends or it is told to stop. */
class Serving {
  readonly #channel: StreamChannel
  readonly #session: Session
  #stopped = false
  #broken: Error | undefined
  #end: () => void = () => {}
  readonly #ended = new Promise<void>((resolve) => {
    this.#end = resolve
  })

  constructor(server: Server, options: Omit<ServeOptions, 'signal'>) {
    const { log, logLevel = 'warning', tap: watch, maxDepth } = options
    this.#channel = new StreamChannel(options)
    this.#session = new Session(server, watch === undefined ? this.#channel : tap(this.#channel, watch), {
      ...(log === undefined ? {} : { report: logTo(log, logLevel) }),
      ...(maxDepth === undefined ? {} : { maxDepth }),
      closed: (error) => {
        this.#broken = error
        this.#end()
      },
    })
    void this.#channel.ended.then(this.#end)
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** Takes no new work. What is in flight has a little time; also if it had more before. */
  stop(): void {
    this.#stopped = true
    this.#channel.stop()
    this.#end()
    void this.#session.drain(DRAIN_AFTER_SIGNAL)
  }

  /** Resolves when all is answered, or given up. */
  async finished(): Promise<void> {
    await this.#ended
    this.#channel.stop()
    const began = Date.now()
    await this.#session.drain(DRAIN_AFTER_END)
    await within(this.#session.close(), Math.max(DRAIN_AFTER_SIGNAL, (this.#stopped ? 0 : DRAIN_AFTER_END) - (Date.now() - began)))
    if (this.#broken !== undefined) throw this.#broken
  }
}

/** Waits for a promise, but no longer than that: a client that never reads must not keep the process. */
async function within(promise: Promise<void>, milliseconds: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([promise, late])
  clearTimeout(timer)
}

export interface StdioOptions extends CommonOptions {
  /** Where log lines go (default stderr). */
  log?: LogStream
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
  const { log = process.stderr, exit = true, wire: asked, greeting, ...common } = options
  const named = descriptorsFromEnvironment()
  const descriptors = asked ?? named
  // Loaded only where it is needed: what comes before the first answer counts.
  const wire = descriptors === undefined ? standardWire() : (await import('./transports/stdio-isolated.js')).isolatedWire(descriptors)
  if (wire.interactive && greeting !== undefined) process.stderr.write(`${greeting}\n`)
  const serving = new Serving(server, { ...common, log, input: wire.input, output: wire.output })
  const stop = () => {
    // The second signal means now.
    if (serving.stopped) process.exit(0)
    serving.stop()
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  const orphaned = watchParent(() => serving.stop())
  try {
    await serving.finished()
  } catch (error) {
    // The client has closed its end: nobody is left to tell.
    if (!isClosedPipe(error)) throw error
  } finally {
    orphaned()
    process.off('SIGTERM', stop)
    process.off('SIGINT', stop)
    wire.release()
  }
  if (exit) process.exit()
}

/** Calls when the process that started this one is gone; returns how to stop looking. */
function watchParent(gone: () => void): () => void {
  const parent = process.ppid
  let timer: ReturnType<typeof setInterval> | undefined
  // Not before the first answer: a first timer costs a third of a millisecond.
  const later = setImmediate(() => {
    timer = setInterval(() => {
      if (process.ppid !== parent) gone()
    }, PARENT_CHECK).unref()
  })
  return () => {
    clearImmediate(later)
    clearInterval(timer)
  }
}

function isClosedPipe(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EPIPE' || error.code === 'ECONNRESET' || error.code === 'ERR_STREAM_DESTROYED')
  )
}

export type { Framing, LogLevel, LogStream, Input, Output, Tapped, Descriptors }
