import { isUtf8 } from 'node:buffer'
import type { Direction } from '../capture/format.js'
import { LONGEST_ESCAPE, fastEscape, plainEscape } from './escape.js'

/** Bytes that were read, to be encoded as a record. */
export interface RecordedBytes {
  type: 'bytes'
  source: Direction | 'stderr'
  ns: number
  offset: number
  bytes: Uint8Array
  /** The HTTP request and response that they belong to. */
  exchange?: number | undefined
}

/** More than the longest beginning and end of a record. */
const REST = 256
const escapeInto = fastEscape() ?? plainEscape

/** An upper bound of the bytes of a record. */
export function encodedSize({ bytes }: RecordedBytes): number {
  return bytes.length * LONGEST_ESCAPE + REST
}

/**
 * Writes the same line as `encodeRecord` of capture/format would, in a fraction of the time: the bytes are escaped
 * without decoding them. Returns the position after it.
 */
export function encodeBytes(recorded: RecordedBytes, out: Buffer, start: number): number {
  const { source, ns, offset, bytes, exchange } = recorded
  const within = exchange === undefined ? '' : `"exchange":${exchange},`
  const head =
    source === 'stderr'
      ? `{"type":"event","event":"stderr","ns":${ns},`
      : `{"type":"chunk","dir":"${source}","ns":${ns},"offset":${offset},${within}`
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
