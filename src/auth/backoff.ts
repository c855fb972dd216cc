const FIRST_DELAY = 1000
const MAX_DELAY = 60_000

/** Exponential backoff: the delay before the next attempt doubles with each consecutive failure, up to one minute. */
export class Backoff {
  #failures = 0
  #until = 0
  #cause: unknown

  async run<Result>(action: () => Promise<Result>): Promise<Result> {
    const delay = this.#until - performance.now()
    if (delay > 0)
      throw new Error(
        `The authorization server is not contacted for another ${Math.ceil(delay / 1000)} s, because the last request to it failed`,
        {
          cause: this.#cause,
        },
      )
    try {
      const result = await action()
      this.#failures = 0
      return result
    } catch (error) {
      this.#until = performance.now() + Math.min(MAX_DELAY, FIRST_DELAY * 2 ** this.#failures++)
      this.#cause = error
      throw error
    }
  }
}
