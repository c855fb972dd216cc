import type { Channel } from '../jsonrpc/channel.js'
import { RequestFailedError, RpcError } from '../jsonrpc/errors.js'
import { encodeError } from '../jsonrpc/message.js'

/** Collects the messages of a channel. */
export class Inbox {
  readonly #frames: string[] = []
  #wake: () => void = () => {}
  #closed = false
  /** The error that closed the channel. */
  broken: Error | undefined

  constructor(channel: Channel) {
    channel.receive({
      frame: (frame) => {
        this.#frames.push(frame)
        this.#wake()
      },
      malformed: (error, head) => {
        this.#frames.push(
          JSON.stringify({
            garbage: error.message,
            ...(head === '' ? {} : { head: head.slice(0, 200) }),
          }),
        )
        this.#wake()
      },
      failed: (id, error) => {
        if (error instanceof RpcError) this.#frames.push(encodeError(id, error, 'null'))
        else if (error instanceof RequestFailedError && error.code !== 'NETWORK')
          this.#frames.push(JSON.stringify({ id, failed: error.message }))
        else return this.#close(error)
        this.#wake()
      },
      closed: (error) => this.#close(error),
    })
  }

  #close(error: Error | undefined): void {
    this.#closed = true
    this.broken = error
    this.#wake()
  }

  /** The next message, or undefined after the timeout. */
  async next(timeout: number): Promise<string | undefined> {
    if (this.#frames.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeout)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return this.#frames.shift()
  }
}
