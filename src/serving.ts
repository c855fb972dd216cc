import type { Framing } from './framing/detect.js'
import { type TappedMessage, tap } from './jsonrpc/channel.js'
import { ignore } from './jsonrpc/hook.js'
import type { LogEntry } from './jsonrpc/log-entry.js'
import { acquire } from './server/acquire.js'
import { checkServer } from './server/context.js'
import type { Server } from './server/server.js'
import { ServerSession } from './server/session.js'
import {
  type ProcessLogLevel,
  type LogStream,
  type Logger,
  checkLog,
  logTo,
} from './transports/stdio-log.js'
import { type Input, type Output, StreamChannel } from './transports/streams.js'

/** Milliseconds for requests in progress to finish after the end of the input. */
const DRAIN_AFTER_END = 5000
/** The same after a signal: hosts kill after about two seconds. */
const DRAIN_AFTER_SIGNAL = 1000

export interface ServingOptions {
  /** The streams that messages are read from and written to. */
  input: Input
  output: Output
  /** The framing of messages; by default the first bytes of the client decide. */
  framing?: Framing
  /** Maximum bytes of a message (default 32 MiB). */
  maxMessage?: number
  /** Maximum nesting depth of a message (default 512). */
  maxDepth?: number
  /** Maximum handlers running at a time; other calls are queued (default 1000). */
  concurrency?: number
  /** Maximum bytes of memory held by requests in progress (default 128 MiB). Beyond it reading pauses until one ends; if none ends within a second, further requests get an error. */
  maxPending?: number
  /** Maximum bytes of memory held by subscriptions (default 8 MiB); more are rejected. */
  maxRetained?: number
  /** Where log lines are written: a stream, or a logger such as that of pino (default: stderr for `serveStdio`, nowhere for `serve`). */
  log?: LogStream | Logger
  /** The minimum level that is logged (default `warning`; with a logger, its own level). */
  logLevel?: ProcessLogLevel
  /** Called with every message in both directions. */
  tap?: (tapped: TappedMessage) => void
}

/** Serves one client over two byte streams, until its input ends or `stop` is called. */
export class StreamServer {
  readonly #channel: StreamChannel
  readonly #session: ServerSession
  #stopped: ReturnType<typeof setTimeout> | undefined
  #broken: Error | undefined
  readonly #release: ReturnType<typeof acquire>
  #end: () => void = () => {}
  readonly #ended = new Promise<void>((resolve) => {
    this.#end = resolve
  })
  #stopWaiting: () => void = () => {}
  readonly #abandoned = new Promise<void>((resolve) => {
    this.#stopWaiting = resolve
  })

  constructor(server: Server, options: ServingOptions) {
    const internal = checkServer(server)
    const { log, logLevel, tap: watch, maxDepth, concurrency } = options
    checkServing(options)
    const report: (report: LogEntry) => void = log === undefined ? ignore : logTo(log, logLevel)
    this.#release = acquire(internal, report, { remote: false })
    this.#channel = new StreamChannel(options)
    const tapFailed = (error: unknown) => report({ level: 'error', message: 'tap failed', error })
    this.#session = new ServerSession(
      internal,
      watch === undefined ? this.#channel : tap(this.#channel, watch, tapFailed),
      {
        report,
        // The other end of the streams is the host that started this process, or was chosen by the caller of `serve`.
        remote: false,
        ...(maxDepth === undefined ? {} : { maxDepth }),
        ...(concurrency === undefined ? {} : { concurrency }),
        closed: (error) => {
          this.#broken = error
          this.#end()
        },
      },
    )
    void this.#channel.ended.then(this.#end)
  }

  get stopped(): boolean {
    return this.#stopped !== undefined
  }

  /**
   * Accepts no new requests; those in progress have a second to finish, and their questions to be answered. Called
   * again, they are ended immediately; responses that are buffered are still written.
   */
  stop(): void {
    const drainTimeout = this.stopped ? 0 : DRAIN_AFTER_SIGNAL
    this.#stopped ??= setTimeout(this.#stopWaiting, 2 * DRAIN_AFTER_SIGNAL)
    this.#end()
    void this.#session.drain(drainTimeout)
  }

  /** Resolves when every request has its response, or was ended, and everything is written. */
  async finished(): Promise<void> {
    await this.#ended
    // After `stop`, answers of the client are still read.
    await this.#session.drain(DRAIN_AFTER_END, !this.stopped)
    // A slow reader gets everything, unless `stop` was called: then the output is abandoned after two seconds.
    await Promise.race([this.#session.close(), this.#abandoned])
    await this.#release?.()
    clearTimeout(this.#stopped)
    if (this.#broken !== undefined) throw this.#broken
  }
}

const FRAMINGS = ['auto', 'lines', 'content-length']

/** Throws for values that TypeScript would reject: an invalid limit would mean no limit. */
export function checkServing({
  framing,
  log,
  logLevel,
  maxMessage,
  maxDepth,
  concurrency,
  maxPending,
  maxRetained,
}: Omit<ServingOptions, 'input' | 'output'>): void {
  if (framing !== undefined && !FRAMINGS.includes(framing))
    throw new TypeError(
      `"framing" must be one of ${FRAMINGS.join(', ')}, not ${JSON.stringify(framing)}`,
    )
  checkLog(log, logLevel)
  for (const [option, value] of Object.entries({
    maxMessage,
    maxDepth,
    concurrency,
    maxPending,
    maxRetained,
  }))
    if (value !== undefined && !(typeof value === 'number' && value >= 1))
      throw new TypeError(`"${option}" must be a number above 0`)
}
