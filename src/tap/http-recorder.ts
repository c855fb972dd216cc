import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { CaptureFile } from './capture-file.js'
import { pairsOf } from './http-heads.js'

/** Node publishes here each request of an HTTP server before it is handled. */
const REQUEST_START = 'http.server.request.start'

interface RequestStart {
  request: IncomingMessage
  response: ServerResponse
  server: Server
}

/** Records the requests and responses of the HTTP servers of this process on a port. */
export class HttpRecorder {
  readonly #capture: CaptureFile
  readonly #connections = new WeakMap<object, number>()
  #connectionCount = 0
  #exchangeCount = 0
  #port: number | undefined
  readonly #started = (message: unknown) => {
    const { request, response, server } = message as RequestStart // what Node publishes
    const address = server.address()
    const isOurs = typeof address === 'object' && address?.port === this.#port
    if (isOurs) this.#record(request, response)
  }

  constructor(capture: CaptureFile) {
    this.#capture = capture
  }

  /** Begins to record. `url`: where the server is. */
  start(url: string): void {
    const { port, protocol } = new URL(url)
    this.#port = Number(port || (protocol === 'https:' ? 443 : 80))
    this.#capture.event('listen', { url, target: url, pid: process.pid, ppid: process.ppid })
    subscribe(REQUEST_START, this.#started)
  }

  stop(): void {
    unsubscribe(REQUEST_START, this.#started)
  }

  #connectionOf(socket: object): number {
    const known = this.#connections.get(socket)
    if (known !== undefined) return known
    this.#connections.set(socket, ++this.#connectionCount)
    return this.#connectionCount
  }

  #record(request: IncomingMessage, response: ServerResponse): void {
    const exchange = ++this.#exchangeCount
    const { method, url, httpVersion, rawHeaders, socket } = request
    this.#capture.event('request', {
      exchange,
      connection: this.#connectionOf(socket),
      method,
      target: url,
      version: httpVersion,
      headers: pairsOf(rawHeaders),
    })
    this.#recordBody(exchange, request)
    this.#recordResponse(exchange, request, response)
  }

  /** Node's parser pushes the body into the request. A listener for its data would read it before its handler. */
  #recordBody(exchange: number, request: IncomingMessage): void {
    const capture = this.#capture
    const push = request.push.bind(request)
    let offset = 0
    request.push = (chunk: unknown, encoding) => {
      if (chunk instanceof Uint8Array) {
        capture.body(exchange, 'in', offset, chunk)
        offset += chunk.length
      } else if (chunk === null) capture.event('end', { exchange, dir: 'in' })
      return push(chunk, encoding)
    }
  }

  #recordResponse(exchange: number, { method }: IncomingMessage, response: ServerResponse): void {
    const capture = this.#capture
    let offset = 0
    let hasHead = false
    const head = () => {
      if (hasHead || !response.headersSent) return
      hasHead = true
      const { statusCode: status, statusMessage: reason } = response
      capture.event('response', {
        exchange,
        status,
        reason,
        version: '1.1',
        headers: headOf(response),
      })
    }
    const body = (chunk: unknown) => {
      head()
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      if (!(bytes instanceof Uint8Array) || bytes.length === 0 || method === 'HEAD') return
      capture.body(exchange, 'out', offset, bytes)
      offset += bytes.length
    }
    const { writeHead, write, end } = response
    // Node declares each with several overloads; all are passed on as they are.
    response.writeHead = ((...args: unknown[]) => {
      const result: unknown = Reflect.apply(writeHead, response, args)
      head()
      return result
    }) as typeof writeHead
    response.write = ((...args: unknown[]) => {
      const result: unknown = Reflect.apply(write, response, args)
      body(args[0])
      return result
    }) as typeof write
    response.end = ((...args: unknown[]) => {
      const result: unknown = Reflect.apply(end, response, args)
      body(args[0])
      return result
    }) as typeof end
    response.once('close', () => {
      if (response.writableFinished) capture.event('end', { exchange, dir: 'out' })
      else
        capture.event('aborted', { exchange, by: 'client', message: 'the connection was closed' })
    })
  }
}

/** The headers that were sent, with those that Node has added. Only this text has them. */
function headOf(response: ServerResponse): [string, string][] {
  const text: unknown = '_header' in response ? response._header : undefined
  const lines = typeof text === 'string' ? text.split('\r\n').slice(1) : []
  return lines.flatMap((line): [string, string][] => {
    const colon = line.indexOf(':')
    return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()]]
  })
}
