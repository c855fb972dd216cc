import type { Params } from '../jsonrpc/message.js'
import { METHODS } from '../protocol/methods.js'

/** The state that a client's own requests have set in its session, to be set again in the next one. */
export class SessionState {
  readonly #values = new Map<string, Set<string>>()

  /** Remembers a request that has succeeded. */
  requested(method: string, params: Params | undefined): void {
    const effect = METHODS.get(method)?.session
    const value = effect === undefined ? undefined : params?.[effect.param]
    if (effect === undefined || typeof value !== 'string') return
    if (typeof effect.keep === 'object') this.#values.get(effect.keep.undoes)?.delete(value)
    else if (effect.keep === 'last') this.#values.set(method, new Set([value]))
    else this.#values.set(method, (this.#values.get(method) ?? new Set()).add(value))
  }

  /** The requests that set it again. */
  *requests(): Iterable<{ method: string; params: Params }> {
    for (const [method, values] of this.#values) {
      const param = METHODS.get(method)?.session?.param ?? ''
      for (const value of values) yield { method, params: { [param]: value } }
    }
  }
}
