/*
 * The members of Node's request and response that are used here. Declared and not imported, so that those of node:http,
 * node:https, the compatibility API of node:http2 and frameworks are all assignable, without @types/node.
 */

/** `BufferEncoding` of @types/node. */
type TextEncodingName =
  | 'ascii'
  | 'utf8'
  | 'utf-8'
  | 'utf16le'
  | 'utf-16le'
  | 'ucs2'
  | 'ucs-2'
  | 'base64'
  | 'base64url'
  | 'latin1'
  | 'binary'
  | 'hex'

export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** The URL before a framework such as Express has removed a prefix from it. */
  readonly originalUrl?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly rawHeaders: readonly string[]
  readonly socket: {
    destroy(): unknown
    readonly remoteAddress?: string | undefined
    readonly remotePort?: number | undefined
  }
  /** Whether other code has read from the body, and whether to its end. */
  readonly readableDidRead: boolean
  readonly readableEnded: boolean
  /** Set by `setEncoding`: then `data` has strings. */
  readonly readableEncoding?: TextEncodingName | null
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  on(event: 'end' | 'close' | 'error', listener: () => void): unknown
  destroy(): unknown
}

export interface NodeResponse {
  readonly headersSent: boolean
  readonly writableEnded: boolean
  readonly writableFinished: boolean
  readonly writableLength: number
  readonly destroyed?: boolean
  readonly closed?: boolean
  /** Only in HTTP/2, where the response has no `destroyed`. */
  readonly stream?: { readonly destroyed: boolean }
  /** Null while earlier responses of a pipelined connection are incomplete. */
  readonly socket: { readonly bytesWritten: number } | null | undefined
  setHeader(name: string, value: string): unknown
  writeHead(status: number): unknown
  flushHeaders?(): unknown
  write(text: string): unknown
  end(text: string): unknown
  end(): unknown
  destroy(): unknown
  on(event: 'close' | 'error' | 'drain', listener: () => void): unknown
  once(event: 'close' | 'socket', listener: () => void): unknown
}
