import type { Channel } from '../jsonrpc/channel.js'
import type { ErrorCode } from '../jsonrpc/errors.js'

/** A server that can be reached: each `open` gives a new channel to it. */
export interface Target {
  open(): TargetChannel
}

export interface TargetChannel extends Channel {
  /** All that is known about why the connection does not work, in words with advice. */
  diagnose?(): string
}

/** A connection that could not be made, or broke: with its likely cause and what to do. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly code: ErrorCode = 'CONNECTION_FAILED'
}
