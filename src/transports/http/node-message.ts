/*
 * What is needed of Node's request and response. Described here and not imported, so that those of node:http, of
 * node:https, of the compatibility API of node:http2 and of frameworks all fit, and nobody needs Node's types.
 */

export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly rawHeaders: readonly string[]
  readonly socket: { destroy(): unknown }
  /** Whether somebody has read of the body, and whether to its end. */
  readonly readableDidRead: boolean
  readonly readableEnded: boolean
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown
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
  /** Of HTTP/2, whose response does not tell that it was destroyed. */
  readonly stream?: { readonly destroyed: boolean }
  /** Null while the answers to earlier requests of the connection are not complete. */
  readonly socket: { readonly bytesWritten: number } | null | undefined
  setHeader(name: string, value: string): unknown
  writeHead(status: number): unknown
  flushHeaders?(): unknown
  write(text: string): unknown
  end(text: string): unknown
  end(): unknown
  destroy(): unknown
  on(event: 'close' | 'error', listener: () => void): unknown
  once(event: 'close' | 'socket', listener: () => void): unknown
}
