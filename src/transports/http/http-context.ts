import type { Budget } from '../../jsonrpc/budget.js'
import type { HttpRequest } from '../../jsonrpc/channel.js'

/** Names and values in turn: what both Node and the web take without a detour. */
export type HeaderList = readonly string[]

/** A body, or why there is none: it is longer than is taken, too much is being read just now, or its nesting is beyond all limits. */
export type Body = Uint8Array | 'too long' | 'too much' | 'too deep'

/** One HTTP request and the way to answer it: all that is needed of a runtime. */
export interface HttpContext {
  readonly method: string
  readonly path: string
  /** The value of a header, whose name is given in small letters. */
  header(name: string): string | undefined
  /** The request as handlers may see it. */
  readonly http: HttpRequest
  /** What different readers could understand differently, in words: a header that may come only once, and came twice. */
  readonly ambiguity: string | undefined
  /** The body, of so many bytes at most, which are taken from the budget until it is whole. Never calls where the client is gone before. */
  read(limit: number, budget: Budget, done: (body: Body) => void): void
  /** Answers whole. */
  answer(status: number, headers: HeaderList, body?: string): void
  /** Answers with what is written from now on. */
  stream(status: number, headers: HeaderList): Sink
  /** Has something done when the client is gone before the answer was complete. One at a time. */
  onGone(gone: (() => void) | undefined): void
}

/** An answer that stays open. */
export interface Sink {
  write(text: string): void
  end(): void
  /** Breaks the connection off: who does not read is not waited for. */
  cut(): void
  /** How many bytes, about, the client has not taken yet. */
  readonly waiting: number
  /** A number that grows whenever the client takes something. */
  readonly taken: number
}
