import { withTimeout } from '../jsonrpc/deadline.js'
import { RequestFailedError, abortError } from '../jsonrpc/errors.js'
import { markHandled } from '../jsonrpc/hook.js'
import { type Id, type Params, isObject } from '../jsonrpc/message.js'
import { SUBSCRIPTION_ID } from '../protocol/meta.js'
import type { ClientSession } from './session.js'

/** Milliseconds for the acknowledgement of a stream. */
const ACKNOWLEDGE_TIMEOUT = 30_000

/**
 * A `subscriptions/listen` stream.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
 */
export class ListenStream {
  readonly #id: Id
  readonly #controller = new AbortController()
  #acknowledge: (accepted: Params) => void = () => {}
  /** The filter that the server has accepted. Rejects if the stream ends before, or nothing is said for too long. */
  readonly acknowledged: Promise<Params>
  /** Resolves when the stream has ended, however: with the reason. */
  readonly ended: Promise<Error | undefined>
  hasEnded = false

  constructor(session: ClientSession, filter: Params) {
    const { id, ended } = session.listen(filter, this.#controller.signal)
    this.#id = id
    this.ended = ended
      .then(() => undefined, abortError)
      .finally(() => {
        this.hasEnded = true
      })
    const said = new Promise<Params>((resolve) => {
      this.#acknowledge = resolve
    })
    this.acknowledged = markHandled(this.#acknowledgedInTime(said))
  }

  async #acknowledgedInTime(said: Promise<Params>): Promise<Params> {
    const ended = this.ended.then((error) => {
      throw error ?? notAcknowledged('ended without an acknowledgement')
    })
    const accepted = await withTimeout(ACKNOWLEDGE_TIMEOUT, Promise.race([said, ended]))
    if (accepted === 'late')
      throw notAcknowledged(`was not acknowledged within ${ACKNOWLEDGE_TIMEOUT} ms`)
    return accepted
  }

  /** Whether a notification belongs to this stream. One without an id could belong to any. */
  owns({ _meta: meta }: Params): boolean {
    const id = isObject(meta) ? meta[SUBSCRIPTION_ID] : undefined
    return id === undefined || id === this.#id || id === String(this.#id)
  }

  acknowledge({ notifications }: Params): void {
    this.#acknowledge(isObject(notifications) ? notifications : {})
  }

  close(): void {
    this.#controller.abort(new Error('The stream is no longer needed'))
  }
}

function notAcknowledged(problem: string): RequestFailedError {
  return new RequestFailedError('STREAM_ENDED', `The stream of notifications ${problem}`, {
    executed: 'maybe',
  })
}
