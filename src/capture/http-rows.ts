import type { Direction } from './format.js'
import type { Frame } from './frames.js'
import { type HttpExchange, headerOf, pathOf } from './http-exchange.js'

/** Maximum characters of a row's text. */
const MAX_TEXT = 500
/** Headers that the row of a request or response shows. */
const SHOWN = {
  in: ['mcp-session-id', 'mcp-protocol-version', 'last-event-id'],
  out: ['content-type', 'mcp-session-id', 'www-authenticate', 'location'],
} as const

/** What all rows of a frame have. */
export function placeOf({ dir, start, end, lastNs, exchange, coding, fields }: Frame) {
  return {
    ns: lastNs,
    dir,
    start,
    end,
    ...(exchange === undefined ? {} : { exchange: exchange.id }),
    ...(coding === undefined ? {} : { coding }),
    ...(fields === undefined ? {} : { fields }),
  }
}

/** The row of the head of a request (`in`) or of a response (`out`). */
export function headOf(exchange: HttpExchange, ns: number, dir: Direction) {
  const { id, method, target, status = 0, reason } = exchange
  const headers = dir === 'in' ? exchange.requestHeaders : exchange.responseHeaders
  const shown = SHOWN[dir].flatMap((name) => {
    const value = headerOf(headers, name)
    return value === undefined ? [] : [`${name}: ${value}`]
  })
  const line = dir === 'in' ? [] : [`${status} ${reason}`.trim()]
  return {
    kind: 'http' as const,
    ns,
    dir,
    method,
    target: pathOf(target),
    status: dir === 'out' && status >= 400 ? ('error' as const) : undefined,
    text: [...line, ...shown].join(', ').slice(0, MAX_TEXT),
    findings: [],
    exchange: id,
  }
}
