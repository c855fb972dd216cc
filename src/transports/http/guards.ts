import { isAddress, isLoopback } from '../../auth/loopback.js'
import { HttpError } from './http-error.js'
import type { HeaderList, HttpContext } from './http-context.js'

/* What every request must pass before its body is read. */

export interface GuardOptions {
  /** Names by which the server may be called, beside those of this machine itself; `any` turns the check off. */
  hosts?: readonly string[] | 'any' | undefined
  /** Web pages that may call, as origins such as `https://app.example.com`. They are also told so (CORS). */
  origins?: readonly string[] | undefined
  /** Whether the server is reached by its address from elsewhere. */
  addresses?: boolean | undefined
}

export class Guards {
  readonly #hosts: ReadonlySet<string> | 'any'
  readonly #origins: ReadonlySet<string>
  readonly #addresses: boolean

  constructor({ hosts = [], origins = [], addresses = false }: GuardOptions) {
    this.#hosts = hosts === 'any' ? 'any' : new Set(hosts.map(hostOf))
    this.#origins = new Set(origins.map(originOf))
    this.#addresses = addresses
  }

  /** Why a request must not be served, or undefined. */
  check(visit: HttpContext): HttpError | undefined {
    const { ambiguity } = visit
    if (ambiguity !== undefined) return new HttpError(400, `Bad Request: ${ambiguity}`)
    const host = visit.header('host')
    if (host === undefined || !this.#knowsHost(host)) {
      return new HttpError(
        403,
        'Forbidden: this server is not known by the name in the Host header. To allow it, name it in the option "hosts"',
      )
    }
    const origin = visit.header('origin')
    if (origin === undefined || this.#knowsOrigin(origin, host)) return undefined
    return new HttpError(
      403,
      'Forbidden: pages of this Origin may not call this server. To allow them, name it in the option "origins"',
    )
  }

  /** The origin of a page that was named as one that may call. */
  listed(visit: HttpContext): string | undefined {
    const origin = visit.header('origin')
    return origin !== undefined && this.#origins.has(origin) ? origin : undefined
  }

  /** A page that has its own name pointed at us (DNS rebinding) still calls us by that name. */
  #knowsHost(host: string): boolean {
    if (this.#hosts === 'any') return true
    const written = host.toLowerCase()
    const name = written.replace(/:\d+$/, '')
    if (isLoopback(name) || this.#hosts.has(name) || this.#hosts.has(written)) return true
    return this.#addresses && isAddress(name)
  }

  #knowsOrigin(origin: string, host: string): boolean {
    if (this.#origins.has(origin)) return true
    // A page of this very server. Whether it was fetched by http or https, a proxy may have changed.
    return (
      /^https?:\/\//.test(origin) && origin.slice(origin.indexOf('//') + 2) === host.toLowerCase()
    )
  }
}

/** As it stands in the header: a name or an address, and perhaps a port. */
function hostOf(text: string): string {
  if (!/^(?:[^\s/@:?#[\]]+|\[[0-9a-f:.]+\])(?::\d+)?$/i.test(text))
    throw new TypeError(
      `"hosts" must list names such as mcp.example.com, not ${JSON.stringify(text)}`,
    )
  return text.toLowerCase()
}

function originOf(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null'
  if (origin === 'null')
    throw new TypeError(
      `"origins" must list origins such as https://app.example.com, not ${JSON.stringify(text)}`,
    )
  return origin
}

/** Why a POST must not be read, or undefined. */
export function checkPost(visit: HttpContext, maxBody: number): HttpError | undefined {
  const type = visit.header('content-type')
  if (type !== 'application/json' && !isJson(type)) {
    return new HttpError(
      415,
      'Unsupported Media Type: send JSON in UTF-8, with the header "Content-Type: application/json"',
    )
  }
  const encoding = visit.header('content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    return new HttpError(
      415,
      'Unsupported Media Type: send the body as it is, without Content-Encoding',
    )
  // https://datatracker.ietf.org/doc/html/rfc9112#section-6.1
  const transfer = visit.header('transfer-encoding')
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked')
    return new HttpError(
      501,
      'Not Implemented: send the body as it is, with no Transfer-Encoding but chunked',
    )
  if (!accepts(visit, 'application/json') || !accepts(visit, 'text/event-stream')) {
    return new HttpError(
      406,
      'Not Acceptable: send the header "Accept: application/json, text/event-stream"',
    )
  }
  const length = visit.header('content-length')
  return length !== undefined && Number(length) > maxBody ? tooLarge(maxBody) : undefined
}

export function tooLarge(maxBody: number, headers: HeaderList = []): HttpError {
  return new HttpError(413, `Content Too Large: a message may have ${maxBody} bytes`, headers)
}

/** Of the parameters that a type may have, only the charset says something of how to read it. */
function isJson(type: string | undefined): boolean {
  if (type === 'application/json') return true
  const [name = '', ...parameters] = (type ?? '').toLowerCase().split(';')
  if (name.trim() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [key = '', value = ''] = parameter.split('=', 2)
    return key.trim() !== 'charset' || /^\s*"?utf-8"?\s*$/.test(value)
  })
}

/** Whether the client takes answers of a type. No header is as good as any. */
export function accepts(
  visit: HttpContext,
  type: 'application/json' | 'text/event-stream',
): boolean {
  const accept = visit.header('accept')
  if (accept === undefined || accept.includes(type))
    return accept === undefined || !refusesByWeight(accept, type)
  const ranges = accept.toLowerCase().split(',')
  return ranges.some((range) => {
    const name = (range.split(';', 1)[0] ?? '').trim()
    return (
      (name === type || name === '*/*' || name === `${type.split('/', 1)[0] ?? ''}/*`) &&
      !/;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/.test(range)
    )
  })
}

function refusesByWeight(accept: string, type: string): boolean {
  return (
    accept.includes('q=0') &&
    accept
      .split(',')
      .some((range) => range.includes(type) && /;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/.test(range))
  )
}
