import type { Budget } from '../../jsonrpc/budget.js'
import type { HttpRequest } from '../../jsonrpc/channel.js'
import { HandlerRequest } from './request-headers.js'
import type { HeaderList, HttpContext, Sink, UnreadBody } from './http-context.js'
import { IncomingBody } from './incoming-body.js'

/* Fetch API requests and responses, for every runtime that has them. */

const encoder = new TextEncoder()
const READ_BEFORE =
  'The request body was read before httpHandler. ' +
  'Call httpHandler before the code that reads it, or let that code read request.clone()'

/** A fetch handler. */
export interface HttpHandler {
  (request: Request): Promise<Response>
  /** Refuses new requests, and gives those in progress `deadline` milliseconds (default 5000). */
  close(deadline?: number): Promise<void>
}

/** The context of a request, and the promise of its response. */
export function webContext(request: Request): {
  context: HttpContext
  response: Promise<Response>
} {
  let context: WebContext | undefined
  const response = new Promise<Response>((resolve) => {
    context = new WebContext(request, resolve)
  })
  return { context: context as unknown as HttpContext, response } // set by the executor, which runs synchronously
}

class WebContext implements HttpContext {
  readonly #request: Request
  readonly #resolve: (response: Response) => void
  readonly method: string
  readonly path: string
  readonly target: string
  /** `Headers` joins repeated headers: the joined value is then refused as an unknown one. */
  readonly ambiguity = undefined
  #http: HttpRequest | undefined
  #onDisconnect: (() => void) | undefined
  #responded = false

  constructor(request: Request, resolve: (response: Response) => void) {
    this.#request = request
    this.#resolve = resolve
    this.method = request.method
    const { pathname, search } = new URL(request.url)
    this.path = pathname
    this.target = pathname + search
    request.signal.addEventListener('abort', () => {
      this.#onDisconnect?.()
      // Nobody reads this response, but the runtime may wait for its promise.
      this.respond(499, [])
    })
  }

  header(name: string): string | undefined {
    const value = this.#request.headers.get(name) ?? undefined
    // Not every runtime has this header; the URL has the same value.
    return value === undefined && name === 'host' ? new URL(this.#request.url).host : value
  }

  headers(): Iterable<readonly [name: string, value: string]> {
    return this.#request.headers.entries()
  }

  get http(): HttpRequest {
    const { headers } = this.#request
    this.#http ??= new HandlerRequest(() => headers.entries())
    return this.#http
  }

  read(limit: number, budget: Budget, done: (body: Uint8Array | UnreadBody) => void): void {
    const { bodyUsed, body } = this.#request
    if (bodyUsed || body?.locked === true) throw new Error(READ_BEFORE)
    void this.#deliver(limit, budget, done)
  }

  respond(status: number, headers: HeaderList, body?: string): void {
    if (this.#responded) return
    this.#responded = true
    this.#resolve(new Response(body ?? null, { status, headers: pairs(headers) }))
  }

  stream(status: number, headers: HeaderList): Sink {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined
    const ended = () => this.#onDisconnect?.()
    let drained: (() => void) | undefined
    const body = new ReadableStream<Uint8Array>(
      {
        start(begun) {
          controller = begun
        },
        pull: () => drained?.(),
        cancel: ended,
      },
      { highWaterMark: 0, size: (chunk: Uint8Array | undefined) => chunk?.byteLength ?? 0 },
    )
    this.#responded = true
    this.#resolve(new Response(body, { status, headers: pairs(headers) }))
    let written = 0
    return {
      write: (text) =>
        ignoreErrors(() => {
          const bytes = encoder.encode(text)
          controller?.enqueue(bytes)
          written += bytes.length
        }),
      end: () => ignoreErrors(() => controller?.close()),
      destroy: () => ignoreErrors(() => controller?.error(new Error('The client does not read'))),
      onDrain: (listener) => (drained = listener),
      get unsentBytes() {
        return -(controller?.desiredSize ?? 0)
      },
      get sentBytes() {
        return written - this.unsentBytes
      },
    }
  }

  onDisconnect(listener: (() => void) | undefined): void {
    this.#onDisconnect = listener
    // It may have disconnected while its body was read.
    if (listener !== undefined && this.#request.signal.aborted) queueMicrotask(listener)
  }

  async #deliver(
    limit: number,
    budget: Budget,
    done: (body: Uint8Array | UnreadBody) => void,
  ): Promise<void> {
    const incoming = new IncomingBody(limit, this.header('content-length'), budget)
    let body: Uint8Array | UnreadBody
    try {
      body = await this.#collect(incoming)
    } catch {
      // The client has disconnected before the body was complete.
      return this.respond(400, [], '')
    } finally {
      incoming.release()
    }
    done(body)
  }

  async #collect(incoming: IncomingBody): Promise<Uint8Array | UnreadBody> {
    const { body } = this.#request
    for await (const chunk of (body ?? []) as unknown as AsyncIterable<Uint8Array>) {
      const problem = incoming.add(chunk)
      if (problem !== undefined) return { problem }
    }
    return incoming.bytes
  }
}

/** A controller throws when its stream was cancelled. */
function ignoreErrors(write: () => void): void {
  try {
    write()
  } catch {
    // `cancel` has been called.
  }
}

function pairs(headers: HeaderList): [string, string][] {
  const list: [string, string][] = []
  for (let i = 0; i + 1 < headers.length; i += 2)
    list.push([headers[i] ?? '', headers[i + 1] ?? ''])
  return list
}
