import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Server } from '../index.js'
import { standardError } from '../transports/stdio-log.js'
import { guardStdout } from '../transports/stdio-wire.js'
import { CommandError, UsageError } from './options.js'
import { checkFile } from './servers.js'
import type { Settings } from './settings.js'

/** Milliseconds of loading after which to warn. */
const SLOW_LOAD = 3000

/** What a server is loaded for. A module may do the first two itself. */
export type Purpose = 'stdio' | 'http' | 'worker'

/** Loads the server that a module exports. */
export async function loadServer(
  file: string,
  settings: Settings,
  purpose: Purpose,
): Promise<Server> {
  checkFile(file)
  const stopWatching = purpose === 'stdio' ? () => {} : watchLoading(file, purpose)
  // The module's output must not reach stdout while it is loading, unless the messages use other descriptors.
  if ((process.env['CCMCP_WIRE'] ?? '') === '') guardStdout()
  const reportHang = () => {
    standardError.write(
      `ccmcp: ${file} never finishes loading: it awaits a promise that never settles\n`,
    )
    process.exitCode = 1
  }
  // The event loop is empty before the module has loaded.
  process.on('beforeExit', reportHang)
  try {
    return override(await findServer(file, await load(file), purpose), settings)
  } finally {
    process.off('beforeExit', reportHang)
    stopWatching()
  }
}

/** Explains why nothing is served if the module never finishes loading or exits the process, as a program that serves itself does. Returns a function that stops watching. */
function watchLoading(file: string, purpose: Purpose): () => void {
  const orRun = purpose === 'worker' ? '' : ', or run it with node'
  const warn = (what: string) => () => {
    standardError.write(
      `ccmcp: ${file} ${what}. If it starts its own transport (serveStdio, listen), export the server instead${orRun}\n`,
    )
  }
  const timer = setTimeout(warn('is still loading'), SLOW_LOAD).unref()
  const exited = () => {
    warn('exited the process while it was loading')()
    process.exitCode ||= 2
  }
  process.once('exit', exited)
  return () => {
    clearTimeout(timer)
    process.off('exit', exited)
  }
}

async function load(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown> // a module namespace is an object
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
      throw new UsageError(
        /\.[cm]?tsx?$/.test(file)
          ? `${file} is TypeScript, which Node ${process.version} cannot run. Use Node 22.18 or later, compile it to JavaScript, or use a loader: NODE_OPTIONS="--import tsx"`
          : `${file} is not a JavaScript module: ${messageOf(error)}`,
      )
    throw new CommandError(
      1,
      `Cannot load ${file}:\n${error instanceof SyntaxError ? locateSyntaxError(file, error) : stackOf(error)}`,
    )
  }
}

/** Maximum number of files to search for a syntax error. */
const MAX_SEARCHED = 50
const RELATIVE_IMPORT = /\b(?:from|import)\s*(?:\(\s*)?['"](\.{1,2}\/[^'"]+)['"]/g

/** Finds a syntax error in a file or its imports. Node reports the position only for the main file of a process. */
function locateSyntaxError(file: string, error: SyntaxError): string {
  const files = new Set([resolve(file)])
  // The loop also visits the files that are added meanwhile.
  for (const each of files) {
    const { stderr } = spawnSync(process.execPath, ['--check', each], {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 10_000,
    })
    const report = stderr.replace(/\n[ \t]+at [\s\S]*/, '').trim()
    if (report.includes('SyntaxError')) return report
    for (const [, path = ''] of readFileSync(each, 'utf8').matchAll(RELATIVE_IMPORT)) {
      const imported = resolve(dirname(each), path)
      if (files.size < MAX_SEARCHED && existsSync(imported)) files.add(imported)
    }
  }
  return stackOf(error)
}

/** Finds the server among the exports: a value, a promise, or a function that returns either. */
async function findServer(
  file: string,
  exports: Record<string, unknown>,
  purpose: Purpose,
): Promise<Server> {
  const main = exports['default']
  // A CommonJS module has its exports in one object.
  const inner =
    typeof main === 'object' && main !== null && 'server' in main ? main.server : undefined
  for (const [name, value] of Object.entries({
    default: main,
    server: exports['server'] ?? inner,
  })) {
    const candidate: unknown = await evaluateExport(file, name, value)
    if (isServer(candidate)) return candidate
  }
  const names = Object.keys(exports).filter((name) => name !== 'module.exports')
  const orRun = purpose === 'worker' ? '' : '; if it starts its own transport, run it with node'
  throw new UsageError(
    `${file} exports no server (it exports ${names.join(', ') || 'nothing'}). Export what createServer returns, as default or as "server"${orRun}`,
  )
}

async function evaluateExport(file: string, name: string, value: unknown): Promise<unknown> {
  try {
    const isFactory =
      typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value))
    return await (isFactory ? (value as () => unknown)() : value) // called without arguments
  } catch (error) {
    throw new CommandError(
      1,
      `The export ${JSON.stringify(name)} of ${file} failed:\n${stackOf(error)}`,
    )
  }
}

/** Checks the shape, not the class: the module may use another copy of ccmcp. */
function isServer(value: unknown): value is Server {
  if (typeof value !== 'object' || value === null) return false
  const has = (name: string, method: string) => {
    const part = (value as Record<string, unknown>)[name] // checked below
    return (
      typeof part === 'object' &&
      part !== null &&
      typeof (part as Record<string, unknown>)[method] === 'function'
    )
  }
  return (
    'info' in value &&
    has('tools', 'disable') &&
    has('resources', 'disable') &&
    has('prompts', 'disable') &&
    has('changes', 'listen')
  )
}

/** The server with some of its options replaced. */
function override(
  server: Server,
  { unsupportedRevision, invalidArguments, unexpectedErrors }: Settings,
): Server {
  const changes = Object.entries({
    unsupportedRevision,
    invalidArguments,
    unexpectedErrors,
  }).filter(([, value]) => value !== undefined)
  if (changes.length === 0) return server
  const properties = Object.fromEntries(
    changes.map(([name, value]) => [name, { value, enumerable: true }]),
  )
  return Object.create(server, properties) as Server // it inherits everything else
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The stack without the frames of Node and ccmcp. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const ours = new URL('.', import.meta.url).href
  const lines = (error.stack ?? error.message).split('\n')
  return lines
    .filter(
      (line) => !/^\s+at /.test(line) || !(line.includes('node:internal') || line.includes(ours)),
    )
    .join('\n')
}
