import { withCode } from '../../jsonrpc/errors.js'
import { nextTurn } from '../../runtime.js'
import { FolderWatch } from './folder-watch.js'
import { type FrontMatter, type Skill, MAX_BYTES, SKILL_FILE, digestOf } from './skill.js'
import { type FileContents, FileChangedError } from './skill-folder.js'
import { pathKey } from './skill-path.js'
import { type FoundSkill, type SkillFile, type Snapshot, SkillScan } from './skill-scan.js'
import { unref } from '../../runtime.js'

/** Milliseconds after which a snapshot is refreshed when it is used: file watchers do not report every change. */
const RECHECK = 5000
/** Milliseconds to wait after the first reported change, because changes come in groups. */
const SETTLE = 50
/** The pause between two scans, as a multiple of the duration of a scan. */
const PAUSE_FACTOR = 4
/** Milliseconds that a file must be unchanged before its digest is kept: file systems have coarse clocks. */
const QUIET = 2000
/** Maximum files that are read at the same time. */
const MAX_READING = 4

interface Digest {
  readonly identity: string
  readonly digest: string
}

interface CatalogObserver {
  /** Called after the folders were looked at, also if nothing has changed. */
  checked(before: Snapshot, now: Snapshot): void
  /** Called with what `checked` throws. */
  failed(error: unknown): void
}

/** The skills of some folders, as they are now. */
export class SkillCatalog {
  readonly #folders: readonly string[]
  #snapshot: Snapshot
  #checkedAt = performance.now()
  /** Milliseconds that it took. */
  #checkTime = 0
  /** Whether a change was reported since the folders were looked at. */
  #dirty = true
  #refreshing: Promise<void> | undefined
  /** By key of the file. */
  readonly #digests = new Map<string, Digest>()
  readonly #hashing = new Map<string, Promise<string>>()
  #reading = 0
  readonly #waiting: (() => void)[] = []
  readonly #watch = new FolderWatch(() => this.#reported())
  #timer: ReturnType<typeof setTimeout> | undefined
  #polling: ReturnType<typeof setInterval> | undefined
  #observer: CatalogObserver | undefined

  /** Throws if something in the folders is not valid. */
  constructor(folders: readonly string[]) {
    this.#folders = folders
    const scan = new SkillScan(folders)
    while (scan.step());
    this.#snapshot = scan.finish()
    const { problems } = this.#snapshot
    if (problems.length > 0)
      throw withCode('INVALID_SKILL', new TypeError(`skills: ${problems.join('\n  ')}`))
  }

  /** What was found last. */
  get snapshot(): Snapshot {
    return this.#snapshot
  }

  /** Begins to watch the folders. */
  start(observer: CatalogObserver): void {
    this.#observer = observer
    // A scan that began earlier does not watch the folders: scan again.
    if (this.#refreshing === undefined) this.#refresh()
    else this.#reported()
  }

  stop(): void {
    this.#observer = undefined
    this.#watch.close()
    clearTimeout(this.#timer)
    clearInterval(this.#polling)
    this.#timer = undefined
    this.#polling = undefined
  }

  /** The skills as they are now: looks again if something may have changed. */
  async current(): Promise<Snapshot> {
    const pause = this.#watch.complete ? RECHECK : PAUSE_FACTOR * this.#checkTime
    if (this.#dirty || performance.now() - this.#checkedAt > pause) this.#refresh()
    await this.#refreshing
    return this.#snapshot
  }

  /** The entry of a skill, with its digests; undefined if its files have changed since it was found. */
  async entryOf({ uri, frontmatter, files }: FoundSkill): Promise<Skill | undefined> {
    const resources = []
    for (const file of files)
      try {
        const digest = await this.#digest(file)
        resources.push({ uri: file.uri, digest, size: file.identity.size })
      } catch (error) {
        if (!(error instanceof FileChangedError)) throw error
        this.#dirty = true
        return undefined
      }
    return { uri, frontmatter, resources }
  }

  /** The contents of a file. Throws a `FileChangedError` if it is gone, or keeps changing. */
  async read({ folder, real }: SkillFile): Promise<FileContents> {
    await this.#enter()
    try {
      return await folder.read(real, MAX_BYTES)
    } catch (error) {
      if (error instanceof FileChangedError) this.#dirty = true
      throw error
    } finally {
      this.#leave()
    }
  }

  #digest(file: SkillFile): string | Promise<string> {
    const key = pathKey(file.path)
    const known = this.#digests.get(key)
    if (known?.identity === file.identity.text) return known.digest
    const hashing = `${file.identity.text} ${key}`
    const before = this.#hashing.get(hashing)
    if (before !== undefined) return before
    const digest = this.#hash(file, key).finally(() => this.#hashing.delete(hashing))
    this.#hashing.set(hashing, digest)
    return digest
  }

  async #hash(file: SkillFile, key: string): Promise<string> {
    const now = Date.now()
    const { bytes, identity } = await this.read(file)
    if (identity.text !== file.identity.text) throw new FileChangedError('It has changed')
    const digest = await digestOf(bytes)
    if (now - identity.changedAt > QUIET)
      this.#digests.set(key, { identity: identity.text, digest })
    return digest
  }

  async #enter(): Promise<void> {
    if (this.#reading < MAX_READING) this.#reading++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#reading--
    else next()
  }

  #refresh(): void {
    this.#refreshing ??= this.#scan().finally(() => {
      this.#refreshing = undefined
    })
  }

  async #scan(): Promise<void> {
    const began = performance.now()
    this.#dirty = false
    this.#watch.begin()
    const scan = new SkillScan(this.#folders, this.#knownFrontMatter(), (folder) => {
      if (this.#observer !== undefined) this.#watch.add(folder)
    })
    while (scan.step()) await new Promise<void>((resolve) => void nextTurn(resolve))
    const before = this.#snapshot
    const now = scan.finish()
    this.#snapshot = now
    this.#checkedAt = performance.now()
    this.#checkTime = this.#checkedAt - began
    for (const key of this.#digests.keys()) if (!now.files.has(key)) this.#digests.delete(key)
    if (this.#observer === undefined) return this.#watch.close()
    this.#watch.end()
    this.#poll()
    try {
      this.#observer.checked(before, now)
    } catch (error) {
      this.#observer.failed(error)
    }
  }

  /** If folders cannot be watched, they are scanned periodically. */
  #poll(): void {
    clearInterval(this.#polling)
    this.#polling = undefined
    if (this.#watch.complete) return
    this.#polling = setInterval(() => this.#refresh(), RECHECK)
    unref(this.#polling)
  }

  /** The front matter of files that have not changed for a while. */
  #knownFrontMatter(): ReadonlyMap<string, FrontMatter> {
    const known = new Map<string, FrontMatter>()
    const { skills, files } = this.#snapshot
    for (const { path, frontmatter } of skills.values()) {
      const file = files.get(pathKey(`${path}/${SKILL_FILE}`))
      if (file !== undefined && this.#checkedAt - file.identity.changedAt > QUIET)
        known.set(file.identity.text, frontmatter)
    }
    return known
  }

  #reported(): void {
    this.#dirty = true
    if (this.#observer === undefined) return
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        this.#refresh()
      },
      SETTLE + PAUSE_FACTOR * this.#checkTime,
    )
    unref(this.#timer)
  }
}
