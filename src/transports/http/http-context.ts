import type { Budget } from '../../jsonrpc/budget.js'
import type { HttpRequest } from '../../jsonrpc/channel.js'

/** Names and values in turn, as Node's `writeHead` takes them. */
export type HeaderList = readonly string[]

/** A body that was not read: longer than `limit`, beyond the budget of all bodies, or nested too deeply. */
export interface UnreadBody {
  readonly problem: 'too long' | 'too much' | 'too deep'
}

/** One HTTP request and its response, independent of the runtime. */
export interface HttpContext {
  readonly method: string
  readonly path: string
  /** The path and query that the client has sent. A framework may have removed a prefix from `path`. */
  readonly target: string
  /** The value of a header; `name` is in lower case. */
  header(name: string): string | undefined
  /** All headers, with credentials; names are in lower case. */
  headers(): Iterable<readonly [name: string, value: string]>
  /** The request as handlers see it. */
  readonly http: HttpRequest
  /** Why the headers are ambiguous, such as a repeated header that must occur once; undefined if they are not. */
  readonly ambiguity: string | undefined
  /** Reads the body, of at most `limit` bytes, which count against `budget` until it is complete. `done` is not called if the client disconnects. */
  read(limit: number, budget: Budget, done: (body: Uint8Array | UnreadBody) => void): void
  /** Sends a complete response. */
  respond(status: number, headers: HeaderList, body?: string): void
  /** Starts a streamed response. */
  stream(status: number, headers: HeaderList): Sink
  /** Sets the only listener for a client that disconnects before the response is complete. */
  onDisconnect(listener: (() => void) | undefined): void
}

/** The body of a streamed response. */
export interface Sink {
  write(text: string): void
  end(): void
  /** Closes the connection without completing the response. */
  destroy(): void
  /** Sets the only listener for a client that has read everything that was unsent. */
  onDrain(listener: () => void): void
  /** Bytes that were written and not yet sent to the client, approximately. */
  readonly unsentBytes: number
  /** Increases whenever the client reads. */
  readonly sentBytes: number
}
