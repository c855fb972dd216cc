import type { Principal } from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { HttpError } from './http-error.js'
import type { HeaderList, HttpContext } from './http-context.js'

/** Who decides whether a request may come in, and on whose behalf. */
export interface Authenticator {
  admit(visit: HttpContext): Principal | HttpError | Promise<Principal | HttpError>
  /** What an answer must say besides, so that a client knows how to get further. */
  challenge(error: RpcError): HeaderList
  /** A document for clients that want to know where to get a token, by its path. */
  document(path: string): string | undefined
}
