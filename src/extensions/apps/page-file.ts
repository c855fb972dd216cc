/** Reads a file again only if it has changed. */
export class PageFile {
  readonly path: string
  readonly #maxBytes: number
  readonly #fs: typeof import('node:fs')
  #version = ''
  #text = ''

  /** Throws if there is no file system. */
  constructor(file: string | URL, maxBytes: number) {
    const builtin = globalThis.process?.getBuiltinModule
    const fs = builtin?.('node:fs')
    if (builtin === undefined || fs === undefined)
      throw new Error('this runtime has no file system; pass the page as "html"')
    this.path =
      file instanceof URL
        ? builtin('node:url').fileURLToPath(file)
        : builtin('node:path').resolve(file)
    this.#maxBytes = maxBytes
    this.#fs = fs
  }

  /** The text of the file, in one piece: a change while it is read is found the next time. */
  read(): string {
    const { constants, openSync, closeSync, fstatSync } = this.#fs
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    const descriptor = openSync(this.path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      const stat = fstatSync(descriptor, { bigint: true })
      if (!stat.isFile()) throw new Error('it is not a regular file')
      const version = [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ')
      if (version === this.#version) return this.#text
      this.#text = this.#decode(descriptor, Number(stat.size))
      this.#version = version
      return this.#text
    } finally {
      closeSync(descriptor)
    }
  }

  #decode(descriptor: number, size: number): string {
    // One byte more, since the file may grow: then it is too large, or read again the next time.
    const bytes = new Uint8Array(Math.min(size, this.#maxBytes) + 1)
    let length = 0
    while (length < bytes.length) {
      const count = this.#fs.readSync(descriptor, bytes, length, bytes.length - length, length)
      if (count === 0) break
      length += count
    }
    if (length > this.#maxBytes)
      throw new Error(
        `it has more than ${this.#maxBytes} bytes; make it smaller or raise "maxBytes"`,
      )
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length))
    } catch {
      throw new Error('it is not UTF-8; save it in this encoding')
    }
  }
}
