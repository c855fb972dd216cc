export interface Progress {
  progress: number
  total?: number
  message?: string
}

export interface CallOptions {
  /** Cancels the request. */
  signal?: AbortSignal
  /** Milliseconds without a response or progress (default 60 s). */
  timeout?: number
  /** Milliseconds in total, also with progress (default 10 min). */
  maxTimeout?: number
  /** Requests progress notifications, and is called with each. */
  onProgress?: (progress: Progress) => unknown
}

export interface SessionCallOptions extends CallOptions {
  /** Called if the response is not yet the result: it needs input, or belongs to an extension. */
  onRound?: () => void
}
