import { realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { type Tool, result, tool } from '../index.js'
import type { Files } from './files.js'
import { READ_ONLY } from './hints.js'
import type { Root, RootList } from './roots.js'

/** Concurrent calls per tool. Bounds memory; more would not be faster. */
const CONCURRENCY = 8

export interface FileToolsOptions {
  roots: RootList
  /** Files of the server itself, which callers must not access. */
  protectedFiles: readonly string[]
  warn: (message: string) => void
}

/** The tools for files under the roots. Their implementation is loaded at the first call. */
export function fileTools({ roots, protectedFiles, warn }: FileToolsOptions): Tool[] {
  let files: Promise<Files> | undefined
  const load = () =>
    (files ??= import('./files.js').then(({ Files }) => new Files(roots, { protectedFiles, warn })))
  const path = (what: string) =>
    ({
      type: 'string',
      description: `${what}, relative to the root directory of this server, such as "notes/today.txt", or an absolute path`,
    }) as const
  return [
    tool({
      name: 'read_file',
      title: 'Read file',
      description: 'Read a text file (UTF-8, at most 1 MB).',
      input: { type: 'object', properties: { path: path('The file') }, required: ['path'] },
      annotations: READ_ONLY,
      concurrency: CONCURRENCY,
      run: async ({ path }) => (await load()).read(path),
    }),
    tool({
      name: 'write_file',
      title: 'Write file',
      description: 'Create or replace a text file. Its directory must exist.',
      input: {
        type: 'object',
        properties: {
          path: path('The file'),
          content: { type: 'string', description: 'The complete content of the file' },
        },
        required: ['path', 'content'],
      },
      annotations: {
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: true,
        openWorldHint: false,
      },
      concurrency: CONCURRENCY,
      run: async ({ path, content }) =>
        `Wrote ${await (await load()).write(path, content)} bytes to ${path}`,
    }),
    tool({
      name: 'list_directory',
      title: 'List directory',
      description:
        'List a directory: one entry per line, "F name" for a file and "D name" for a directory.',
      input: {
        type: 'object',
        properties: { path: path('The directory, "." for the root') },
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
          more: { type: 'boolean', description: 'Whether the list is truncated' },
        },
        required: ['entries', 'more'],
      },
      annotations: READ_ONLY,
      concurrency: CONCURRENCY,
      async run({ path }) {
        const { entries, more } = await (await load()).list(path)
        const lines = entries.map(({ type, displayName }) => `${type} ${displayName}`).join('\n')
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

/** Resolves the roots, by default the working directory and the system's temporary directory. Throws a TypeError if one is not a directory. */
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
      `The system's temporary directory, ${JSON.stringify(tmpdir())}, cannot be accessed; the file tools are limited to the working directory`,
    )
    return [working]
  }
}

function rootAt(path: string): Root {
  const given = resolve(path)
  if (statSync(given, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new TypeError(
      `root: ${JSON.stringify(path)} is not a directory; create it, or choose another`,
    )
  return { given, real: realpathSync(given) }
}

function workingDirectory(): string {
  try {
    return process.cwd()
  } catch {
    throw new TypeError(
      'root: the working directory has been removed; start the server in another directory, or set a root',
    )
  }
}
