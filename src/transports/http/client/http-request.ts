import { untilAborted } from './abort.js'
import { parseUrl } from '../../../runtime.js'

/** One HTTP request, as the client's transport makes it. */
interface OutgoingHttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** Whether nobody waits for the request: it must not lead to a question to the user. */
  readonly background: boolean
  /** The addresses of the host that may be connected to, or why there are none (default: all that it has). */
  readonly addresses?: readonly string[] | Error
  /** Called when the server may have received something of the request; a failure before that means it was not sent. */
  readonly onSend?: () => void
}

export interface HttpResponse {
  readonly status: number
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined
  /** Names and values in turn, as they were sent; undefined if the runtime does not have them. */
  readonly rawHeaders?: readonly string[]
  /** The address of the server; undefined behind a proxy, or if the runtime does not say. */
  readonly peer?: string | undefined
  /** The decoded body, in chunks. It must be read to its end or cancelled. */
  readonly body: AsyncIterable<Uint8Array>
  /** Discards the rest of the body, and closes the connection if necessary. */
  cancel(): void
}

/** Sends a request without following redirects. Rejects if there is no response. */
export type SendRequest = (request: OutgoingHttpRequest) => Promise<HttpResponse>

const MAX_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** A response that the transport cannot use. */
export class UnexpectedResponseError extends Error {
  override readonly name = 'UnexpectedResponseError'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * Follows redirects within the origin: a token or a session id never goes to another one. A redirected POST keeps its
 * method and body only with 307 and 308.
 */
export function followRedirects(send: SendRequest): SendRequest {
  return async (request) => {
    let { url } = request
    for (let hops = 0; ; hops++) {
      const response = await send({ ...request, url })
      if (!REDIRECTS.has(response.status)) return response
      response.cancel()
      url = redirectTarget(request.method, url, response, hops)
    }
  }
}

function redirectTarget(method: string, url: URL, response: HttpResponse, hops: number): URL {
  const { status } = response
  const refuse = (reason: string) =>
    new UnexpectedResponseError(
      status,
      `The server redirects (HTTP ${status}) ${reason}. Connect to the final URL instead`,
    )
  const location = response.header('location')
  const target = location === undefined ? undefined : parseUrl(location, url)
  if (target === undefined) throw refuse('without a valid Location header')
  if (target.origin !== url.origin)
    throw refuse(`to another origin, ${originOf(target)}, which is not followed`)
  if (target.username !== '' || target.password !== '')
    throw refuse('to a URL with credentials, which is not followed')
  if (method !== 'GET' && status !== 307 && status !== 308)
    throw refuse(`a ${method} request, which would become a GET request`)
  if (hops >= MAX_REDIRECTS) throw refuse(`more than ${MAX_REDIRECTS} times`)
  return target
}

/** The origin for an error message; that of `file:` and `javascript:` is "null". */
export function originOf({ origin, protocol }: URL): string {
  return origin === 'null' ? protocol : origin
}

/** Sends requests by the web's `fetch`. */
export function webRequest(fetch: typeof globalThis.fetch): SendRequest {
  return async ({ method, url, headers, body, signal, onSend }) => {
    onSend?.()
    const fetching = fetch(url, {
      method,
      headers,
      signal,
      redirect: 'manual',
      ...(body === undefined ? {} : { body }),
    })
    const response = await untilAborted(fetching, signal).catch((error: unknown) => {
      // A `fetch` that ignores the signal must not keep the connection.
      fetching.then((late) => late.body?.cancel()).catch(() => {})
      throw error
    })
    if (response.type === 'opaqueredirect')
      throw new UnexpectedResponseError(
        0,
        'The server redirects, and a browser hides the target. Connect to the final URL instead',
      )
    const reader = response.body?.getReader()
    const cancel = () => void reader?.cancel().catch(() => {})
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      body: reader === undefined ? noBody() : chunks(reader, signal),
      cancel,
    }
  }
}

async function* noBody(): AsyncGenerator<Uint8Array> {}

/** Not every runtime has iterable streams. */
async function* chunks(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal)
      if (done) return
      yield value
    }
  } finally {
    // Also if the reader stops early: this frees the connection.
    reader.cancel().catch(() => {})
  }
}
