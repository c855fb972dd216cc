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
  const { log, logLevel = 'warning', signal, tap: watch, maxDepth } = options
  const channel = new StreamChannel(options)
  let broken: Error | undefined
  let end: (reason: 'input' | 'signal' | 'broken') => void = () => {}
  const ended = new Promise<'input' | 'signal' | 'broken'>((resolve) => {
    end = resolve
  })
  const session = new Session(server, watch === undefined ? channel : tap(channel, watch), {
    ...(log === undefined ? {} : { report: logTo(log, logLevel) }),
    ...(maxDepth === undefined ? {} : { maxDepth }),
    closed(error) {
      broken = error
      end('broken')
    },
  })
  const stop = () => {
    channel.stop()
    end('signal')
  }
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted === true) stop()
  void channel.ended.then(() => end('input'))
  const reason = await ended
  channel.stop()
  signal?.removeEventListener('abort', stop)
  const deadline = reason === 'input' ? DRAIN_AFTER_END : DRAIN_AFTER_SIGNAL
  const started = Date.now()
  await drainOrStop(session, deadline, reason === 'input' ? signal : undefined)
  await within(session.close(), Math.max(DRAIN_AFTER_SIGNAL, deadline - (Date.now() - started)))
  if (broken !== undefined) throw broken
}

/** A signal while the end of input is being drained shortens the wait. */
async function drainOrStop(session: Session, deadline: number, signal: AbortSignal | undefined): Promise<void> {
  const shorten = () => void session.drain(DRAIN_AFTER_SIGNAL)
  signal?.addEventListener('abort', shorten, { once: true })
  await session.drain(deadline)
  signal?.removeEventListener('abort', shorten)
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
  const stopping = new AbortController()
  const stop = () => {
    // The second signal means now.
    if (stopping.signal.aborted) process.exit(0)
    stopping.abort()
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  const parent = process.ppid
  const orphaned = setInterval(() => {
    if (process.ppid !== parent) stopping.abort()
  }, PARENT_CHECK).unref()
  try {
    await serve(server, { ...common, log, input: wire.input, output: wire.output, signal: stopping.signal })
  } catch (error) {
    // The client has closed its end: nobody is left to tell.
    if (!isClosedPipe(error)) throw error
  } finally {
    clearInterval(orphaned)
    process.off('SIGTERM', stop)
    process.off('SIGINT', stop)
    wire.release()
  }
  if (exit) process.exit()
}

function isClosedPipe(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EPIPE' || error.code === 'ECONNRESET' || error.code === 'ERR_STREAM_DESTROYED')
  )
}

export type { Framing, LogLevel, LogStream, Input, Output, Tapped, Descriptors }
