/** A number of bytes that many share: so much may be held at once, whoever holds it. */
export class Budget {
  readonly #max: number
  #used = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Takes some of it; false where there is not enough left. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#max) return false
    this.#used += bytes
    return true
  }

  give(bytes: number): void {
    this.#used -= bytes
  }
}
