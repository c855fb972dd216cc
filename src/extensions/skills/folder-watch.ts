import type { FSWatcher } from 'node:fs'

/** Maximum folders that are watched. */
const MAX_WATCHED = 1000

/**
 * Watches folders, each without those in it. A folder is watched anew in each round, before it is read: another one may
 * have taken its place, and nothing is missed in between.
 */
export class FolderWatch {
  readonly #changed: () => void
  #watchers: FSWatcher[] = []
  /** Those of the round before. */
  #before: FSWatcher[] = []
  #failed = false
  #complete = false

  /** `changed` is called when something in a folder has changed, often several times. */
  constructor(changed: () => void) {
    this.#changed = changed
  }

  /** Whether every folder is watched: some file systems cannot be, and the number of watched folders is limited. */
  get complete(): boolean {
    return this.#complete && !this.#failed
  }

  begin(): void {
    this.#before.push(...this.#watchers)
    this.#watchers = []
    this.#failed = false
  }

  add(folder: string): void {
    if (this.#failed) return
    try {
      if (this.#watchers.length === MAX_WATCHED) throw new RangeError('Too many folders')
      const fs = globalThis.process.getBuiltinModule('node:fs')
      const watcher = fs.watch(folder, { persistent: false }, this.#changed)
      this.#watchers.push(watcher)
      watcher.on('error', () => {
        this.#failed = true
        this.#changed()
      })
    } catch {
      this.#failed = true
    }
  }

  end(): void {
    for (const watcher of this.#before.splice(0)) watcher.close()
    this.#complete = true
  }

  close(): void {
    this.begin()
    this.end()
    this.#complete = false
  }
}
