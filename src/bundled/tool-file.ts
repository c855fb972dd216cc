import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { type TextTool, checkTextTool } from './template.js'

/** The format of the file; a later one is not guessed at. */
const FORMAT = 1
/** No file of ours is larger. */
const MAX_BYTES = 16 * 1024 * 1024
/** Milliseconds: so long the lock of another process is waited for. */
const PATIENCE = 1000
/** Milliseconds: a lock that is so old was left by a process that has died. */
const STALE = 10_000

/**
 * Keeps registered tools on disk. The file is replaced as a whole, so it is
 * never half written; one that cannot be read is set aside under another name.
 */
export class ToolFile {
  readonly #path: string
  readonly #warn: (message: string) => void

  constructor(path: string, warn: (message: string) => void) {
    const directory = dirname(resolve(path))
    if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new TypeError(`persist: the directory of ${JSON.stringify(path)} does not exist; create it first`)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat !== undefined && !stat.isFile()) throw notRegular(path)
    this.#path = stat === undefined ? join(realpathSync(directory), basename(path)) : realpathSync(path)
    this.#warn = warn
  }

  /** What is in the file; undefined where it was damaged. Tools that are not allowed are left out, and the file is set aside as well. */
  load(allowed: (tool: TextTool) => void): TextTool[] | undefined {
    const text = this.#read()
    if (text === undefined) return []
    let tools: unknown[]
    try {
      tools = toolsIn(text)
    } catch (error) {
      this.#setAside(error)
      return undefined
    }
    const good: TextTool[] = []
    let problem: unknown
    for (const tool of tools) {
      try {
        const checked = textTool(tool)
        checkTextTool(checked)
        if (good.some(({ name }) => name === checked.name)) throw new TypeError(`${checked.name} is there twice`)
        allowed(checked)
        good.push(checked)
      } catch (error) {
        problem ??= error
      }
    }
    if (problem !== undefined) {
      this.#setAside(problem)
      this.#save(good)
    }
    return good
  }

  /** Replaces what is kept, one process at a time, so that nobody undoes what another one keeps meanwhile. */
  update(change: (kept: readonly TextTool[]) => TextTool[], ifDamaged: () => TextTool[]): void {
    const lock = `${this.#path}.lock`
    take(lock)
    try {
      this.#save(change(this.load(() => {}) ?? ifDamaged()))
    } finally {
      rmSync(lock, { force: true })
    }
  }

  #save(tools: readonly TextTool[]): void {
    const temporary = `${this.#path}.${process.pid}-${Date.now()}.tmp`
    const text = `${JSON.stringify({ version: FORMAT, tools }, undefined, 2)}\n`
    try {
      const descriptor = openSync(temporary, 'wx', 0o600)
      try {
        writeFileSync(descriptor, text)
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
      renameSync(temporary, this.#path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }

  /** Without waiting, whatever has come in the place of the file: a pipe would hold up the whole server. */
  #read(): string | undefined {
    let descriptor: number
    try {
      descriptor = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
    try {
      const stat = fstatSync(descriptor)
      if (!stat.isFile()) throw notRegular(this.#path)
      return stat.size > MAX_BYTES ? '' : readFileSync(descriptor, 'utf8')
    } finally {
      closeSync(descriptor)
    }
  }

  #setAside(error: unknown): void {
    const aside = `${this.#path}.damaged-${Date.now()}`
    renameSync(this.#path, aside)
    this.#warn(`The registered tools in ${this.#path} could not all be read (${messageOf(error)}); the file is kept as ${aside}`)
  }
}

/** Makes a lock file, when the one that is there is gone. */
function take(lock: string): void {
  const begun = Date.now()
  for (;;) {
    try {
      closeSync(openSync(lock, 'wx', 0o600))
      return
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
      if (age > STALE) rmSync(lock, { force: true })
      else if (Date.now() - begun > PATIENCE) throw Object.assign(new Error('Another process is at it'), { code: 'EBUSY' })
    }
    // Other processes need a few milliseconds each.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
  }
}

function notRegular(path: string): TypeError {
  return Object.assign(new TypeError(`persist: ${JSON.stringify(path)} is not a regular file`), { code: 'not a regular file' })
}

function toolsIn(text: string): unknown[] {
  const content: unknown = JSON.parse(text)
  if (typeof content !== 'object' || content === null || !('version' in content) || !('tools' in content))
    throw new TypeError('it has no "version" and "tools"')
  if (content.version !== FORMAT) throw new TypeError(`its version is ${JSON.stringify(content.version)}, not ${FORMAT}`)
  if (!Array.isArray(content.tools)) throw new TypeError('"tools" is not a list')
  return content.tools
}

function textTool(value: unknown): TextTool {
  const { name, description, template } = Object(value) as Record<string, unknown> // any value has properties, if only missing ones
  if (typeof name !== 'string' || typeof description !== 'string' || typeof template !== 'string')
    throw new TypeError('a tool has no "name", "description" and "template"')
  return { name, description, template }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
