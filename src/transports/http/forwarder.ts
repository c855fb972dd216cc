import { INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { type Id, encodeError } from '../../jsonrpc/message.js'
import { withTimeout } from '../../jsonrpc/deadline.js'
import type { SessionOwnership } from '../../stores/session-ownership.js'
import type { AdmittedRequest } from './admitted-request.js'
import { FORWARDED, ForwardSignature, endToEnd } from './forwarding.js'
import type { HttpContext, Sink } from './http-context.js'
import { JSON_TYPE, MISDIRECTED, refuse, unavailable } from './http-error-response.js'
import type { OpenResponses } from './open-responses.js'
import { unref } from '../../runtime.js'

export interface ForwarderOptions {
  /** The secret that all processes share. */
  key: string
  ownership: Pick<SessionOwnership, 'isAlive' | 'lease'>
  /** Milliseconds between the keep-alives of the other process; 0 if there are none. */
  keepAlive: number
  openResponses: OpenResponses
  report(entry: LogEntry): void
}

/** The message of a forwarded POST. */
export interface ForwardedBody {
  readonly text: string
  /** Of a request: for an error response. */
  readonly id: Id | undefined
}

/** The error for a request whose process ended before it responded. */
export const MAY_HAVE_RUN =
  'The process that served this request has ended before its response: the request may have run'

/** Unsent bytes beyond which reading from the other process pauses. */
const MAX_UNSENT = 256 * 1024
/** Responses of at most this many bytes are sent at once. */
const MAX_WHOLE = 64 * 1024
/** Milliseconds of silence after which the other process counts as lost, at least. */
const MIN_SILENCE = 45_000
/** Errors of connections that were not established: nothing was sent. */
const NOT_CONNECTED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused)$/

/** Milliseconds for the last responses of a process that is shutting down and has released its lease. */
const LAST_RESPONSES = 2000

interface Forward {
  readonly process: string
  readonly isStream: boolean
  abort(reason?: Error): void
  readonly done: Promise<unknown>
}

/** Passes requests on to the processes that own their sessions. Never sends one twice that may have been received. */
export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #signature: ForwardSignature
  readonly #forwards = new Set<Forward>()
  #watching: ReturnType<typeof setTimeout> | undefined

  constructor(options: ForwarderOptions) {
    this.#options = options
    this.#signature = new ForwardSignature(options.key)
  }

  /** Whether another process has sent this request to `process`. */
  verify(context: HttpContext, process: string): Promise<boolean> {
    return this.#signature.verify(context, process)
  }

  /** Passes a request on. `unserved`: the other process could not be reached, or does not have the session. */
  async forward(
    { context, headers }: AdmittedRequest,
    to: { process: string; address: string },
    body: ForwardedBody | undefined,
  ): Promise<'served' | 'unserved'> {
    const { openResponses } = this.#options
    const aborted = new AbortController()
    const abort = (reason?: Error) => aborted.abort(reason)
    context.onDisconnect(() => abort())
    openResponses.add(context)
    const serving = this.#forward(context, to, body, aborted).catch((error: unknown) => {
      const { reason } = aborted.signal as { reason?: unknown }
      if (LOST.has(reason) || !aborted.signal.aborted) this.#report(to.address, reason ?? error)
      if (body?.id === undefined)
        refuse(context, unavailable('the process of this session has failed', headers))
      else {
        const failure = encodeError(body.id, new RpcError(INTERNAL_ERROR, MAY_HAVE_RUN), 'omitted')
        context.respond(200, [...JSON_TYPE, ...headers], failure)
      }
      return 'served' as const
    })
    const isStream = context.method === 'GET'
    const forward = { process: to.process, isStream, abort, done: serving }
    this.#forwards.add(forward)
    this.#watch()
    try {
      return await serving
    } finally {
      this.#forwards.delete(forward)
      openResponses.remove(context)
    }
  }

  /** Ends streams, and waits for calls in progress. */
  async close(deadline: number): Promise<void> {
    for (const { isStream, abort } of this.#forwards) if (isStream) abort()
    const all = Array.from(this.#forwards)
    await withTimeout(deadline, Promise.all(all.map(({ done }) => done)))
    for (const { abort } of all) abort()
    clearTimeout(this.#watching)
  }

  /** Gives up processes whose lease has ended: one that is paused keeps its connections open, and sends nothing. */
  #watch(): void {
    if (this.#watching !== undefined) return
    const { ownership } = this.#options
    const check = () => {
      void this.#abortLost(ownership).finally(() => {
        this.#watching = undefined
        if (this.#forwards.size > 0) this.#watch()
      })
    }
    this.#watching = unref(setTimeout(check, ownership.lease / 2))
  }

  async #abortLost(ownership: Pick<SessionOwnership, 'isAlive' | 'lease'>): Promise<void> {
    const missing = await withoutLease(
      ownership,
      Array.from(this.#forwards, ({ process }) => process),
    )
    if (missing.size === 0) return
    // If the store has lost its data, a process that is alive has a lease again by then.
    const wait = Math.max(ownership.lease / 2, Math.min(LAST_RESPONSES, ownership.lease))
    await new Promise<void>((resolve) => unref(setTimeout(resolve, wait)))
    const lost = await withoutLease(ownership, missing)
    for (const each of this.#forwards) if (lost.has(each.process)) each.abort(LEASE_ENDED)
  }

  async #forward(
    context: HttpContext,
    { process, address }: { process: string; address: string },
    body: ForwardedBody | undefined,
    aborted: AbortController,
  ): Promise<'served' | 'unserved'> {
    const silence = new SilenceTimeout(this.#options.keepAlive, () => aborted.abort(SILENT))
    try {
      const response = await this.#fetch(context, address, process, body, aborted.signal)
      if (response === undefined) return 'unserved'
      if (response.status === MISDIRECTED) {
        await response.body?.cancel()
        return 'unserved'
      }
      await relay(response, context, aborted.signal, silence)
      return 'served'
    } finally {
      silence.stop()
    }
  }

  /** The response; undefined if there was no connection. */
  async #fetch(
    context: HttpContext,
    address: string,
    process: string,
    body: ForwardedBody | undefined,
    signal: AbortSignal,
  ): Promise<Response | undefined> {
    const headers = new Headers(endToEnd(context.headers()))
    headers.set(FORWARDED, await this.#signature.sign(context, process))
    headers.set('accept-encoding', 'identity')
    // The other process checks the same Host, Origin and Authorization again.
    headers.set('host', context.header('host') ?? '')
    const url = new URL(address + context.target)
    // A request goes to a registered address, whatever its target is.
    if (url.origin !== address) throw new Error(`${url.origin} is not the address ${address}`)
    try {
      return await fetch(url, {
        method: context.method,
        headers,
        ...(body === undefined ? {} : { body: body.text }),
        redirect: 'manual',
        signal,
      })
    } catch (error) {
      if (NOT_CONNECTED.test(codeOf(error))) return undefined
      throw error
    }
  }

  #report(address: string, error: unknown): void {
    const message = `A request was passed on to the process at ${address}, which has failed`
    this.#options.report({ level: 'warning', message, error })
  }
}

const SILENT = new Error('The other process has sent nothing for too long')
const LEASE_ENDED = new Error('The lease of the other process has ended')
/** Reasons to give up the other process, and not the client. */
const LOST: ReadonlySet<unknown> = new Set([SILENT, LEASE_ENDED])

/** Those of the processes that have no lease. If that cannot be told, a process may still be alive. */
async function withoutLease(
  ownership: Pick<SessionOwnership, 'isAlive'>,
  processes: Iterable<string>,
): Promise<Set<string>> {
  const found = new Set<string>()
  for (const process of new Set(processes))
    if (!(await ownership.isAlive(process).catch(() => true))) found.add(process)
  return found
}

/** Ends an exchange with a process that sends nothing, not even keep-alives. */
class SilenceTimeout {
  readonly #limit: number
  readonly #expired: () => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(keepAlive: number, expired: () => void) {
    this.#limit = keepAlive === 0 ? 0 : Math.max(MIN_SILENCE, 3 * keepAlive)
    this.#expired = expired
    this.restart()
  }

  restart(): void {
    this.stop()
    if (this.#limit > 0) this.#timer = setTimeout(this.#expired, this.#limit)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

/** Sends the response of another process. What was begun and cannot be completed is cut off, so that the client notices. */
async function relay(
  response: Response,
  context: HttpContext,
  signal: AbortSignal,
  silence: SilenceTimeout,
): Promise<void> {
  const headers = endToEnd(response.headers).flatMap(([name, value]) =>
    name === 'content-encoding' ? [] : [name, value],
  )
  const { status, body } = response
  if (body === null) return context.respond(status, headers)
  const length = Number(response.headers.get('content-length') ?? Number.NaN)
  if (length <= MAX_WHOLE) return context.respond(status, headers, await response.text())
  const sink = context.stream(status, headers)
  const drains = new Drains(sink, signal)
  const decoder = new TextDecoder()
  try {
    // A web stream is iterable in every runtime that has `fetch` on the server.
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      silence.restart()
      sink.write(decoder.decode(chunk, { stream: true }))
      if (sink.unsentBytes <= MAX_UNSENT) continue
      silence.stop()
      await drains.next()
      silence.restart()
    }
    sink.end()
  } catch {
    if (signal.aborted && !LOST.has(signal.reason)) sink.end()
    else sink.destroy()
  }
}

/** Waits until a client has read. */
class Drains {
  readonly #sink: Sink
  #wake = () => {}

  constructor(sink: Sink, signal: AbortSignal) {
    this.#sink = sink
    sink.onDrain(() => this.#wake())
    signal.addEventListener('abort', () => this.#wake())
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.#sink.unsentBytes === 0) resolve()
    })
  }
}

/** The code of a failed `fetch`: of its cause, or in Bun of itself. */
function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } }
  const found = cause?.code ?? code
  return typeof found === 'string' ? found : ''
}
