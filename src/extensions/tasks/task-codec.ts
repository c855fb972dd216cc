import type { Cipher } from '../../server/cipher.js'
import type { TaskState } from './task-record.js'

/** The part of a state that is sealed: what the client, the handler and its result say. */
type Secret = Pick<TaskState, 'statusMessage' | 'open' | 'result' | 'error'>

interface Written extends TaskState {
  readonly sealed?: string
}

/** Why a task can be neither shown nor run. */
export const UNREADABLE =
  'The stored task cannot be opened: it was not sealed with one of the "state.keys" of this server'

/** Encodes tasks for a store, as JSON. With a cipher, their contents are encrypted; unencrypted contents are not read. */
export class TaskCodec {
  readonly #cipher: Cipher | undefined

  constructor(cipher?: Cipher) {
    this.#cipher = cipher
  }

  async writeState(name: string, written: TaskState): Promise<string> {
    const { unreadable: _, ...state } = written
    if (this.#cipher === undefined) return JSON.stringify(state)
    const { statusMessage, open, result, error, ...plain } = state
    const secret = JSON.stringify({ statusMessage, open, result, error })
    const sealed = await this.#cipher.encrypt(secret, purposeOf(name, 'state'))
    return JSON.stringify({ ...plain, open: {}, sealed })
  }

  /** The state; without its secret part if it cannot be opened. */
  async readState(name: string, text: string): Promise<TaskState> {
    const { sealed, ...state } = JSON.parse(text) as Written // written by this class
    if (this.#cipher === undefined && sealed === undefined) return state
    const { statusMessage: _, result: __, error: ___, ...plain } = state
    const secret = await this.#cipher?.decrypt(
      sealed ?? '',
      purposeOf(name, 'state'),
      sealed?.length ?? 0,
    )
    if (secret === undefined) return { ...plain, open: {}, unreadable: true }
    return { ...plain, ...(JSON.parse(secret) as Secret) } // nobody else can have sealed it
  }

  async writeEntries(name: string, entries: readonly string[]): Promise<readonly string[]> {
    const cipher = this.#cipher
    if (cipher === undefined) return entries
    return await Promise.all(entries.map((text) => cipher.encrypt(text, purposeOf(name, 'entry'))))
  }

  /** The entries; undefined if one cannot be opened. */
  async readEntries(name: string, texts: readonly string[]): Promise<string[] | undefined> {
    const entries: string[] = []
    for (const text of texts) {
      const entry = await this.#readEntry(name, text)
      if (entry === undefined) return undefined
      entries.push(entry)
    }
    return entries
  }

  #readEntry(name: string, text: string): string | undefined | Promise<string | undefined> {
    // JSON begins with a brace, which is not a character of a sealed text.
    if (this.#cipher === undefined) return text.startsWith('{') ? text : undefined
    return this.#cipher.decrypt(text, purposeOf(name, 'entry'), text.length)
  }
}

/** A sealed text can be opened only as the part of the task for which it was sealed. */
function purposeOf(name: string, part: 'state' | 'entry'): string {
  return `task ${name} ${part}`
}
