import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RequestFailedError } from '../../src/jsonrpc/errors.js'
import { Peer } from '../../src/jsonrpc/peer.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { METHODS } from '../../src/protocol/methods.js'
import { type Authorizer, withAuthorization } from '../../src/transports/http/client/authorizer.js'
import {
  HttpClientChannel,
  type HttpClientChannelOptions,
} from '../../src/transports/http/client/channel.js'
import { followRedirects } from '../../src/transports/http/client/http-request.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { afterEveryTest } from '../after-every-test.js'

/* HTTP servers that answer as a test tells them to, and a client's channel to them. */

export const closing: (() => Promise<unknown>)[] = []
afterEveryTest(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** The JSON-RPC message of a POST. */
  readonly message: { id?: number | string; method?: string; params?: Record<string, unknown> }
}

export type Respond = (received: Received, response: ServerResponse, count: number) => void

/** Serves on a free port; `respond` is also told how many requests came before. */
export async function scripted(
  respond: Respond,
): Promise<{ url: string; received: Received[]; disconnect(): void }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const message = (body === '' ? {} : JSON.parse(body)) as Received['message']
      const each = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        message,
      }
      received.push(each)
      respond(each, response, received.length - 1)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    received,
    disconnect: () => server.closeAllConnections(),
  }
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body))
}

export const result = (id: unknown, value: object = {}) => ({ jsonrpc: '2.0', id, result: value })

/** Begins an event stream, and sends the given text. */
export function stream(
  response: ServerResponse,
  text = '',
  headers: Record<string, string> = {},
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  response.write(text === '' ? ':\n\n' : text)
}

export const event = (message: object, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`

/** Answers `initialize` and `notifications/initialized` in a session, refuses GET, and leaves the rest to `respond`. */
export function inSession(
  respond: Respond,
  { session = 's-1', get = false, end = true } = {},
): Respond {
  return (received, response, count) => {
    const { method, message } = received
    if (message.method === 'initialize')
      return json(
        response,
        200,
        result(message.id, {
          protocolVersion: '2025-11-25',
          capabilities: {},
          serverInfo: { name: 'x', version: '1' },
        }),
        session === '' ? {} : { 'mcp-session-id': session },
      )
    if (message.method === 'notifications/initialized') return void response.writeHead(202).end()
    if (method === 'GET' && !get) return void response.writeHead(405).end()
    if (method === 'DELETE') return end ? void response.writeHead(204).end() : undefined
    respond(received, response, count)
  }
}

export function channelTo(
  url: string,
  options: Partial<HttpClientChannelOptions> = {},
): HttpClientChannel {
  return new HttpClientChannel({
    url: new URL(url),
    send: followRedirects(nodeRequest({})),
    headers: {},
    maxMessage: 1024 * 1024,
    nameParam: (method) => METHODS.get(method)?.nameParam,
    report: () => {},
    ...options,
  })
}

/** A peer on a channel; with `open`, after the handshake. */
export async function peerTo(
  url: string,
  {
    open = true,
    authorizer,
    ...options
  }: Partial<HttpClientChannelOptions> & { open?: boolean; authorizer?: Authorizer } = {},
) {
  const reports: LogEntry[] = []
  const notifications: string[] = []
  const channel = channelTo(url, {
    report: (report) => reports.push(report),
    send:
      authorizer === undefined
        ? followRedirects(nodeRequest({}))
        : followRedirects(withAuthorization(nodeRequest({}), authorizer)),
    ...options,
  })
  const peer = new Peer(channel, {
    onRequest: ({ request }) => ({ echoed: request.method }),
    onNotification: ({ method }) => void notifications.push(method),
    respondsToMalformed: false,
    report: (report) => reports.push(report),
    cancelled: (requestId, reason, _method, send) => {
      const params = { requestId, reason }
      const frame = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
      send(frame, { kind: 'notification', method: 'notifications/cancelled', params })
    },
  })
  closing.push(() => peer.close())
  if (open) {
    await peer.request('initialize', { protocolVersion: '2025-11-25' })
    peer.notify('notifications/initialized')
  }
  return { peer, reports, notifications }
}

/** The error of a request. */
export const failed = (promise: Promise<unknown>): Promise<RequestFailedError> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error as RequestFailedError,
  )

export const STATELESS = { protocolVersion: '2026-07-28' }
