import type { Stats } from 'node:fs'
import { isAbsolute } from 'node:path'
import { ToolError } from '../index.js'
import { type Location, type Roots, namesOf } from './roots.js'

/** A directory that was found beneath a root. */
export interface Directory {
  /** The path of one of its entries, or its own, for the functions of node:fs. */
  at(name?: string): string
  /** Throws where the entry that was opened is not the one with this name in this directory. */
  verify(name: string, opened: Stats): Promise<void>
  /** Throws where the directory is not the one that was found. */
  verifySelf(): Promise<void>
  /** Makes changes of its entries last. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** What a path leads to: an entry that is no link, or (without a name) a directory. */
export interface Place {
  readonly directory: Directory
  readonly name: string | undefined
  /** Undefined where there is nothing of that name yet. */
  readonly stat: Stats | undefined
}

export type Find = (location: Location) => Promise<Place>

/** Why a path was not followed; `code` is the system's or one of ours. */
export class PathProblem extends Error {
  readonly code: string
  constructor(
    code:
      | 'OUTSIDE'
      | 'OWN_FILE'
      | 'FOREIGN_LINK'
      | 'ELOOP'
      | 'ENOENT'
      | 'ENOTDIR'
      | 'SWAPPED'
      | 'UNREADABLE_LINK',
  ) {
    super(code)
    this.code = code
  }
}

const MAX_PATH = 4096

/** The path as it may be shown: in quotes, nothing in it that steers a terminal, and not too long. */
export function quoted(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path).replaceAll(
    /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )
}

/** Where a caller's path leads: an absolute one from the root that it names, any other from the first. Only the text is looked at. */
export function locationOf(path: string, roots: Roots): Location {
  const refuse = (problem: string) => new ToolError(`${quoted(path)} ${problem}`)
  if (path === '') throw new ToolError('The path is empty; use "." for the top directory')
  if (path.includes('\0')) throw refuse('has a NUL character, which no path can have')
  if (/\p{Surrogate}/u.test(path)) throw refuse('is not valid Unicode')
  if (Buffer.byteLength(path) > MAX_PATH)
    throw refuse(`is too long; at most ${MAX_PATH} bytes are taken`)
  const written = path.split(/[\\/]/)
  if (written.includes('..'))
    throw refuse('has a ".." in it, which is not allowed; name the path from the top directory')
  if (written[0] === '~')
    throw refuse(
      'begins with "~", which stands for nothing here; name the path from the top directory',
    )
  const location = isAbsolute(path) ? roots.locate(namesOf(path)) : roots.fromFirst(namesOf(path))
  if (location === undefined) throw refuse(`is outside of ${described(roots)}`)
  return location
}

/** With several roots a caller must know their names, since only absolute paths lead to all of them. A single one need not be known. */
function described({ given }: Roots): string {
  if (given.length === 1)
    return 'the directory that this server works in (its --root); name a path from there, such as "notes/today.txt"'
  return `the directories that this server works in: ${given.map(quoted).join(', ')}`
}
