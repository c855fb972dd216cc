const FIRST_WAIT = 1000
const LONGEST_WAIT = 60_000

/** Keeps from trying again at once what has just failed: after each failure in a row it waits twice as long, up to a minute. */
export class Backoff {
  #failures = 0
  #until = 0
  #cause: unknown

  async run<Result>(action: () => Promise<Result>): Promise<Result> {
    const wait = this.#until - Date.now()
    if (wait > 0)
      throw new Error(`Not tried again for another ${Math.ceil(wait / 1000)} s after a failure`, {
        cause: this.#cause,
      })
    try {
      const result = await action()
      this.#failures = 0
      return result
    } catch (error) {
      this.#until = Date.now() + Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures++)
      this.#cause = error
      throw error
    }
  }
}
