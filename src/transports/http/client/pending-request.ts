import type { Id, SentRequest } from '../../../jsonrpc/message.js'

/** A request without a response yet. */
export class PendingRequest {
  readonly request: SentRequest
  readonly controller = new AbortController()
  /** The session that it was sent in. */
  session: string | undefined
  /** Whether the server may have received it. */
  sent = false
  #settled = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(request: SentRequest) {
    this.request = request
  }

  get id(): Id {
    return this.request.id
  }

  /** Whether its response or its failure was delivered. */
  get settled(): boolean {
    return this.#settled
  }

  /** True the first time. */
  settle(): boolean {
    const first = !this.#settled
    this.#settled = true
    return first
  }

  /** Closes its stream after a time, if it is still open. */
  abortAfter(milliseconds: number): void {
    this.#timer ??= setTimeout(() => this.controller.abort(), milliseconds)
  }

  /** Its stream has ended. */
  finish(): void {
    clearTimeout(this.#timer)
  }
}
