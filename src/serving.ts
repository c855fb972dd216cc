import type { Framing } from './framing/detect.js'
import { type Tapped, tap } from './jsonrpc/channel.js'
import { ignore } from './jsonrpc/hook.js'
import type { LogEntry } from './jsonrpc/log-entry.js'
import { checkServer } from './server/context.js'
import type { Server } from './server/server.js'
import type { Extensions } from './server/extensions.js'
import { ServerSession } from './server/session.js'
import { type ProcessLogLevel, type LogStream, logTo } from './transports/stdio-log.js'
import { type Input, type Output, StreamChannel } from './transports/streams.js'

/** After end of input, what is in flight has this long to finish. */
const DRAIN_AFTER_END = 5000
/** After a signal it has less: hosts kill after about two seconds. */
const DRAIN_AFTER_SIGNAL = 1000

export interface ServingOptions {
  /** Where messages come from, and go to. */
  input: Input
  output: Output
  /** How messages are told apart; by default the first bytes of the client decide. */
  framing?: Framing
  /** The longest message that is taken in, in bytes (default 32 MiB). */
  maxMessage?: number
  /** The deepest nesting of a message (default 512). */
  maxDepth?: number
  /** How much memory requests in progress may hold, in bytes (default 128 MiB). Then reading pauses until one has ended; where none ends within a second, further requests are refused. */
  maxPending?: number
  /** How much memory subscriptions may hold, in bytes (default 8 MiB); more are refused. */
  maxRetained?: number
  /** Where log lines go (default: of `serveStdio` to stderr, of `serve` nowhere). */
  log?: LogStream
  /** The lowest level that is logged (default `warning`). */
  logLevel?: ProcessLogLevel
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

/** One client being served over two byte streams, until its input ends or it is told to stop. */
export class Serving {
  readonly #channel: StreamChannel
  readonly #session: ServerSession
  #stopped: ReturnType<typeof setTimeout> | undefined
  #broken: Error | undefined
  readonly #release: ReturnType<Extensions['use']> | undefined
  readonly #report: (report: LogEntry) => void
  #end: () => void = () => {}
  readonly #ended = new Promise<void>((resolve) => {
    this.#end = resolve
  })
  #cutOff: () => void = () => {}
  readonly #cut = new Promise<void>((resolve) => {
    this.#cutOff = resolve
  })

  constructor(server: Server, options: ServingOptions) {
    const internal = checkServer(server)
    const { log, logLevel = 'warning', tap: watch, maxDepth } = options
    checkOptions(options)
    this.#release = internal.extensions?.use(internal)
    this.#channel = new StreamChannel(options)
    const report: (report: LogEntry) => void = log === undefined ? ignore : logTo(log, logLevel)
    this.#report = report
    const tapFailed = (error: unknown) => report({ level: 'error', message: 'tap failed', error })
    this.#session = new ServerSession(
      internal,
      watch === undefined ? this.#channel : tap(this.#channel, watch, tapFailed),
      {
        report,
        ...(maxDepth === undefined ? {} : { maxDepth }),
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
   * Takes no new work. What is in flight has a little time; also if it had more before. Told again, it has none: what
   * was written still leaves.
   */
  stop(): void {
    const patience = this.stopped ? 0 : DRAIN_AFTER_SIGNAL
    this.#stopped ??= setTimeout(this.#cutOff, 2 * DRAIN_AFTER_SIGNAL)
    this.#channel.stop()
    this.#end()
    void this.#session.drain(patience)
  }

  /** Resolves when all is answered, or given up, and has left. */
  async finished(): Promise<void> {
    await this.#ended
    this.#channel.stop()
    await this.#session.drain(DRAIN_AFTER_END)
    // What was written must leave, however slowly it is read; only being stopped cuts it off.
    await Promise.race([this.#session.close(), this.#cut])
    await this.#release?.(this.#report)
    clearTimeout(this.#stopped)
    if (this.#broken !== undefined) throw this.#broken
  }
}

const CHOICES: Readonly<Record<string, readonly unknown[]>> = {
  framing: ['auto', 'lines', 'content-length'],
  logLevel: ['debug', 'info', 'warning', 'error'],
}

/** A limit that is none would be no limit at all. */
function checkOptions({
  framing,
  logLevel,
  maxMessage,
  maxDepth,
  maxPending,
  maxRetained,
}: ServingOptions): void {
  for (const [option, value] of Object.entries({ framing, logLevel }))
    if (value !== undefined && CHOICES[option]?.includes(value) === false)
      throw new TypeError(
        `"${option}" must be one of ${CHOICES[option].join(', ')}, not ${JSON.stringify(value)}`,
      )
  for (const [option, value] of Object.entries({ maxMessage, maxDepth, maxPending, maxRetained }))
    if (value !== undefined && !(typeof value === 'number' && value >= 1))
      throw new TypeError(`"${option}" must be a number above 0`)
}
