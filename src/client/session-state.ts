import type { Params } from '../jsonrpc/message.js'
import { METHODS } from '../protocol/methods.js'

/** The state that a client's own requests have set in its session, to be set again in the next one. */
export class SessionState {
  readonly #values = new Map<string, Set<string>>()

  /** Remembers a request that has succeeded. */
  requested(method: string, params: Params | undefined): void {
    const fact = METHODS.get(method)?.session
    const value = fact === undefined ? undefined : params?.[fact.param]
    if (fact === undefined || typeof value !== 'string') return
    if (typeof fact.keep === 'object') this.#values.get(fact.keep.undoes)?.delete(value)
    else if (fact.keep === 'last') this.#values.set(method, new Set([value]))
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
