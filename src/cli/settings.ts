import { statSync } from 'node:fs'
import type { Server, ServerOptions } from '../index.js'
import { UsageError, listOf, pathsOf, suggestion } from './options.js'
import { DEFAULT_SERVER } from './servers.js'

/** What the servers of ccmcp can be told. */
export interface Settings extends Pick<
  ServerOptions,
  'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'
> {
  roots?: string[]
  readOnly?: boolean
  persist?: string
  ownFiles?: string[]
}

/** Options that name a file which callers must neither read nor change. */
const OWN_FILES = ['log-file', 'tokens', 'tls-cert', 'tls-key'] as const

export function settingsOf(given: ReadonlyMap<string, string>, name: string): Settings {
  const settings: Settings = {}
  // Each of these was checked against the option's values.
  const unsupportedRevision = given.get('unsupported-revision') as Settings['unsupportedRevision']
  const invalidArguments = given.get('invalid-arguments') as Settings['invalidArguments']
  const unexpectedErrors = given.get('unexpected-errors') as Settings['unexpectedErrors']
  if (unsupportedRevision !== undefined) settings.unsupportedRevision = unsupportedRevision
  if (invalidArguments !== undefined) settings.invalidArguments = invalidArguments
  if (unexpectedErrors !== undefined) settings.unexpectedErrors = unexpectedErrors
  if (name !== DEFAULT_SERVER) return settings
  const [root, persist] = [given.get('root'), given.get('persist')]
  if (root !== undefined) settings.roots = pathsOf(root).map(folder)
  if (persist !== undefined) settings.persist = persist
  if (given.has('read-only')) settings.readOnly = true
  settings.ownFiles = OWN_FILES.flatMap((option) => given.get(option) ?? [])
  return settings
}

/** Leaves the server only the tools that were asked for. */
export function narrow(server: Server, given: ReadonlyMap<string, string>): void {
  const [only, but] = [given.get('tools'), given.get('exclude-tools')]
  const tools = only === undefined ? undefined : listOf('tools', only)
  const excluded = but === undefined ? [] : listOf('exclude-tools', but)
  const known = [...server.tools.keys()]
  // A name that no tool has is a slip that would go unnoticed.
  for (const name of [...(tools ?? []), ...excluded]) {
    if (known.includes(name)) continue
    const meant = suggestion(name, known)
    throw new UsageError(
      `There is no tool ${JSON.stringify(name)}${meant === '' ? `; there are ${known.join(', ') || 'none'}` : meant}`,
    )
  }
  for (const name of known)
    if (tools?.includes(name) === false || excluded.includes(name)) server.tools.disable(name)
}

function folder(path: string): string {
  let isFolder: boolean
  try {
    isFolder = statSync(path).isDirectory()
  } catch (error) {
    throw new UsageError(
      `--root ${JSON.stringify(path)} cannot be used: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!isFolder) throw new UsageError(`--root ${JSON.stringify(path)} is not a folder`)
  return path
}
