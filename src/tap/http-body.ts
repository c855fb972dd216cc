import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { Direction } from '../capture/format.js'
import type { CaptureFile } from './capture-file.js'
import type { EndpointRewriter, Rewritten } from './endpoint-rewriter.js'
import { pairsOf } from './http-heads.js'

/**
 * Forwards the body of a message and its end. Bytes are forwarded first and recorded second; a receiver that does not read
 * pauses the sender.
 */
export class BodyForwarder {
  readonly #from: IncomingMessage
  readonly #to: ClientRequest | ServerResponse
  readonly #exchange: number
  readonly #dir: Direction
  readonly #capture: CaptureFile
  readonly #rewriter: EndpointRewriter | undefined
  #offset = 0
  #hasWritten = false
  #hasEnded = false

  constructor(
    from: IncomingMessage,
    to: ClientRequest | ServerResponse,
    exchange: number,
    dir: Direction,
    capture: CaptureFile,
    rewriter?: EndpointRewriter,
  ) {
    this.#from = from
    this.#to = to
    this.#exchange = exchange
    this.#dir = dir
    this.#capture = capture
    this.#rewriter = rewriter
  }

  /** `ended` is called at the end of the body. */
  start(ended: (dir: Direction) => void): void {
    this.#from.on('data', (bytes: Buffer) => {
      this.#forward(bytes)
      if (this.#hasEnded) ended(this.#dir)
    })
    this.#from.on('end', () => {
      if (this.#hasEnded) return
      this.#end(this.#rewriter?.end())
      ended(this.#dir)
    })
    // A head is sent with the first bytes of the body, if they are there; otherwise on its own.
    process.nextTick(() => {
      if (!this.#hasWritten && !this.#to.destroyed) this.#to.flushHeaders()
    })
  }

  #forward(bytes: Buffer): void {
    if (this.#rewriter !== undefined) return this.#rewrite(this.#rewriter, bytes)
    const isLast = this.#from.complete && this.#from.readableLength === 0
    // A small body and its end are sent at once.
    if (isLast) this.#end(bytes)
    else this.#write(bytes)
    this.#record(bytes)
  }

  #rewrite(rewriter: EndpointRewriter, bytes: Buffer): void {
    const changes: Rewritten[] = []
    this.#write(rewriter.push(bytes, (change) => changes.push(change)))
    this.#record(bytes)
    for (const change of changes)
      this.#capture.httpEvent('rewritten', { exchange: this.#exchange, dir: this.#dir, ...change })
  }

  #write(bytes: Buffer): void {
    const to = this.#to
    if (bytes.length === 0 || to.destroyed) return
    this.#hasWritten = true
    if (to.write(bytes)) return
    this.#from.pause()
    to.once('drain', () => this.#from.resume())
  }

  #end(bytes?: Buffer): void {
    const to = this.#to
    this.#hasWritten = true
    this.#hasEnded = true
    if (to.writableEnded) return
    const { rawTrailers } = this.#from
    if (rawTrailers.length > 0) to.addTrailers(pairsOf(rawTrailers))
    if (bytes === undefined || bytes.length === 0) to.end()
    else to.end(bytes)
  }

  #record(bytes: Buffer): void {
    this.#capture.body(this.#exchange, this.#dir, this.#offset, bytes)
    this.#offset += bytes.length
  }
}
