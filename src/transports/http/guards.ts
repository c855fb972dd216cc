import { isAddress, isLoopback } from '../../auth/loopback.js'
import { PARSE_ERROR, RpcError } from '../../jsonrpc/errors.js'
import { type Message, messagesIn, parseMessage } from '../../jsonrpc/message.js'
import { HttpErrorResponse, notAcceptable } from './http-error-response.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { parseUrl } from '../../runtime.js'

/* Checks of every request before its body is read, and of the message in it. */

export interface GuardOptions {
  /** Allowed values of the Host header, beside loopback names and addresses; `any` turns the check off. */
  hosts?: readonly string[] | 'any' | undefined
  /** Allowed origins of web pages, such as `https://app.example.com`; they also get CORS headers. */
  origins?: readonly string[] | undefined
  /** Whether any IP address is allowed as the Host header. */
  addresses?: boolean | undefined
}

export class Guards {
  readonly #hosts: ReadonlySet<string> | 'any'
  readonly #origins: ReadonlySet<string>
  readonly #addresses: boolean

  constructor({ hosts = [], origins = [], addresses = false }: GuardOptions) {
    this.#hosts = hosts === 'any' ? 'any' : new Set(listOf('hosts', hosts, HOSTS).map(hostOf))
    this.#origins = new Set(listOf('origins', origins, ORIGINS).map(originOf))
    this.#addresses = addresses
  }

  /** The error response, if a request must not be served. */
  check(context: HttpContext): HttpErrorResponse | undefined {
    const { ambiguity } = context
    if (ambiguity !== undefined) return new HttpErrorResponse(400, `Bad Request: ${ambiguity}`)
    const host = context.header('host')
    if (host === undefined || !this.#isAllowedHost(host)) {
      return new HttpErrorResponse(
        403,
        'Forbidden: the Host header names a host that is not allowed. To allow it, add it to the option "hosts"',
      )
    }
    const origin = context.header('origin')
    if (origin === undefined || this.#isAllowedOrigin(origin, host)) return undefined
    return new HttpErrorResponse(
      403,
      'Forbidden: this Origin is not allowed. To allow it, add it to the option "origins"',
    )
  }

  /** The origin of a request, if it is one of the allowed origins. */
  allowedOrigin(context: HttpContext): string | undefined {
    const origin = context.header('origin')
    return origin !== undefined && this.#origins.has(origin) ? origin : undefined
  }

  /** Prevents DNS rebinding: a page that points its own name at this server sends that name as Host. */
  #isAllowedHost(host: string): boolean {
    if (this.#hosts === 'any') return true
    const lower = host.toLowerCase()
    const name = lower.replace(/:\d+$/, '')
    if (isLoopback(name) || this.#hosts.has(name) || this.#hosts.has(lower)) return true
    return this.#addresses && isAddress(name)
  }

  #isAllowedOrigin(origin: string, host: string): boolean {
    if (this.#origins.has(origin)) return true
    // Same origin, with http or https: a proxy may terminate TLS.
    return (
      /^https?:\/\//.test(origin) && origin.slice(origin.indexOf('//') + 2) === host.toLowerCase()
    )
  }
}

const HOSTS = 'an array such as ["mcp.example.com"], or "any" to turn the check off'
const ORIGINS = 'an array such as ["https://app.example.com"]'

/** Options may be written in JavaScript. */
function listOf(option: string, list: readonly string[], expected: string): readonly string[] {
  if (Array.isArray(list) && list.every((each) => typeof each === 'string')) return list
  throw new TypeError(`"${option}" must be ${expected}, not ${JSON.stringify(list)}`)
}

/** A name or an address with an optional port, as in the Host header. */
function hostOf(text: string): string {
  if (text.includes('*'))
    throw new TypeError(
      `"hosts" must list names without wildcards, not ${JSON.stringify(text)}; hosts: "any" turns the check off`,
    )
  if (!/^(?:[^\s/@:?#[\]]+|\[[0-9a-f:.]+\])(?::\d+)?$/i.test(text))
    throw new TypeError(
      `"hosts" must list names such as mcp.example.com, not ${JSON.stringify(text)}`,
    )
  return text.toLowerCase()
}

function originOf(text: string): string {
  const origin = parseUrl(text)?.origin ?? 'null'
  if (origin === 'null')
    throw new TypeError(
      `"origins" must list origins such as https://app.example.com, not ${JSON.stringify(text)}`,
    )
  return origin
}

/** The error response, if the body of a POST must not be read. */
export function checkBody(
  context: HttpContext,
  maxBodyBytes: number,
): HttpErrorResponse | undefined {
  const type = context.header('content-type')
  if (!isJson(type)) {
    return new HttpErrorResponse(
      415,
      'Unsupported Media Type: send JSON in UTF-8, with the header "Content-Type: application/json"',
    )
  }
  const encoding = context.header('content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    return new HttpErrorResponse(
      415,
      'Unsupported Media Type: send the body without Content-Encoding',
    )
  // https://datatracker.ietf.org/doc/html/rfc9112#section-6.1
  const transfer = context.header('transfer-encoding')
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked')
    return new HttpErrorResponse(
      501,
      'Not Implemented: the only supported Transfer-Encoding is chunked',
    )
  const length = context.header('content-length')
  return length !== undefined && Number(length) > maxBodyBytes ? tooLarge(maxBodyBytes) : undefined
}

/** Whether a message has a response, also an invalid one, or a cancellation: while the server shuts down, calls in progress need these. */
export function concernsCalls(message: Message): boolean {
  return messagesIn(message).some(
    (each) =>
      each.kind === 'response' ||
      (each.kind === 'invalid' && each.noResponse && each.id !== undefined) ||
      (each.kind === 'notification' && each.method === 'notifications/cancelled'),
  )
}

/** The error response, if the client does not accept both forms of a response. */
export function checkAccept(context: HttpContext): HttpErrorResponse | undefined {
  return accepts(context, 'application/json') && accepts(context, 'text/event-stream')
    ? undefined
    : notAcceptable(BOTH)
}

export function tooLarge(maxBodyBytes: number, headers: HeaderList = []): HttpErrorResponse {
  return new HttpErrorResponse(
    413,
    `Content Too Large: a request body may have at most ${maxBodyBytes} bytes`,
    headers,
  )
}

/** Of the parameters, only the charset matters. */
function isJson(type: string | undefined): boolean {
  if (type === 'application/json') return true
  const [name = '', ...parameters] = (type ?? '').toLowerCase().split(';')
  if (name.trim() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [key = '', value = ''] = parameter.split('=', 2)
    return key.trim() !== 'charset' || /^\s*"?utf-8"?\s*$/.test(value)
  })
}

/** What clients send for a POST; any other header is parsed. */
const BOTH = 'application/json, text/event-stream'
const WEIGHT_0 = /;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/

/**
 * Whether the client accepts a media type: the most specific range decides. Without an Accept header, it accepts any.
 * https://datatracker.ietf.org/doc/html/rfc9110#section-12.5.1
 */
export function accepts(
  context: HttpContext,
  type: 'application/json' | 'text/event-stream',
): boolean {
  const accept = context.header('accept')
  if (accept === undefined || accept === BOTH) return true
  const ranges = accept.toLowerCase().split(',')
  const anySubtype = type.slice(0, type.indexOf('/')) + '/*'
  for (const name of [type, anySubtype, '*/*']) {
    const named = ranges.filter((range) => range.split(';', 1)[0]?.trim() === name)
    if (named.length > 0) return named.some((range) => !WEIGHT_0.test(range))
  }
  return false
}

const NOT_UTF8: Message = {
  kind: 'invalid',
  id: undefined,
  error: new RpcError(PARSE_ERROR, 'Parse error: the body is not valid UTF-8'),
  noResponse: false,
}
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The message in a body, and its text; that is empty if it is not valid UTF-8. */
export function readMessage(
  body: Uint8Array,
  maxDepth: number | undefined,
): { text: string; message: Message } {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return { text: '', message: NOT_UTF8 }
  }
  return { text, message: parseMessage(text, maxDepth) }
}
