import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { copyFile, open } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { LockFile, LockLost } from './lock-file.js'
import { type TemplateTool, checkTemplateTool } from './template.js'

/** The version of the file format. Other versions are not read. */
const FORMAT = 1
/** Larger files were not written by ccmcp. */
const MAX_BYTES = 16 * 1024 * 1024
/** Non-blocking, so that a pipe in place of the file is not waited for. */
const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

export interface ToolFileOptions {
  /** Receives warnings for the operator. */
  warn: (message: string) => void
  /** Milliseconds to wait for the lock of another process. Less than the five seconds that calls have at shutdown. */
  lockTimeout?: number
  /** Milliseconds after which an unchanged lock counts as left by a killed process. */
  stale?: number
}

/** One change of the file. */
export interface Update {
  /** Returns the tools to save, given the saved ones. */
  change: (saved: readonly TemplateTool[]) => TemplateTool[]
  /** Replaces the saved tools if the file is damaged. */
  ifDamaged: () => readonly TemplateTool[]
  /** Throws if a tool must not be in the file. */
  check: (tool: TemplateTool, index: number) => void
  signal?: AbortSignal | undefined
  /** When the change was requested, as a `performance.now()` time. */
  requestedAt: number
}

interface Content {
  readonly tools: readonly TemplateTool[]
  /** Why a part of the file, or all of it (`damaged`), was not usable. */
  readonly problem?: unknown
  readonly damaged?: true
}

/**
 * Saves registered tools on disk. The file is replaced atomically. A file that
 * cannot be read is copied before it is changed.
 */
export class ToolFile {
  /** The real path. */
  readonly path: string
  readonly #options: Required<ToolFileOptions>

  constructor(path: string, { warn, lockTimeout = 4000, stale = 1500 }: ToolFileOptions) {
    const directory = dirname(resolve(path))
    if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new TypeError(
        `persist: the directory of ${JSON.stringify(path)} does not exist; create it first`,
      )
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat !== undefined && !stat.isFile()) throw notRegular(path)
    this.path =
      stat === undefined ? join(realpathSync(directory), basename(path)) : realpathSync(path)
    this.#options = { warn, lockTimeout, stale }
  }

  /** Loads the tools at start-up. The file is not changed, since another process may be using it. */
  load(check: Update['check']): readonly TemplateTool[] {
    const text = this.#readSync()
    if (text === undefined) return []
    const { tools, problem } = contentOf(text, check)
    if (problem !== undefined)
      this.#options.warn(
        `The registered tools in ${this.path} could not all be read (${messageOf(problem)}); a copy of the file will be made before the next change`,
      )
    return tools
  }

  /** Changes the file under a lock, so that no process undoes the change of another. */
  async update(update: Update): Promise<void> {
    for (;;) {
      try {
        return await this.#update(update)
      } catch (error) {
        // Two processes that remove a stale lock at the same moment may remove the next one as well, and put it back.
        const late = performance.now() > update.requestedAt + this.#options.lockTimeout
        if (!(error instanceof LockLost) || late) throw error
      }
    }
  }

  async #update({ change, ifDamaged, check, signal, requestedAt }: Update): Promise<void> {
    const { lockTimeout, stale } = this.#options
    const lock = await LockFile.acquire(`${this.path}.lock`, {
      stale,
      deadline: requestedAt + lockTimeout,
      signal,
    })
    try {
      signal?.throwIfAborted()
      const text = await this.#read()
      const {
        tools: saved,
        problem,
        damaged,
      }: Content = text === undefined ? { tools: [] } : contentOf(text, check)
      if (problem !== undefined) await this.#backUp(problem)
      const tools = change(damaged === true ? ifDamaged() : saved)
      await lock.replace(this.path, `${JSON.stringify({ version: FORMAT, tools }, undefined, 2)}\n`)
    } catch (error) {
      await lock.release().catch(() => {})
      throw error
    }
  }

  async #read(): Promise<string | undefined> {
    const handle = await open(this.path, READ_FLAGS).catch(undefinedIfMissing)
    if (handle === undefined) return undefined
    try {
      const stat = await handle.stat()
      if (!stat.isFile()) throw notRegular(this.path)
      return stat.size > MAX_BYTES ? '' : await handle.readFile('utf8')
    } finally {
      await handle.close()
    }
  }

  #readSync(): string | undefined {
    let descriptor: number
    try {
      descriptor = openSync(this.path, READ_FLAGS)
    } catch (error) {
      return undefinedIfMissing(error)
    }
    try {
      const stat = fstatSync(descriptor)
      if (!stat.isFile()) throw notRegular(this.path)
      return stat.size > MAX_BYTES ? '' : readFileSync(descriptor, 'utf8')
    } finally {
      closeSync(descriptor)
    }
  }

  async #backUp(problem: unknown): Promise<void> {
    const backup = `${this.path}.damaged-${Date.now()}`
    await copyFile(this.path, backup, constants.COPYFILE_EXCL)
    this.#options.warn(
      `The registered tools in ${this.path} could not all be read (${messageOf(problem)}); a copy was saved as ${backup}`,
    )
  }
}

function contentOf(text: string, check: Update['check']): Content {
  let found: unknown[]
  try {
    found = toolsIn(text)
  } catch (problem) {
    return { tools: [], problem, damaged: true }
  }
  const tools: TemplateTool[] = []
  let problem: unknown
  for (const each of found) {
    try {
      const checked = parseTemplateTool(each)
      checkTemplateTool(checked)
      if (tools.some(({ name }) => name === checked.name))
        throw new TypeError(`duplicate tool ${checked.name}`)
      check(checked, tools.length)
      tools.push(checked)
    } catch (error) {
      problem ??= error
    }
  }
  return { tools, problem }
}

function undefinedIfMissing(error: unknown): undefined {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
}

function notRegular(path: string): TypeError {
  return Object.assign(new TypeError(`persist: ${JSON.stringify(path)} is not a regular file`), {
    code: 'not a regular file',
  })
}

function toolsIn(text: string): unknown[] {
  const content: unknown = JSON.parse(text)
  if (
    typeof content !== 'object' ||
    content === null ||
    !('version' in content) ||
    !('tools' in content)
  )
    throw new TypeError('"version" or "tools" is missing')
  if (content.version !== FORMAT)
    throw new TypeError(
      `unsupported version ${JSON.stringify(content.version)}; expected ${FORMAT}`,
    )
  if (!Array.isArray(content.tools)) throw new TypeError('"tools" is not an array')
  return content.tools
}

function parseTemplateTool(value: unknown): TemplateTool {
  const { name, description, template } = Object(value) as Record<string, unknown> // Object() makes property access safe for any value
  if (typeof name !== 'string' || typeof description !== 'string' || typeof template !== 'string')
    throw new TypeError('a tool lacks a "name", "description" or "template"')
  return { name, description, template }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
