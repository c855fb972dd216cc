import { AuthorizationError } from './errors.js'

/** Maximum logins that an authorizer asks for within a time: a server can ask for more scopes for ever. */
const MAX_LOGINS = 5
const MINUTES = 10

/** Limits how often the user is asked. */
export class LoginLimit {
  /** When the user was asked last. */
  #times: number[] = []

  /** Throws if the user was asked too often. */
  check(): void {
    const now = performance.now()
    this.#times = this.#times.filter((time) => now - time < MINUTES * 60_000)
    if (this.#times.length >= MAX_LOGINS)
      throw new AuthorizationError(
        'AUTHORIZATION_FAILED',
        `The server has required ${MAX_LOGINS} logins within ${MINUTES} minutes; the user is not asked again until these have passed`,
      )
  }

  /** The user is asked now. */
  asked(): void {
    this.#times.push(performance.now())
  }
}
