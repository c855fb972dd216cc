import { pairsOf } from '../tap/http-heads.js'
import type { CaptureFile } from '../tap/capture-file.js'
import type { HttpResponse, SendRequest } from '../transports/http/client/http-request.js'

/** Where a part of a body is. */
export interface BodyPlace {
  exchange: number
  offset: number
}

const HIDDEN = '(not recorded)'
/** Headers of a body that is recorded as it was decoded. */
const OF_ENCODED_BODY: ReadonlySet<string> = new Set(['content-encoding', 'content-length'])

/** Records the HTTP requests of a probe and their responses, as the tap does. */
export class HttpCapture {
  readonly #file: CaptureFile
  readonly #hidden: ReadonlySet<string>
  /** By the signal of a request: it stays the same when a request is sent again. */
  readonly #exchanges = new WeakMap<AbortSignal, number>()
  #count = 0

  /** `hidden`: names of headers, in lower case, whose values are secret. */
  constructor(file: CaptureFile, url: URL, hidden: readonly string[]) {
    this.#file = file
    this.#hidden = new Set(['authorization', ...hidden])
    file.event('target', { target: `${url.origin}${url.pathname}` })
  }

  /** The last exchange of the request with this signal. */
  exchangeOf(signal: AbortSignal): number | undefined {
    return this.#exchanges.get(signal)
  }

  /** Records what `send` sends. */
  recorded(send: SendRequest): SendRequest {
    return async (request) => {
      const exchange = ++this.#count
      const { method, url, headers, body, signal } = request
      this.#exchanges.set(signal, exchange)
      this.#file.httpEvent('request', {
        exchange,
        method,
        target: `${url.pathname}${url.search}`,
        version: '1.1',
        headers: Object.entries(headers).map(([name, value]) => this.#shown(name, value)),
      })
      if (body !== undefined) this.#file.body(exchange, 'in', 0, Buffer.from(body))
      this.#file.httpEvent('end', { exchange, dir: 'in' })
      try {
        return this.#response(exchange, await send(request))
      } catch (error) {
        this.#file.httpEvent('aborted', { exchange, by: signal.aborted ? 'client' : 'server' })
        throw error
      }
    }
  }

  end(): void {
    this.#file.event('exit')
  }

  #shown(name: string, value: string): [string, string] {
    return [name, this.#hidden.has(name.toLowerCase()) ? HIDDEN : value]
  }

  #response(exchange: number, response: HttpResponse): HttpResponse {
    const { status, rawHeaders = [], header } = response
    const isDecoded = header('content-encoding') !== undefined
    const headers = pairsOf(rawHeaders).filter(
      ([name]) => !isDecoded || !OF_ENCODED_BODY.has(name.toLowerCase()),
    )
    this.#file.httpEvent('response', { exchange, status, reason: '', version: '1.1', headers })
    return {
      ...response,
      body: this.#body(exchange, response.body),
      cancel: () => {
        response.cancel()
        this.#file.httpEvent('end', { exchange, dir: 'out' })
      },
    }
  }

  async *#body(exchange: number, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let offset = 0
    let isWhole = false
    try {
      for await (const chunk of body) {
        this.#file.body(exchange, 'out', offset, chunk)
        offset += chunk.length
        yield chunk
      }
      isWhole = true
    } finally {
      if (isWhole) this.#file.httpEvent('end', { exchange, dir: 'out' })
      else this.#file.httpEvent('aborted', { exchange, by: 'client' })
    }
  }
}
