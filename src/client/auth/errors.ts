import { RequestFailedError, type RequestFailure } from '../../jsonrpc/errors.js'
import { truncate } from '../../jsonrpc/truncate.js'

type AuthorizationFailure = Extract<
  RequestFailure,
  | 'AUTHORIZATION_REQUIRED'
  | 'AUTHORIZATION_DENIED'
  | 'AUTHORIZATION_FAILED'
  | 'DISCOVERY_FAILED'
  | 'REGISTRATION_FAILED'
  | 'TOKEN_REQUEST_FAILED'
  | 'UNSAFE_URL'
>

/** Rejects a request that could not be authorized. It has no `cause`: those of OAuth contain codes and tokens. */
export class AuthorizationError extends RequestFailedError {
  override readonly name: string = 'AuthorizationError'
  /** The `error` of an OAuth error response. */
  readonly error: string | undefined

  constructor(code: AuthorizationFailure, message: string, error?: string) {
    super(code, message, { executed: 'no' })
    this.error = error === undefined ? undefined : shown(error)
  }
}

/** Rejects a request that needs the user: nothing else can get a token. */
export class AuthorizationRequiredError extends AuthorizationError {
  override readonly name = 'AuthorizationRequiredError'
  /** Where to send the user; undefined if there is no `redirectUri`. The callback goes to `finish`. */
  readonly url: string | undefined

  constructor(message: string, url?: string) {
    super('AUTHORIZATION_REQUIRED', message)
    this.url = url
  }
}

const MAX_SHOWN = 200

/** Text of a peer for an error message: short and without control characters. */
export function shown(text: unknown): string {
  // oxlint-disable-next-line no-control-regex -- these are to be removed
  return truncate(String(text).replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' '), MAX_SHOWN)
}

/** `error` and `error_description` of an OAuth error response. */
export function describeError(error: string, description?: unknown): string {
  const detail =
    typeof description === 'string' && description !== '' ? `: ${shown(description)}` : ''
  return `${shown(error)}${detail}`
}
