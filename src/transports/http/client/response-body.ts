import { ChunkBuffer } from '../../../framing/bytes.js'
import {
  EventStreamParser,
  EventTooLongError,
  type StreamEvent,
} from '../../../framing/event-stream.js'
import type { HttpResponse } from './http-request.js'

/** A body beyond the client's limit. */
export class BodyTooLongError extends Error {
  override readonly name = 'BodyTooLongError'
}

/** A body that cannot be decoded. */
export class InvalidBodyError extends Error {
  override readonly name = 'InvalidBodyError'
}

/** Maximum bytes of an error body, and milliseconds to wait for it. */
const MAX_ERROR_BODY = 64 * 1024
const ERROR_BODY_TIMEOUT = 2000

const NOTHING = new Uint8Array()
/** Drops a byte order mark. */
const decoder = new TextDecoder('utf-8', { fatal: true })

/** The whole body as text, of at most `limit` bytes. */
export async function readText(response: HttpResponse, limit: number): Promise<string> {
  let size = 0
  // Most bodies are one chunk.
  let first: Uint8Array = NOTHING
  let chunks: ChunkBuffer | undefined
  for await (const chunk of response.body) {
    size += chunk.byteLength
    if (size > limit) throw new BodyTooLongError(`The response is longer than ${limit} bytes`)
    if (chunks === undefined && first.byteLength > 0) {
      chunks = new ChunkBuffer()
      chunks.add(first)
    }
    if (chunks === undefined) first = chunk
    else chunks.add(chunk)
  }
  try {
    return decoder.decode(chunks?.take() ?? first)
  } catch (cause) {
    throw new InvalidBodyError('The body of the response is not UTF-8', { cause })
  }
}

/** The body of an error response, or an empty text if it is too long, broken or late. */
export async function readErrorText(response: HttpResponse): Promise<string> {
  const timer = setTimeout(() => response.cancel(), ERROR_BODY_TIMEOUT)
  try {
    return await readText(response, MAX_ERROR_BODY)
  } catch {
    return ''
  } finally {
    clearTimeout(timer)
  }
}

/** The events of a `text/event-stream` body, each with at most `limit` bytes of data. */
export async function* readEvents(
  response: HttpResponse,
  limit: number,
): AsyncGenerator<StreamEvent> {
  const parser = new EventStreamParser(limit)
  for await (const chunk of response.body) {
    parser.push(chunk)
    for (let event = parser.next(); event !== undefined; event = parser.next()) {
      if (isLonger(event.data, limit))
        throw new EventTooLongError(`An event is longer than ${limit} bytes`)
      yield event
    }
  }
}

/** The parser counts UTF-16 code units, of which each is one to three bytes of UTF-8. */
function isLonger(data: string | undefined, limit: number): boolean {
  return (
    data !== undefined &&
    data.length * 3 > limit &&
    new TextEncoder().encode(data).byteLength > limit
  )
}

/** The media type of a response, without its parameters. */
export function mediaType(response: HttpResponse): string {
  return (response.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}
