/** Holds messages back while it is shut. */
export class Gate {
  #opened: Promise<void> | undefined
  #open: () => void = () => {}

  get isShut(): boolean {
    return this.#opened !== undefined
  }

  /** Stays shut if it is. */
  shut(): void {
    this.#opened ??= new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#opened = undefined
    this.#open()
  }

  /** Resolves while it is open. */
  async opened(): Promise<void> {
    while (this.#opened !== undefined) await this.#opened
  }
}
