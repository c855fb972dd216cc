import type { Target } from '../client.js'

/** A server to connect to. */
export interface ServerTarget {
  target: Target
  /** Who asks for input: what the user has typed, not what the server calls itself. */
  label: string
  /** One line about a failed connection or request: what is wrong and what to try. */
  explain(error: Error): string
}
