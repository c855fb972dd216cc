import { statSync } from 'node:fs'
import type { Server, ServerOptions } from '../index.js'
import { UsageError, listOf, pathsOf, suggestion } from './options.js'
import { DEFAULT_SERVER } from './servers.js'
import { protectedTokens } from './token-path.js'

/** The settings of a server that is started from the command line. */
export interface Settings extends Pick<
  ServerOptions,
  'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'
> {
  roots?: string[]
  readOnly?: boolean
  persist?: string
  protectedFiles?: string[]
}

/** Options whose files the file tools must not access. */
const PROTECTED_FILES = ['log-file', 'capture', 'tokens', 'tls-cert', 'tls-key'] as const

export function settingsOf(values: ReadonlyMap<string, string>, name: string): Settings {
  const settings: Settings = {}
  // Each of these was checked against the option's values.
  const unsupportedRevision = values.get('unsupported-revision') as Settings['unsupportedRevision']
  const invalidArguments = values.get('invalid-arguments') as Settings['invalidArguments']
  const unexpectedErrors = values.get('unexpected-errors') as Settings['unexpectedErrors']
  if (unsupportedRevision !== undefined) settings.unsupportedRevision = unsupportedRevision
  if (invalidArguments !== undefined) settings.invalidArguments = invalidArguments
  if (unexpectedErrors !== undefined) settings.unexpectedErrors = unexpectedErrors
  if (name !== DEFAULT_SERVER) return settings
  const [root, persist] = [values.get('root'), values.get('persist')]
  if (root !== undefined) settings.roots = pathsOf(root).map(checkDirectory)
  if (persist !== undefined) settings.persist = persist
  if (values.has('read-only')) settings.readOnly = true
  const named = PROTECTED_FILES.flatMap((option) => values.get(option) ?? [])
  settings.protectedFiles = [...named, ...protectedTokens()]
  return settings
}

/** Applies `--tools` and `--exclude-tools`. */
export function selectTools(server: Server, values: ReadonlyMap<string, string>): void {
  const [included, omitted] = [values.get('tools'), values.get('exclude-tools')]
  const tools = included === undefined ? undefined : listOf('tools', included)
  const excluded = omitted === undefined ? [] : listOf('exclude-tools', omitted)
  const known = [...server.tools.keys()]
  // A typo in a tool name would otherwise go unnoticed.
  for (const name of [...(tools ?? []), ...excluded]) {
    if (known.includes(name)) continue
    const hint = suggestion(name, known)
    throw new UsageError(
      `Unknown tool ${JSON.stringify(name)}${hint === '' ? `; expected ${known.join(', ') || 'none'}` : hint}`,
    )
  }
  for (const name of known)
    if (tools?.includes(name) === false || excluded.includes(name)) server.tools.disable(name)
}

export function checkDirectory(path: string): string {
  let isDirectory: boolean
  try {
    isDirectory = statSync(path).isDirectory()
  } catch (error) {
    throw new UsageError(
      `--root: cannot access ${JSON.stringify(path)}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!isDirectory) throw new UsageError(`--root: ${JSON.stringify(path)} is not a directory`)
  return path
}
