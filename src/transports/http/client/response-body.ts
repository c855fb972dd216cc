import { EventStreamParser, type StreamEvent } from '../../../framing/event-stream.js'
import type { HttpResponse } from './http-request.js'

/** A body beyond the client's limit. */
export class BodyTooLong extends Error {
  override readonly name = 'BodyTooLong'
}

/** The whole body as text, of at most `limit` bytes. */
export async function readText(response: HttpResponse, limit: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let size = 0
  let text = ''
  for await (const chunk of response.body) {
    size += chunk.byteLength
    if (size > limit) throw new BodyTooLong(`The response is longer than ${limit} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** The events of a `text/event-stream` body, each of at most `limit` characters. */
export async function* readEvents(
  response: HttpResponse,
  limit: number,
): AsyncGenerator<StreamEvent> {
  const parser = new EventStreamParser(limit)
  for await (const chunk of response.body) {
    parser.push(chunk)
    for (let event = parser.next(); event !== undefined; event = parser.next()) yield event
  }
}

/** The media type of a response, without its parameters. */
export function mediaType(response: HttpResponse): string {
  return (response.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}
