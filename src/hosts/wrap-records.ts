import { createHash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { isObject } from '../jsonrpc/message.js'
import { writePrivate } from './config-file.js'
import type { Wrapped } from './wrapping.js'

/** The commands that were wrapped in a file, by the ids of their entries. */
export type WrapRecord = Readonly<Record<string, Wrapped>>

/** The folder of records: `$XDG_STATE_HOME/ccmcp/wrapped`. */
export function recordFolder(environment = process.env): string {
  const state = environment['XDG_STATE_HOME'] ?? ''
  const home = isAbsolute(state) ? state : join(homedir(), '.local', 'state')
  return join(home, 'ccmcp', 'wrapped')
}

/** The record of one configuration file, and a copy of the file as it was before the last change. */
export class WrapRecords {
  readonly #folder: string
  readonly #record: string
  /** The copy, for people: commands are restored from the record. */
  readonly backup: string

  constructor(folder: string, path: string) {
    const name = createHash('sha256').update(path).digest('hex').slice(0, 32)
    this.#folder = folder
    this.#record = join(folder, `${name}.json`)
    this.backup = join(folder, `${name}.backup`)
  }

  /** Reads the record. Entries that are missing or invalid are unwrapped by removing the words of the tap. */
  async read(): Promise<WrapRecord> {
    let value: unknown
    try {
      value = JSON.parse(await readFile(this.#record, 'utf8'))
    } catch {
      return {}
    }
    const entries =
      isObject(value) && isObject(value['entries']) ? Object.entries(value['entries']) : []
    return Object.fromEntries(
      entries.filter((entry): entry is [string, Wrapped] => isWrapped(entry[1])),
    )
  }

  /** Called before the configuration is changed. */
  async save(path: string, entries: WrapRecord, original: Buffer): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await writePrivate(this.backup, original)
    await writePrivate(this.#record, Buffer.from(`${JSON.stringify({ path, entries })}\n`))
  }

  /** Called when no command of the file is wrapped. */
  async delete(): Promise<void> {
    await rm(this.#record, { force: true })
    await rm(this.backup, { force: true })
  }
}

function isWrapped(value: unknown): boolean {
  if (!isObject(value) || typeof value['joined'] !== 'boolean') return false
  const { parts } = value
  const isPart = (part: unknown) =>
    isObject(part) && typeof part['before'] === 'string' && typeof part['after'] === 'string'
  return Array.isArray(parts) && parts.every(isPart)
}
