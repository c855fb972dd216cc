/** A limit on the bytes held at a time. What is taken also counts in the parent, such as the budget that all sessions share. */
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

  /** Whether this budget or a parent is used up. */
  get full(): boolean {
    return this.#used >= this.max || this.#parent?.full === true
  }

  /** Takes bytes if they fit here and in every parent; otherwise takes none and returns false. */
  take(bytes: number): boolean {
    if (!this.fits(bytes)) return false
    this.charge(bytes)
    return true
  }

  /** Takes bytes even beyond the limit: for what is in memory already. */
  charge(bytes: number): void {
    this.#used += bytes
    this.#parent?.charge(bytes)
  }

  give(bytes: number): void {
    this.charge(-bytes)
  }

  /** Returns everything to the parent and detaches from it. */
  close(): void {
    this.#parent?.give(this.#used)
    this.#parent = undefined
  }

  fits(bytes: number): boolean {
    return this.#used + bytes <= this.max && this.#parent?.fits(bytes) !== false
  }
}
