import type { StreamEvent } from '../../../framing/event-stream.js'

const DEFAULT_RETRY = 1000
/** So that `retry: 0` does not make the client reconnect in a tight loop. */
const MIN_RETRY = 100
const MAX_BACKOFF = 60_000
/** Longer timers fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1
/** Maximum bytes of an event id: servers limit the size of headers. */
const MAX_ID = 4096

/** Where and when to resume a stream. */
export class StreamPosition {
  /** The value of `Last-Event-ID`. */
  id: string | undefined
  #retry = DEFAULT_RETRY

  read({ id, retry }: StreamEvent): void {
    if (id !== undefined) this.id = headerValue(id)
    if (retry !== undefined) this.#retry = Math.max(retry, MIN_RETRY)
  }

  /** Milliseconds until the next attempt, growing with each failure. Jitter only lengthens the server's `retry`. */
  delay(failures: number): number {
    const backoff =
      failures === 0 ? 0 : Math.min(MAX_BACKOFF, DEFAULT_RETRY * 2 ** Math.min(failures - 1, 10))
    const delay = Math.max(this.#retry, backoff)
    return Math.min(delay * (1 + Math.random() / 4), LONGEST_TIMER)
  }
}

/**
 * An event id as the value of a header: its UTF-8 bytes. Undefined if it cannot be sent; then the stream cannot be
 * resumed. An empty id resets the last one.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#the-last-event-id-header
 */
function headerValue(id: string): string | undefined {
  if (id === '' || id.length > MAX_ID) return undefined
  const bytes = new TextEncoder().encode(id)
  const sendable = bytes.length <= MAX_ID && bytes.every((byte) => byte >= 0x20 && byte !== 0x7f)
  return sendable ? String.fromCharCode(...bytes) : undefined
}

/** Whether a later attempt may succeed. */
export function isTemporary(status: number): boolean {
  return status === 408 || status === 429 || status >= 500
}
