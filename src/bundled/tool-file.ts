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
import { LockFile } from './lock-file.js'
import { type TextTool, checkTextTool } from './template.js'

/** The format of the file; a later one is not guessed at. */
const FORMAT = 1
/** No file of ours is larger. */
const MAX_BYTES = 16 * 1024 * 1024
/** A pipe that has come in the place of the file must not be waited for. */
const READING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

export interface ToolFileOptions {
  /** Takes what whoever runs the server should know. */
  warn: (message: string) => void
  /** Milliseconds that a change waits for the lock of another process. A server that ends gives its calls five seconds. */
  patience?: number
  /** Milliseconds after which an untouched lock is that of a killed process. */
  stale?: number
}

/** How one change is made. */
export interface Update {
  /** The tools to keep, made from those that are kept now. */
  change: (kept: readonly TextTool[]) => TextTool[]
  /** What is kept now, where the file is damaged. */
  ifDamaged: () => readonly TextTool[]
  /** Throws where a tool must not be in the file. */
  allowed: (tool: TextTool, index: number) => void
  signal?: AbortSignal | undefined
  /** When the caller asked for it, by `performance.now()`. */
  since: number
}

interface Content {
  readonly tools: readonly TextTool[]
  /** Why a part of the file, or all of it (`damaged`), could not be used. */
  readonly problem?: unknown
  readonly damaged?: true
}

/**
 * Keeps registered tools on disk. The file is replaced as a whole, so it is
 * never half written; before a change, one that cannot be read is copied aside.
 */
export class ToolFile {
  /** Its absolute path, without links. */
  readonly path: string
  readonly #options: Required<ToolFileOptions>

  constructor(path: string, { warn, patience = 4000, stale = 1500 }: ToolFileOptions) {
    const directory = dirname(resolve(path))
    if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new TypeError(
        `persist: the directory of ${JSON.stringify(path)} does not exist; create it first`,
      )
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat !== undefined && !stat.isFile()) throw notRegular(path)
    this.path =
      stat === undefined ? join(realpathSync(directory), basename(path)) : realpathSync(path)
    this.#options = { warn, patience, stale }
  }

  /** The tools in the file, for the start of a server. Nothing is changed: another process may be using the file. */
  load(allowed: Update['allowed']): readonly TextTool[] {
    const text = this.#readSync()
    if (text === undefined) return []
    const { tools, problem } = contentOf(text, allowed)
    if (problem !== undefined)
      this.#options.warn(
        `The registered tools in ${this.path} could not all be read (${messageOf(problem)}); the next change keeps a copy of the file`,
      )
    return tools
  }

  /** Replaces what is kept, one process at a time, so that no process undoes the change of another. */
  async update({ change, ifDamaged, allowed, signal, since }: Update): Promise<void> {
    const { patience, stale } = this.#options
    const lock = await LockFile.take(`${this.path}.lock`, {
      stale,
      deadline: since + patience,
      signal,
    })
    try {
      signal?.throwIfAborted()
      const text = await this.#read()
      const {
        tools: kept,
        problem,
        damaged,
      }: Content = text === undefined ? { tools: [] } : contentOf(text, allowed)
      if (problem !== undefined) await this.#copyAside(problem)
      const tools = change(damaged === true ? ifDamaged() : kept)
      await lock.replace(this.path, `${JSON.stringify({ version: FORMAT, tools }, undefined, 2)}\n`)
    } catch (error) {
      await lock.release().catch(() => {})
      throw error
    }
  }

  async #read(): Promise<string | undefined> {
    const handle = await open(this.path, READING).catch(missing)
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
      descriptor = openSync(this.path, READING)
    } catch (error) {
      return missing(error)
    }
    try {
      const stat = fstatSync(descriptor)
      if (!stat.isFile()) throw notRegular(this.path)
      return stat.size > MAX_BYTES ? '' : readFileSync(descriptor, 'utf8')
    } finally {
      closeSync(descriptor)
    }
  }

  async #copyAside(problem: unknown): Promise<void> {
    const aside = `${this.path}.damaged-${Date.now()}`
    await copyFile(this.path, aside, constants.COPYFILE_EXCL)
    this.#options.warn(
      `The registered tools in ${this.path} could not all be read (${messageOf(problem)}); a copy of the file is ${aside}`,
    )
  }
}

function contentOf(text: string, allowed: Update['allowed']): Content {
  let found: unknown[]
  try {
    found = toolsIn(text)
  } catch (problem) {
    return { tools: [], problem, damaged: true }
  }
  const tools: TextTool[] = []
  let problem: unknown
  for (const each of found) {
    try {
      const checked = textTool(each)
      checkTextTool(checked)
      if (tools.some(({ name }) => name === checked.name))
        throw new TypeError(`${checked.name} is there twice`)
      allowed(checked, tools.length)
      tools.push(checked)
    } catch (error) {
      problem ??= error
    }
  }
  return { tools, problem }
}

function missing(error: unknown): undefined {
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
    throw new TypeError('it has no "version" and "tools"')
  if (content.version !== FORMAT)
    throw new TypeError(`its version is ${JSON.stringify(content.version)}, not ${FORMAT}`)
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
