import type { Budget } from '../../jsonrpc/budget.js'
import type { HttpRequest } from '../../jsonrpc/channel.js'
import { VisibleRequest } from './request-headers.js'
import type { Body, HeaderList, Sink, HttpContext } from './http-context.js'

/* The web's Request and Response, for every runtime that has them. */

const encoder = new TextEncoder()

/** A function from the web's Request to its Response. */
export interface HttpHandler {
  (request: Request): Promise<Response>
  /** Takes no new work, and gives what is under way so many milliseconds (default 5000). */
  close(deadline?: number): Promise<void>
}

/** A request as a visit, and the response that it will get. */
export function webContext(request: Request): { visit: HttpContext; response: Promise<Response> } {
  let visit: WebVisit | undefined
  const response = new Promise<Response>((resolve) => {
    visit = new WebVisit(request, resolve)
  })
  return { visit: visit as unknown as HttpContext, response } // a promise calls its executor at once
}

class WebVisit implements HttpContext {
  readonly #request: Request
  readonly #resolve: (response: Response) => void
  readonly method: string
  readonly path: string
  /** Runtimes have joined them already: then the value is none that is known. */
  readonly ambiguity = undefined
  #http: HttpRequest | undefined
  #gone: (() => void) | undefined
  #answered = false

  constructor(request: Request, resolve: (response: Response) => void) {
    this.#request = request
    this.#resolve = resolve
    this.method = request.method
    this.path = new URL(request.url).pathname
    request.signal.addEventListener('abort', () => {
      this.#gone?.()
      // Nobody reads it, but somebody may wait for the promise of it.
      this.answer(499, [])
    })
  }

  header(name: string): string | undefined {
    const value = this.#request.headers.get(name) ?? undefined
    // Not every runtime shows it; the address says the same.
    return value === undefined && name === 'host' ? new URL(this.#request.url).host : value
  }

  get http(): HttpRequest {
    const { headers } = this.#request
    this.#http ??= new VisibleRequest(() => headers.entries())
    return this.#http
  }

  read(limit: number, budget: Budget, done: (body: Body) => void): void {
    void this.#deliver(limit, budget, done)
  }

  answer(status: number, headers: HeaderList, body?: string): void {
    if (this.#answered) return
    this.#answered = true
    this.#resolve(new Response(body ?? null, { status, headers: pairs(headers) }))
  }

  stream(status: number, headers: HeaderList): Sink {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined
    const ended = () => this.#gone?.()
    const body = new ReadableStream<Uint8Array>(
      {
        start(begun) {
          controller = begun
        },
        cancel: ended,
      },
      { highWaterMark: 0, size: (chunk: Uint8Array | undefined) => chunk?.byteLength ?? 0 },
    )
    this.#answered = true
    this.#resolve(new Response(body, { status, headers: pairs(headers) }))
    let written = 0
    return {
      write: (text) =>
        attempt(() => {
          const bytes = encoder.encode(text)
          controller?.enqueue(bytes)
          written += bytes.length
        }),
      end: () => attempt(() => controller?.close()),
      cut: () => attempt(() => controller?.error(new Error('The client did not read'))),
      get waiting() {
        return -(controller?.desiredSize ?? 0)
      },
      get taken() {
        return written - this.waiting
      },
    }
  }

  onGone(gone: (() => void) | undefined): void {
    this.#gone = gone
    // It may have gone while its body was being read.
    if (gone !== undefined && this.#request.signal.aborted) queueMicrotask(gone)
  }

  async #deliver(limit: number, budget: Budget, done: (body: Body) => void): Promise<void> {
    let body: Body
    let held = 0
    try {
      body = await this.#collect(limit, (bytes) => {
        if (!budget.take(bytes)) return false
        held += bytes
        return true
      })
    } catch {
      // The client has broken off in the middle: it has asked for nothing.
      return this.answer(400, [], '')
    } finally {
      budget.give(held)
    }
    done(body)
  }

  async #collect(limit: number, take: (bytes: number) => boolean): Promise<Body> {
    const chunks: Uint8Array[] = []
    let size = 0
    const { body } = this.#request
    if (body === null) return new Uint8Array()
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      size += chunk.length
      if (size > limit) return 'too long'
      if (!take(chunk.length)) return 'too much'
      chunks.push(chunk)
    }
    const whole = new Uint8Array(size)
    let at = 0
    for (const chunk of chunks) {
      whole.set(chunk, at)
      at += chunk.length
    }
    return whole
  }
}

/** A stream that was closed by its reader takes nothing more. */
function attempt(write: () => void): void {
  try {
    write()
  } catch {
    // The reader has been told of as gone.
  }
}

function pairs(headers: HeaderList): [string, string][] {
  const list: [string, string][] = []
  for (let i = 0; i + 1 < headers.length; i += 2)
    list.push([headers[i] ?? '', headers[i + 1] ?? ''])
  return list
}
