import { realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { type Tool, result, tool } from '../index.js'
import type { Files } from './files.js'
import type { Root, RootList } from './roots.js'

/** So many calls of each tool run at once, which bounds the memory they take; more would not be faster. */
const AT_ONCE = 8

export interface FileToolsOptions {
  roots: RootList
  /** Files that belong to the server itself, and to no caller. */
  own: readonly string[]
  warn: (message: string) => void
}

/** The tools that work on files beneath the roots; they load what they need when they are first called. */
export function fileTools({ roots, own, warn }: FileToolsOptions): Tool[] {
  let files: Promise<Files> | undefined
  const ready = () =>
    (files ??= import('./files.js').then(({ Files }) => new Files(roots, { own, warn })))
  const path = (what: string) =>
    ({
      type: 'string',
      description: `${what}, from the top directory of this server, such as "notes/today.txt", or an absolute path`,
    }) as const
  return [
    tool({
      name: 'read_file',
      description: 'Read a text file (UTF-8, at most 1 MB).',
      input: { type: 'object', properties: { path: path('The file') }, required: ['path'] },
      annotations: { readOnlyHint: true, openWorldHint: false },
      concurrency: AT_ONCE,
      run: async ({ path }) => (await ready()).read(path),
    }),
    tool({
      name: 'write_file',
      description: 'Write a text file, new or in place of an old one. Its directory must exist.',
      input: {
        type: 'object',
        properties: {
          path: path('The file'),
          content: { type: 'string', description: 'All that is to be in it' },
        },
        required: ['path', 'content'],
      },
      annotations: {
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: true,
        openWorldHint: false,
      },
      concurrency: AT_ONCE,
      run: async ({ path, content }) =>
        `Wrote ${await (await ready()).write(path, content)} bytes to ${path}`,
    }),
    tool({
      name: 'list_directory',
      description:
        'List a directory: one entry a line, "F name" for a file and "D name" for a directory.',
      input: {
        type: 'object',
        properties: { path: path('The directory, "." for the top one') },
        required: ['path'],
      },
      output: {
        type: 'object',
        properties: {
          entries: {
            type: 'array',
            items: {
              type: 'object',
              properties: { type: { enum: ['F', 'D'] }, name: { type: 'string' } },
              required: ['type', 'name'],
            },
          },
          more: { type: 'boolean', description: 'Whether there are more entries than are listed' },
        },
        required: ['entries', 'more'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
      concurrency: AT_ONCE,
      async run({ path }) {
        const { entries, more } = await (await ready()).list(path)
        const lines = entries.map(({ type, shown }) => `${type} ${shown}`).join('\n')
        return result({
          value: { entries: entries.map(({ type, name }) => ({ type, name })), more },
          content: more
            ? [lines, `Only the first ${entries.length} entries are listed; there are more.`]
            : lines,
        })
      },
    }),
  ]
}

/** The directories to work in, by default the working directory and that for temporary files. Throws a TypeError where one is none. */
export function rootsAt(
  paths: readonly string[] | undefined,
  warn: (message: string) => void,
): RootList {
  const [first, ...others] = paths ?? []
  if (first !== undefined) return [rootAt(first), ...others.map(rootAt)]
  const working = rootAt(workingDirectory())
  try {
    return [working, rootAt(tmpdir())]
  } catch {
    warn(
      `The directory for temporary files, ${JSON.stringify(tmpdir())}, cannot be used; the file tools work in the working directory alone`,
    )
    return [working]
  }
}

function rootAt(path: string): Root {
  const given = resolve(path)
  if (statSync(given, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new TypeError(
      `root: ${JSON.stringify(path)} is not a directory; create it, or name another one`,
    )
  return { given, real: realpathSync(given) }
}

function workingDirectory(): string {
  try {
    return process.cwd()
  } catch {
    throw new TypeError(
      'root: the working directory has been removed; start the server elsewhere, or name a root',
    )
  }
}
