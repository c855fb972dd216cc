import { AuthorizationError } from './errors.js'

/** Maximum logins of an authorizer that are begun within a time: a server can ask for more scopes for ever. */
const MAX_LOGINS = 5
const MINUTES = 10

/** Limits how often the user is asked. */
export class LoginLimit {
  /** When the last logins were begun. */
  #begun: number[] = []

  /** A login is to begin; throws if there were too many. */
  begin(): void {
    const now = performance.now()
    this.#begun = this.#begun.filter((time) => now - time < MINUTES * 60_000)
    if (this.#begun.length >= MAX_LOGINS)
      throw new AuthorizationError(
        'AUTHORIZATION_FAILED',
        `The server has required ${MAX_LOGINS} logins within ${MINUTES} minutes; the user is not asked again until these have passed`,
      )
    this.#begun.push(now)
  }
}
