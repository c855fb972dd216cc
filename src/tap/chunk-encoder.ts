import { isUtf8 } from 'node:buffer'
import type { Direction } from '../capture/format.js'

/** Bytes that were read, to be encoded as a record. */
export interface RecordedBytes {
  type: 'bytes'
  source: Direction | 'stderr'
  ns: number
  offset: number
  bytes: Uint8Array
}

/** An escaped control character has six bytes. */
const LONGEST_ESCAPE = 6
/** More than the longest beginning and end of a record. */
const REST = 256
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const HEX = Buffer.from('0123456789abcdef')
const ESCAPE_START = Buffer.from('\\u00')

/** An upper bound of the bytes of a record. */
export function encodedSize({ bytes }: RecordedBytes): number {
  return bytes.length * LONGEST_ESCAPE + REST
}

/**
 * Writes the same line as `encodeRecord` of capture/format would, in a fraction of the time: the bytes are escaped
 * without decoding them. Returns the position after it.
 */
export function encodeBytes(recorded: RecordedBytes, out: Buffer, start: number): number {
  const { source, ns, offset, bytes } = recorded
  const head =
    source === 'stderr'
      ? `{"type":"event","event":"stderr","ns":${ns},`
      : `{"type":"chunk","dir":"${source}","ns":${ns},"offset":${offset},`
  let at = start + out.write(head, start, 'latin1')
  if (isUtf8(bytes)) {
    at += out.write('"text":"', at, 'latin1')
    at = escapeInto(bytes, out, at)
  } else {
    at += out.write('"base64":"', at, 'latin1')
    at += out.write(
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'),
      at,
      'latin1',
    )
  }
  return at + out.write('"}\n', at, 'latin1')
}

function escapeInto(bytes: Uint8Array, out: Uint8Array, start: number): number {
  let at = start
  for (const byte of bytes) {
    if (byte === QUOTE || byte === BACKSLASH) {
      out[at++] = BACKSLASH
      out[at++] = byte
    } else if (byte >= SPACE) out[at++] = byte
    else if (byte === 0x0a) {
      out[at++] = BACKSLASH
      out[at++] = 0x6e // n
    } else {
      out.set(ESCAPE_START, at)
      out[at + 4] = HEX[byte >> 4] ?? 0
      out[at + 5] = HEX[byte & 15] ?? 0
      at += LONGEST_ESCAPE
    }
  }
  return at
}
