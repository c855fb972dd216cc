import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import {
  type CaptureHeader,
  CaptureReader,
  type CaptureRecord,
  headerProblem,
  piecesOf,
} from '../capture/format.js'
import { UsageError } from './options.js'
import { fileProblem } from './print.js'

const READ_BYTES = 256 * 1024

/** A capture file. */
export class CaptureSource {
  readonly #path: string
  readonly #reader = new CaptureReader()
  #header: CaptureHeader | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** When the capture began, in milliseconds; known after the first record. */
  get startedAt(): number {
    return Date.parse(this.#header?.startedAt ?? '')
  }

  /** Lines that are damaged. */
  get unreadable(): number {
    return this.#reader.unreadable
  }

  /** The records of the file, with large chunks in parts; undefined whenever its end is reached, since more may follow. */
  *records(): Generator<CaptureRecord | undefined> {
    const descriptor = this.#open()
    try {
      const buffer = new Uint8Array(READ_BYTES)
      for (;;) {
        const size = readSync(descriptor, buffer)
        for (const record of this.#reader.push(buffer.subarray(0, size))) {
          this.#check(record)
          yield* piecesOf(record)
        }
        if (size === 0) yield undefined
      }
    } finally {
      closeSync(descriptor)
    }
  }

  /** Nothing follows: the last record, if it has no newline. */
  end(): CaptureRecord[] {
    const records = this.#reader.end()
    this.#check(records[0])
    return records.flatMap((record) => [...piecesOf(record)])
  }

  #open(): number {
    let descriptor: number
    try {
      descriptor = openSync(this.#path, 'r')
    } catch (error) {
      throw new UsageError(fileProblem('read', this.#path, error))
    }
    if (!fstatSync(descriptor).isDirectory()) return descriptor
    closeSync(descriptor)
    throw new UsageError(fileProblem('read', this.#path, 'it is a directory; name a capture in it'))
  }

  #check(first: CaptureRecord | undefined): void {
    if (this.#header !== undefined) return
    const problem = headerProblem(first)
    if (problem !== undefined) throw new UsageError(fileProblem('read', this.#path, problem))
    if (first?.type === 'capture') this.#header = first
  }
}
