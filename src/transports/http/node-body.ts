import type { UnreadBody } from './http-context.js'

const encoder = new TextEncoder()

const NO_BODY =
  'The request body was read before nodeHandler, and is not in req.body. ' +
  'Register nodeHandler before the code that reads it, or assign the body to req.body'
const ROUNDED =
  'The request id is a number beyond 2^53, which the body parser before nodeHandler has rounded. ' +
  'Register nodeHandler before the body parser'

/**
 * The body of a request whose stream was read by other code, such as `express.json()`: `rawBody`, which some platforms
 * set, or `body`. A parsed value is serialized again. Throws if both are missing.
 */
export function bodyReadBefore(request: object, limit: number): Uint8Array | UnreadBody {
  const { rawBody, body } = request as { rawBody?: unknown; body?: unknown } // set by other code, if at all
  const bytes = bytesOf(rawBody) ?? bytesOf(body) ?? serialize(body)
  return 'length' in bytes && bytes.length > limit ? { problem: 'too long' } : bytes
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return typeof value === 'string'
    ? encoder.encode(value)
    : value instanceof Uint8Array
      ? value
      : undefined
}

function serialize(value: unknown): Uint8Array | UnreadBody {
  if (value === undefined) throw new Error(NO_BODY)
  const ids = (Array.isArray(value) ? value : [value]).map(
    (message) => (message as { id?: unknown } | null)?.id,
  )
  if (ids.some((id) => Number.isInteger(id) && !Number.isSafeInteger(id))) throw new Error(ROUNDED)
  try {
    return encoder.encode(JSON.stringify(value))
  } catch (error) {
    // JSON.parse accepts any depth, JSON.stringify does not.
    if (error instanceof RangeError) return { problem: 'too deep' }
    throw error
  }
}
