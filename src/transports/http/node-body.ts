import type { Body } from './http-context.js'

const encoder = new TextEncoder()

const NOT_THERE =
  'The body of this request was read before it reached nodeHandler, and is not in req.body. ' +
  'Put nodeHandler in front of what reads bodies, or assign what was read to req.body'
const ROUNDED =
  'The id of this request is a number beyond 2^53, of which the body parser in front of nodeHandler has lost digits: ' +
  'an answer would have another id. Put nodeHandler in front of the body parser'

/**
 * The body of a request whose stream was read by other code, such as `express.json()`: `rawBody`, as some platforms
 * keep it, or `body`. Bytes and text are taken as they are; a parsed value is written as JSON again. Throws where there
 * is none of them.
 */
export function bodyReadBefore(request: object, limit: number): Body {
  const { rawBody, body } = request as { rawBody?: unknown; body?: unknown } // set by other code, if at all
  const bytes = bytesOf(rawBody) ?? bytesOf(body) ?? written(body)
  return typeof bytes !== 'string' && bytes.length > limit ? 'too long' : bytes
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return typeof value === 'string'
    ? encoder.encode(value)
    : value instanceof Uint8Array
      ? value
      : undefined
}

function written(value: unknown): Body {
  if (value === undefined) throw new Error(NOT_THERE)
  const ids = (Array.isArray(value) ? value : [value]).map(
    (message) => (message as { id?: unknown } | null)?.id,
  )
  if (ids.some((id) => Number.isInteger(id) && !Number.isSafeInteger(id))) throw new Error(ROUNDED)
  try {
    return encoder.encode(JSON.stringify(value))
  } catch (error) {
    // JSON.parse takes any depth, JSON.stringify does not.
    if (error instanceof RangeError) return 'too deep'
    throw error
  }
}
