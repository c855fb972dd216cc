/** What is read of a request. */
interface Waiting {
  id: { key: number | string }
  progressToken: unknown
}

/** The requests of one direction that have no response, by id and by progress token. */
export class Pending<Operation extends Waiting> {
  readonly #byId = new Map<number | string, Operation>()
  readonly #byToken = new Map<unknown, Set<Operation>>()

  add(operation: Operation): void {
    this.delete(operation.id.key)
    this.#byId.set(operation.id.key, operation)
    const { progressToken } = operation
    if (progressToken === undefined) return
    const sharing = this.#byToken.get(progressToken)
    if (sharing === undefined) this.#byToken.set(progressToken, new Set([operation]))
    else sharing.add(operation)
  }

  get(key: number | string): Operation | undefined {
    return this.#byId.get(key)
  }

  delete(key: number | string): void {
    const operation = this.#byId.get(key)
    if (operation === undefined) return
    this.#byId.delete(key)
    const sharing = this.#byToken.get(operation.progressToken)
    sharing?.delete(operation)
    if (sharing?.size === 0) this.#byToken.delete(operation.progressToken)
  }

  /** The request with a progress token; undefined if there are several. */
  withToken(token: unknown): Operation | undefined {
    const sharing = this.#byToken.get(token)
    const [only] = sharing ?? []
    return sharing?.size === 1 ? only : undefined
  }

  values(): IterableIterator<Operation> {
    return this.#byId.values()
  }
}
