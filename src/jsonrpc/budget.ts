/** A limit on the bytes held at a time. What is taken also counts in the parent, such as the budget that all sessions share. */
export class Budget {
  readonly max: number
  #parent: Budget | undefined
  #used = 0

  constructor(max: number, parent?: Budget) {
    this.max = max
    this.#parent = parent
  }

  get used(): number {
    return this.#used
  }

  /** Whether this budget or a parent is used up. */
  get full(): boolean {
    return this.#used >= this.max || this.#parent?.full === true
  }

  /** Takes bytes if they fit here and in every parent; otherwise takes none and returns false. */
  take(bytes: number): boolean {
    if (!this.fits(bytes)) return false
    this.charge(bytes)
    return true
  }

  /** Takes bytes even beyond the limit: for what is in memory already. */
  charge(bytes: number): void {
    this.#used += bytes
    this.#parent?.charge(bytes)
  }

  release(bytes: number): void {
    this.charge(-bytes)
  }

  /** Returns everything to the parent and detaches from it. */
  close(): void {
    this.#parent?.release(this.#used)
    this.#parent = undefined
  }

  fits(bytes: number): boolean {
    return this.#used + bytes <= this.max && this.#parent?.fits(bytes) !== false
  }
}

/*
 * Estimates the memory of a message: its text and the objects that JSON.parse makes of it. An empty object is two
 * characters of text and some sixty bytes of heap. The estimate errs on the high side.
 */

/** The bookkeeping of any call in progress, with its signal if the handler listens to it, in bytes. */
const CALL = 3072
/** Shorter messages are not scanned: the number of calls is limited too. */
const SHORT = 512
/** Bytes per `{` or `[`, per `,` and per `:`. */
const CONTAINER = 64
const ELEMENT = 32
const MEMBER = 48

/** The bytes that a call in progress holds: its text and its parsed params. */
export function estimateMemory(frame: string): number {
  if (frame.length <= SHORT) return CALL
  let structure = 0
  let width = 1
  for (let i = 0; i < frame.length; i++) {
    const code = frame.charCodeAt(i)
    if (code > 0xff) width = 2
    else if (code === 0x7b || code === 0x5b) structure += CONTAINER
    else if (code === 0x2c) structure += ELEMENT
    else if (code === 0x3a) structure += MEMBER
  }
  return CALL + 2 * width * frame.length + structure
}

/**
 * A copy that does not share memory. In V8, a slice of a string keeps the whole string alive: a short message would keep
 * the chunk or batch it arrived in.
 */
export function copyString(text: string): string {
  return ` ${text}`.slice(1)
}
