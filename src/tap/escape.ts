/*
 * Escapes bytes of UTF-8 for a JSON string, without decoding them. This is most of the work of recording, so it is done
 * 16 bytes at a time by WebAssembly (scripts/escape.wat) if that is available.
 */

/** An escaped control character has six bytes. */
export const LONGEST_ESCAPE = 6
const QUOTE = 0x22
const BACKSLASH = 0x5c
const NEWLINE = 0x0a
const LETTER_N = 0x6e
const HEX = Buffer.from('0123456789abcdef')
const ESCAPE_START = Buffer.from('\\u00')

/** Writes the escaped bytes to `out` at a position; returns the position after them. */
export type Escape = (bytes: Uint8Array, out: Uint8Array, start: number) => number

const MODULE =
  'AGFzbQEAAAABCAFgA39/fwF/AwIBAAUDAQABBxMCBm1lbW9yeQIABmVzY2FwZQAACoICAf8BAwF/AXsDfyAAIAFqIQMCQANAIAAgA08NASAA/QAEACEEIAIgBP0LBAAgBEEg/Q/9JiAEQSL9D/0jIARB3AD9D/0j/VD9UP1kIQUgBUUEQCAAQRBqIQAgAkEQaiECDAELIAVoIQYgACAGaiEAIAIgBmohAiAAIANPDQEgAC0AACEHIABBAWohACAHQSBPIAdBCkZyBEAgB0EKRgRAQe4AIQcLIAJB3AAgB0EIdHI7AQAgAkECaiECBSACQdzqwYEDNgIAIAJBMCAHQQR2ajoABCAHQQ9xIQcgAiAHQdcAQTAgB0EKTxtqOgAFIAJBBmohAgsMAAsLIAIgACADa2sL'

/** Bytes that are escaped at once, and where the result begins. */
const PIECE = 32 * 1024
const RESULT = PIECE + 16
const PAGE = 64 * 1024

interface Exports {
  memory: { buffer: ArrayBuffer; grow(pages: number): number }
  escape(from: number, length: number, to: number): number
}

/** What is used of WebAssembly; the declarations of Node lack it. */
interface Wasm {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object) => { exports: Exports }
}

/** Undefined if this runtime or this processor lacks it. */
export function fastEscape(): Escape | undefined {
  let exports: Exports
  try {
    const { Instance, Module } = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly // if it is missing, the next line throws
    ;({ exports } = new Instance(new Module(Buffer.from(MODULE, 'base64'))))
    const size = RESULT + LONGEST_ESCAPE * PIECE + 16
    exports.memory.grow(Math.ceil(size / PAGE) - 1)
  } catch {
    return undefined
  }
  const { escape, memory } = exports
  const bytesOf = new Uint8Array(memory.buffer)
  return (bytes, out, start) => {
    let at = start
    for (let from = 0; from < bytes.length; from += PIECE) {
      const piece = bytes.length <= PIECE ? bytes : bytes.subarray(from, from + PIECE)
      bytesOf.set(piece)
      const end = escape(0, piece.length, RESULT)
      out.set(bytesOf.subarray(RESULT, end), at)
      at += end - RESULT
    }
    return at
  }
}

/** 1 for each byte that a JSON string must escape. */
const ESCAPED = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
)

/** By index and with a table: an iterator takes several times as long. */
export const plainEscape: Escape = (bytes, out, start) => {
  let at = start
  const { length } = bytes
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] ?? 0
    if (ESCAPED[byte] === 0) out[at++] = byte
    else at = escapeByte(byte, out, at)
  }
  return at
}

function escapeByte(byte: number, out: Uint8Array, at: number): number {
  if (byte === QUOTE || byte === BACKSLASH || byte === NEWLINE) {
    out[at] = BACKSLASH
    out[at + 1] = byte === NEWLINE ? LETTER_N : byte
    return at + 2
  }
  out.set(ESCAPE_START, at)
  out[at + 4] = HEX[byte >> 4] ?? 0
  out[at + 5] = HEX[byte & 15] ?? 0
  return at + LONGEST_ESCAPE
}
