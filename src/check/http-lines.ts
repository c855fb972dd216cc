import type { EventStreamBody } from '../capture/http-body.js'

/*
 * The rules read messages as lines. Bytes keep their positions: line breaks within a message become spaces.
 */

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20

export function lineOf(bytes: Uint8Array): Buffer {
  const line = Buffer.alloc(bytes.length + 1, NEWLINE)
  for (const [at, byte] of bytes.entries())
    line[at] = byte === NEWLINE || byte === CARRIAGE_RETURN ? SPACE : byte
  return line
}

/** The data of an event, and where it begins in the body. */
interface EventData {
  event: string
  text: string
  start: number
}

/** The events with data that a chunk of an event stream completes. */
export function messagesIn(
  events: EventStreamBody,
  chunk: Uint8Array,
  offset: number,
): EventData[] {
  return events.push(chunk, offset, 0).flatMap(({ text = '', body, fields }) => {
    const event = fields?.event ?? ''
    return text === '' ? [] : [{ event, text, start: body.start }]
  })
}
