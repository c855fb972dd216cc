import { type Exchange, rerouted } from './channel.js'
import { INTERNAL_ERROR, RpcError } from './errors.js'
import type { LogEntry } from './log-entry.js'
import { type Id, MAX_SENT_LENGTH, type SentResponse, encodeError } from './message.js'

/** The memory in which responses wait for the others of their batch. */
export interface ResponseMemory {
  /** Whether it is used up. */
  readonly full: boolean
  hold(bytes: number): void
  release(bytes: number): void
  log(entry: LogEntry): void
}

/** Responses up to this length are never refused: the error would be about as long. */
const SHORT = 1024
const TOO_LARGE = new RpcError(
  INTERNAL_ERROR,
  'Internal error: the request was executed, but its response is too large for this batch. Send such requests alone, or in smaller batches',
)

/**
 * The responses to a batch, which are sent together after the last one. Those that wait count as requests in progress;
 * if no memory is left for one, it is replaced by an error.
 */
export class BatchReply {
  /** For each message of the batch. */
  readonly exchange: Exchange
  readonly #whole: Exchange
  readonly #memory: ResponseMemory
  readonly #maxLength: number
  readonly #responses: string[] = []
  #remaining: number
  #length = 0
  #held = 0

  constructor(
    whole: Exchange,
    count: number,
    memory: ResponseMemory,
    maxLength: number = MAX_SENT_LENGTH,
  ) {
    this.#whole = whole
    this.#remaining = count
    this.#memory = memory
    this.#maxLength = maxLength
    this.exchange = rerouted(
      whole,
      (frame, message) => whole.send(frame, message),
      (frame, response) => this.#collect(frame, response),
    )
  }

  /** Notifications and cancelled requests have no response. */
  #collect(frame: string | undefined, response: SentResponse | undefined): void {
    this.#remaining--
    if (frame !== undefined) {
      const id = response?.id
      this.#add(id === undefined || this.#fits(frame) ? frame : this.#refuse(id))
    }
    if (this.#remaining > 0) return
    if (this.#held > 0) this.#memory.release(this.#held)
    // Removed: a handler that never returns would keep them in memory.
    const responses = this.#responses.splice(0)
    // A batch without any response gets none at all.
    this.#whole.reply(responses.length === 0 ? undefined : `[${responses.join()}]`)
  }

  #fits({ length }: string): boolean {
    if (length <= SHORT) return true
    // The last one is sent at once.
    const held = this.#remaining > 0 && this.#memory.full
    return !held && this.#length + length <= this.#maxLength
  }

  #refuse(id: Id): string {
    this.#memory.log({
      level: 'warning',
      message: 'A response was too large for its batch, and was replaced by an error',
      id,
    })
    return encodeError(id, TOO_LARGE, 'null')
  }

  #add(response: string): void {
    this.#responses.push(response)
    this.#length += response.length + 1
    if (this.#remaining === 0) return
    // Two bytes for each character, if one of them is beyond Latin-1.
    const bytes = /[^\0-\u00ff]/.test(response) ? 2 * response.length : response.length
    this.#held += bytes
    this.#memory.hold(bytes)
  }
}
