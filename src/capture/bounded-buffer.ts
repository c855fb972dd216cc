import { ChunkBuffer, Tail, decodeLossy } from '../framing/bytes.js'

/** Bytes of the beginning and of the end that are kept of a message beyond the limit. */
export const HEAD = 1024

/** What is known of a message that is not UTF-8 or too long. */
export interface LossyText {
  /** With U+FFFD for invalid bytes; the beginning if it is too long. */
  text: string
  /** The last bytes of a message that is too long. */
  end?: string
}

/** The bytes of a message. Of one beyond the limit, only the beginning and the end are kept. */
export class BoundedBuffer {
  readonly #bytes = new ChunkBuffer()
  #tail: Tail | undefined

  get length(): number {
    return this.#bytes.length
  }

  add(piece: Uint8Array, isBeyond: boolean): void {
    if (piece.length === 0) return
    if (!isBeyond) {
      this.#bytes.add(piece)
      return
    }
    if (this.#tail === undefined) {
      this.#tail = new Tail(HEAD)
      this.#bytes.keepHead(HEAD, this.#tail)
    }
    this.#tail.add(piece)
    const room = HEAD - this.#bytes.length
    if (room > 0) this.#bytes.add(piece.slice(0, room))
  }

  /** All bytes, or the beginning. */
  take(): Uint8Array {
    this.#tail = undefined
    return this.#bytes.take()
  }

  /** The last bytes of a message beyond the limit. */
  takeEnd(): string {
    return decodeLossy(this.#tail?.take() ?? new Uint8Array(0))
  }

  /** The beginning and the end of a message beyond the limit. */
  takeEnds(): LossyText {
    const end = this.takeEnd()
    return { text: decodeLossy(this.take()), end }
  }
}
