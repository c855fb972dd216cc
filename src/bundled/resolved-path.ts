import type { Stats } from 'node:fs'
import { isAbsolute } from 'node:path'
import { ToolError } from '../index.js'
import { type Location, type Roots, segmentsOf } from './roots.js'

/** A directory under a root. */
export interface Directory {
  /** The path of an entry, or of the directory itself, for node:fs. */
  at(name?: string): string
  /** Throws if the opened file is not the entry of this name in this directory. */
  verify(name: string, opened: Stats): Promise<void>
  /** Throws if the directory has been replaced. */
  verifySelf(): Promise<void>
  /** Flushes changes of its entries to disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** The target of a path: a directory (without `name`), or an entry that is not a link. */
export interface ResolvedPath {
  readonly directory: Directory
  readonly name: string | undefined
  /** Undefined if the entry does not exist. */
  readonly stat: Stats | undefined
}

export type Resolve = (location: Location) => Promise<ResolvedPath>

/** Why a path was not resolved. `code` is a system error code or one of ours. */
export class PathError extends Error {
  readonly code: string
  constructor(
    code:
      | 'OUTSIDE'
      | 'PROTECTED_FILE'
      | 'FOREIGN_LINK'
      | 'ELOOP'
      | 'ENOENT'
      | 'ENOTDIR'
      | 'REPLACED'
      | 'UNREADABLE_LINK',
  ) {
    super(code)
    this.code = code
  }
}

const MAX_PATH = 4096

/** The path for a message: quoted, truncated, with control characters escaped. */
export function quoted(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path).replaceAll(
    /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )
}

/** Locates a path that a caller passed, by its text alone: an absolute one under its root, a relative one under the first root. */
export function locationOf(path: string, roots: Roots): Location {
  const invalid = (problem: string) => new ToolError(`${quoted(path)} ${problem}`)
  if (path === '') throw new ToolError('The path is empty; use "." for the root directory')
  if (path.includes('\0')) throw invalid('contains a NUL character')
  if (/\p{Surrogate}/u.test(path)) throw invalid('is not valid Unicode')
  if (Buffer.byteLength(path) > MAX_PATH)
    throw invalid(`is too long; the limit is ${MAX_PATH} bytes`)
  const segments = path.split(/[\\/]/)
  if (segments.includes('..'))
    throw invalid('contains "..", which is not allowed; use a path relative to the root directory')
  if (segments[0] === '~')
    throw invalid(
      'begins with "~", which is not expanded; use a path relative to the root directory',
    )
  const location = isAbsolute(path)
    ? roots.locate(segmentsOf(path))
    : roots.inFirstRoot(segmentsOf(path))
  if (location === undefined) throw invalid(`is outside of ${described(roots)}`)
  return location
}

/** Lists several roots, because only absolute paths reach all of them; does not disclose a single one. */
function described({ given }: Roots): string {
  if (given.length === 1)
    return 'the directory of this server (its --root); use a path from there, such as "notes/today.txt"'
  return `the directories of this server: ${given.map(quoted).join(', ')}`
}
