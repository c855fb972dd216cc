import { closeSync, fstatSync, openSync } from 'node:fs'
import { basename } from 'node:path'

/**
 * The capture that the page shows. Its file is opened once: the page reads from the descriptor and cannot name a file.
 * While the newest capture is followed, it is replaced by each newer one.
 */
export class ServedCapture {
  readonly #newest: (() => string | undefined) | undefined
  #path: string | undefined
  #descriptor: number | undefined
  #id = 0

  /** `newest` returns the path of the newest capture, if each newer one is to be shown. */
  constructor(path: string | undefined, newest?: () => string | undefined) {
    this.#newest = newest
    if (path !== undefined) this.#open(path)
  }

  /** Changes with each newer capture; 0 if there is none yet. */
  get id(): number {
    return this.#id
  }

  get name(): string {
    return this.#path === undefined ? '' : basename(this.#path)
  }

  get descriptor(): number | undefined {
    return this.#descriptor
  }

  get size(): number {
    return this.#descriptor === undefined ? 0 : fstatSync(this.#descriptor).size
  }

  /** Opens a newer capture, if there is one. */
  refresh(): void {
    const path = this.#newest?.()
    if (path === undefined || path === this.#path) return
    try {
      this.#open(path)
    } catch {
      // It was deleted since; the next look finds another one.
    }
  }

  #open(path: string): void {
    const descriptor = openSync(path, 'r')
    this.close()
    this.#descriptor = descriptor
    this.#path = path
    this.#id++
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }
}
