import type { Principal } from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { Id, UnreadableId } from '../../jsonrpc/message.js'
import type { HttpError } from './http-error.js'
import type { HeaderList, HttpContext } from './http-context.js'

/** One request under way: its way back, who sent it, and the headers that every answer to it carries. */
export interface AdmittedRequest {
  visit: HttpContext
  principal: Principal | undefined
  headers: HeaderList
}

/** What an endpoint does for everybody who serves a part of it. */
export interface Responder {
  /** Refuses, and says so in the log. */
  refuse(visit: HttpContext, refusal: HttpError, id?: Id, unreadable?: UnreadableId): void
  /** Answers for an error of ours. */
  fail(visit: HttpContext, error: unknown): void
  /** Whether so many answers are open, or such large requests of a caller, that no more may be. */
  full(principal: Principal | undefined): boolean
  /** Headers of an answer that tells an error. */
  challenge(error: RpcError): HeaderList
}
