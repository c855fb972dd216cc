import type { Channel } from '../jsonrpc/channel.js'
import type { ErrorCode } from '../jsonrpc/errors.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'

/** A server that can be reached: each `open` gives a new channel to it. */
export interface Target {
  /** What the channel notices beside its messages goes to `report`. */
  open(report?: (entry: LogEntry) => void): TargetChannel
  /** Opens the HTTP+SSE transport of the same URL, for a server without Streamable HTTP. */
  openHttpSse?(report?: (entry: LogEntry) => void): TargetChannel
}

export interface TargetChannel extends Channel {
  /** What is known about why the connection does not work, with advice. */
  diagnose?(): string
  /** Removes what authorizes the requests from errors and reports: a server may repeat it. */
  readonly secrets?: {
    redactError(error: unknown): void
    redactEntry(entry: LogEntry): LogEntry
  }
  /** Whether it is HTTP: there, a missing response never means a server of an earlier revision. */
  readonly http?: boolean
  /** Set by the client; called when the server has ended the session and no request was refused because of it. */
  onExpired?: (() => void) | undefined
  /** Set by the client: whether no call waits for the handshake, which must not lead to a question to the user then. */
  isUnattended?: (() => boolean) | undefined
  /** Called when a repeated handshake has failed, even after a successful response to `initialize`: the new session is not used. */
  handshakeFailed?(): void
}

/** A connection that could not be made: with its likely cause and what to do. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly code: ErrorCode = 'CONNECTION_FAILED'
  /** The request that needed the connection was not sent, or was refused. */
  readonly executed = 'no'
}
