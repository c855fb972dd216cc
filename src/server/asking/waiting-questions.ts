import { ToolError } from '../tool-error.js'

/** Maximum number of questions that wait for answers in this process; a call that waits is held in memory. */
const MAX_QUESTIONS = 10_000

/** Counts the questions that wait for their answers. With authorization, each principal may have half of them. */
class WaitingQuestions {
  /** Those of all principals. */
  total = 0
  readonly #principals = new Map<string, number>()

  /** Adds questions of a principal, or throws if there are too many. */
  add(count: number, principal: string | undefined): void {
    const own = this.#of(principal) + count
    const max = principal === undefined ? MAX_QUESTIONS : MAX_QUESTIONS / 2
    if (own > max || this.total + count > MAX_QUESTIONS)
      throw new ToolError(
        'Too many questions wait for an answer of their client. Answer some of them, or try again later',
      )
    this.#set(principal, own)
    this.total += count
  }

  remove(count: number, principal: string | undefined): void {
    this.#set(principal, this.#of(principal) - count)
    this.total -= count
  }

  /** Without a principal, anybody may have asked: only the total counts. */
  #of(principal: string | undefined): number {
    return principal === undefined ? 0 : (this.#principals.get(principal) ?? 0)
  }

  #set(principal: string | undefined, count: number): void {
    if (principal === undefined) return
    if (count === 0) this.#principals.delete(principal)
    else this.#principals.set(principal, count)
  }
}

/** Those of all servers in this process: they share its memory. */
export const waitingQuestions = new WaitingQuestions()
