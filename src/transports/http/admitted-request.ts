import type { Principal } from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { Id, Message, UnreadableId } from '../../jsonrpc/message.js'
import type { HeaderList, HttpContext } from './http-context.js'
import type { HttpErrorResponse } from './http-error-response.js'

/** An HTTP request that has passed the guards and the authenticator. */
export interface AdmittedRequest {
  context: HttpContext
  principal: Principal | undefined
  /** Headers of every response to it. */
  headers: HeaderList
}

/** Handles a POST whose body was read. */
export type MessageHandler = (request: AdmittedRequest, text: string, message: Message) => void

/** How the parts of an endpoint send errors. */
export interface Responder {
  /** Responds with an error, and logs it. */
  refuse(context: HttpContext, error: HttpErrorResponse, id?: Id, unreadable?: UnreadableId): void
  /** Responds with 500 to an error of the server, and logs it. */
  fail(context: HttpContext, error: unknown): void
  /** Whether a limit is reached: open responses, or the memory of the caller's requests in progress. */
  full(principal: Principal | undefined): boolean
  /** Headers of an error response. */
  challenge(error: RpcError): HeaderList
}
