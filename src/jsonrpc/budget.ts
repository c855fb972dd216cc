/** A number of bytes that may be held at once. What is taken counts in the parent as well, such as the one that all sessions share. */
export class Budget {
  readonly max: number
  #parent: Budget | undefined
  #used = 0

  constructor(max: number, parent?: Budget) {
    this.max = max
    this.#parent = parent
  }

  get used(): number {
    return this.#used
  }

  /** Whether nothing is left, here or in a parent. */
  get full(): boolean {
    return this.#used >= this.max || this.#parent?.full === true
  }

  /** Takes some of it; false where there is not enough left, here or in a parent. */
  take(bytes: number): boolean {
    if (!this.fits(bytes)) return false
    this.charge(bytes)
    return true
  }

  /** Takes some of it, also where that is more than is left: for what is held already. */
  charge(bytes: number): void {
    this.#used += bytes
    this.#parent?.charge(bytes)
  }

  give(bytes: number): void {
    this.charge(-bytes)
  }

  /** Gives everything back to the parent, and no longer counts there. */
  close(): void {
    this.#parent?.give(this.#used)
    this.#parent = undefined
  }

  fits(bytes: number): boolean {
    return this.#used + bytes <= this.max && this.#parent?.fits(bytes) !== false
  }
}
