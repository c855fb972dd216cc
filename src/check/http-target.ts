import type { SendRequest } from '../transports/http/client/http-request.js'
import { statusError } from '../transports/http/client/request-errors.js'
import { HttpCapture } from './http-capture.js'
import { HttpConnection } from './http-connection.js'
import type { LiveTarget } from './live.js'
import { SseConnection, openStream } from './sse-connection.js'

/** How a server at a URL is accessed. */
export interface HttpTargetOptions {
  url: URL
  /** Sends one request. */
  request: SendRequest
  /** Adds what requests need besides: authorization and redirects. */
  prepare(request: SendRequest): SendRequest
  /** Their values are not recorded. */
  headers: Readonly<Record<string, string>>
  /** Milliseconds for a response. */
  timeout: number
  /** One line about a failure. */
  explain(error: Error): string
}

/** How a server with HTTP+SSE refuses a POST to the URL of its stream. */
const MAY_BE_SSE: ReadonlySet<number> = new Set([400, 404, 405])
/** Milliseconds for the first event of that stream. */
const STREAM_TIMEOUT = 5000

/** A server at a URL, over Streamable HTTP; or over HTTP+SSE, if it refuses that and has such a stream. */
export function httpTarget(options: HttpTargetOptions): LiveTarget {
  const { url, request, prepare, headers, timeout, explain } = options
  let transport: 'http' | 'sse' = 'http'
  /** Whether a GET begins with an `endpoint` event; undefined until that was tried. */
  let hasStream: boolean | undefined
  return {
    get transport() {
      return transport
    },
    open(recording, file) {
      const capture =
        file === undefined ? undefined : new HttpCapture(file, url, Object.keys(headers))
      const send = prepare(capture?.recorded(request) ?? request)
      if (transport === 'sse')
        return new SseConnection({ url, send, headers, timeout }, recording, capture)
      return new HttpConnection(url, send, headers, recording, timeout, capture)
    },
    async switchTransport(connection) {
      const status = connection instanceof HttpConnection ? connection.last?.status : undefined
      if (status === undefined || !MAY_BE_SSE.has(status) || hasStream !== undefined) return false
      const streamTimeout = Math.min(timeout, STREAM_TIMEOUT)
      const access = { url, send: prepare(request), headers, timeout: streamTimeout }
      hasStream = (await openStream(access)) !== undefined
      if (hasStream) transport = 'sse'
      return hasStream
    },
    explain(connection) {
      if (connection instanceof SseConnection)
        return explain(new Error(connection.ended ?? NO_RESPONSE))
      const { last, failure } = connection instanceof HttpConnection ? connection : {}
      if (last === undefined || last.status < 400) return explain(new Error(failure ?? NO_RESPONSE))
      const refused = explain(statusError(last.status, ''))
      return hasStream === false ? `${refused}. ${NO_STREAM}` : refused
    },
  }
}

const NO_RESPONSE = 'The server did not respond to initialize'
const NO_STREAM =
  'It is not an HTTP+SSE server either: the response to GET does not begin with an "endpoint" event'
