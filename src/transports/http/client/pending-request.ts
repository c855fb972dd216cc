import type { Id, SentRequest } from '../../../jsonrpc/message.js'

/** A request without a response yet. */
export class PendingRequest {
  readonly request: SentRequest
  readonly controller = new AbortController()
  /** The session that it was sent in. */
  session: string | undefined
  /** Resolves when the request has a response or has failed. */
  readonly settled: Promise<void>
  #answered = false
  #settle: () => void = () => {}

  constructor(request: SentRequest) {
    this.request = request
    this.settled = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  get id(): Id {
    return this.request.id
  }

  /** Whether its response or its failure was delivered. */
  get answered(): boolean {
    return this.#answered
  }

  get aborted(): boolean {
    return this.controller.signal.aborted
  }

  /** True the first time. */
  settle(): boolean {
    const first = !this.#answered
    this.#answered = true
    this.#settle()
    return first
  }
}
