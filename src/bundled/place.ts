import type { Stats } from 'node:fs'
import { isAbsolute, relative, sep } from 'node:path'
import { ToolError } from '../index.js'

/** The directory that a server works in: its name without links, and as it was given. */
export interface Root {
  readonly real: string
  readonly given: string
}

/** A directory that was found beneath the root. */
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

export type Find = (parts: readonly string[]) => Promise<Place>

/** Why a path was not followed; `code` is the system's or one of ours. */
export class PathProblem extends Error {
  readonly code: string
  constructor(code: 'OUTSIDE' | 'ELOOP' | 'ENOENT' | 'ENOTDIR' | 'SWAPPED' | 'UNREADABLE_LINK') {
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

/** A caller's path in parts beneath the root. Only the text is looked at: what is there is for the walk. */
export function partsOf(path: string, root: Root): string[] {
  const refuse = (problem: string) => new ToolError(`${quoted(path)} ${problem}`)
  if (path === '') throw new ToolError('The path is empty; use "." for the top directory')
  if (path.includes('\0')) throw refuse('has a NUL character, which no path can have')
  if (/\p{Surrogate}/u.test(path)) throw refuse('is not valid Unicode')
  if (Buffer.byteLength(path) > MAX_PATH) throw refuse(`is too long; at most ${MAX_PATH} bytes are taken`)
  const written = path.split(/[\\/]/)
  if (written.includes('..')) throw refuse('has a ".." in it, which is not allowed; name the path from the top directory')
  if (written[0] === '~') throw refuse('begins with "~", which stands for nothing here; name the path from the top directory')
  const inside = beneath(path, root)
  if (inside === undefined) throw refuse('is outside of the directory that this server works in (its --root)')
  return inside
}

/** The parts of a path beneath the root; undefined where an absolute path names something else. */
export function beneath(path: string, root: Root): string[] | undefined {
  const split = (text: string) => text.split(sep).filter((part) => part !== '' && part !== '.')
  if (!isAbsolute(path)) return sep === '/' ? split(path) : split(path.replaceAll('/', sep))
  for (const each of [root.real, root.given]) {
    const rest = relative(each, path)
    if (!isAbsolute(rest) && rest.split(sep)[0] !== '..') return split(rest)
  }
  return undefined
}
