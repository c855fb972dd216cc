import type { Implementation } from '../protocol/model.js'
import type { Prompt, Resource, Tool } from './define.js'
import type { Log } from './log.js'
import type { Middleware } from './middleware.js'
import type { Definitions } from './registry.js'

/** A server, defined: no connection is part of it, and any number may use it at the same time. */
export interface Server {
  readonly info: Implementation
  readonly instructions: string | undefined
  readonly tools: Definitions<Tool>
  readonly resources: Definitions<Resource>
  readonly prompts: Definitions<Prompt>
  /** Adds a middleware around every method; the first one is outermost. */
  use(middleware: Middleware): void
  /** Notifies the clients that have subscribed to a resource that it has changed. */
  updated(uri: string): void
  /** Log messages to every client that takes them; a call has a log of its own. */
  readonly log: Log
}
