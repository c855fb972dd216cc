import type { CallToolResult } from '../../protocol/model.js'
import type { Caller } from '../call.js'
import { type Resource, resource } from '../define.js'

/* Stores results that are too large for a model for a while; the model gets their beginning, and a link. */

const URI = 'overflow:///{id}'
/** Limits of what is stored; the oldest is evicted first. */
const MAX_BYTES = 64 * 1024 * 1024
const MAX_RESULTS = 1000
const TTL = 600_000
/** Bytes reserved for the note after a preview. */
const NOTE_BYTES = 200

interface StoredResult {
  text: string
  mimeType: string
  /** The principal that may read it. */
  owner: string | undefined
  until: number
  bytes: number
}

export class Overflow {
  readonly #results = new Map<string, StoredResult>()
  #bytes = 0

  /** The resource template by which stored results are read. */
  readonly resource: Resource = resource({
    uri: URI,
    name: 'overflow',
    description: 'Results that were too large to be sent whole. They are kept for ten minutes.',
    read: ({ id }, call) => {
      const kept = this.#results.get(id)
      if (
        kept === undefined ||
        kept.until < performance.now() ||
        kept.owner !== call.client.principal?.id
      )
        return undefined
      return { text: kept.text, mimeType: kept.mimeType }
    },
  })

  /** The result itself if it is small enough; otherwise its beginning, with a link to the whole result. */
  limit(name: string, result: CallToolResult, maxBytes: number, caller: Caller): CallToolResult {
    const whole = wholeOf(result)
    const size =
      sizeOf(JSON.stringify(result.content)) +
      (result.structuredContent === undefined
        ? 0
        : sizeOf(JSON.stringify(result.structuredContent)))
    if (size <= maxBytes) return result
    const uri = this.#store(whole.text, whole.mimeType, caller)
    const bytes = sizeOf(whole.text)
    const link = {
      type: 'resource_link' as const,
      uri,
      name: `The whole result of ${name}`,
      mimeType: whole.mimeType,
      size: bytes,
    }
    const note = `[The result has ${bytes} bytes, more than the ${maxBytes} that are sent. Read the complete result at ${uri}]`
    // The value that the output schema requires is missing: this is not a success.
    if (result.structuredContent !== undefined)
      return { content: [{ type: 'text', text: note }, link], isError: true }
    const preview = beginning(whole.text, maxBytes - NOTE_BYTES)
    return {
      content: [{ type: 'text', text: `${preview}\n${note}` }, link],
      isError: result.isError === true,
    }
  }

  #store(text: string, mimeType: string, caller: Caller): string {
    const id = crypto.randomUUID()
    // V8 needs at most two bytes per character.
    const bytes = 2 * text.length
    this.#results.set(id, {
      text,
      mimeType,
      owner: caller.principal?.id,
      until: performance.now() + TTL,
      bytes,
    })
    this.#bytes += bytes
    for (const [oldest, kept] of this.#results) {
      if (
        oldest === id ||
        (this.#bytes <= MAX_BYTES &&
          this.#results.size <= MAX_RESULTS &&
          kept.until >= performance.now())
      )
        break
      this.#results.delete(oldest)
      this.#bytes -= kept.bytes
    }
    return URI.replace('{id}', id)
  }
}

function wholeOf({ content, structuredContent }: CallToolResult): {
  text: string
  mimeType: string
} {
  if (structuredContent !== undefined)
    return { text: JSON.stringify(structuredContent), mimeType: 'application/json' }
  if (content.every((block) => block.type === 'text'))
    return { text: content.map(({ text }) => text).join('\n'), mimeType: 'text/plain' }
  return { text: JSON.stringify(content), mimeType: 'application/json' }
}

const encoder = new TextEncoder()

function sizeOf(text: string): number {
  return encoder.encode(text).length
}

/** The longest prefix that takes at most so many bytes of JSON, in whole characters. */
function beginning(text: string, bytes: number): string {
  let room = bytes
  while (room > 0) {
    const { read } = encoder.encodeInto(text, new Uint8Array(room))
    const shown = text.slice(0, read)
    const size = sizeOf(JSON.stringify(shown)) - 2
    if (size <= bytes) return shown
    // JSON escapes quotes, line ends and the like.
    room = Math.floor((room * bytes) / size)
  }
  return ''
}
