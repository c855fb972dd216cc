import type { Principal } from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { HeaderList, HttpContext } from './http-context.js'
import type { HttpErrorResponse } from './http-error-response.js'

/** Decides on whose behalf a request is served, or that it is not. */
export interface Authenticator {
  authenticate(
    context: HttpContext,
  ): Principal | HttpErrorResponse | Promise<Principal | HttpErrorResponse>
  /** Headers of an error response, such as `WWW-Authenticate`. */
  challenge(error: RpcError): HeaderList
  /** The protected resource metadata, if it is served at `path`. */
  metadata(path: string): string | undefined
}
