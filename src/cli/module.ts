import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Server } from '../index.js'
import { standardError } from '../transports/stdio-log.js'
import { guardStdout } from '../transports/stdio-wire.js'
import { Failure, UsageError } from './options.js'
import { checkFile } from './servers.js'
import type { Settings } from './settings.js'

/** Milliseconds after which a file that is still being loaded is worth a word. */
const LONG = 3000

/** The server that a file exports, with these settings. With `elsewhere`, stdio is not where it is to be served. */
export async function serverOf(
  file: string,
  settings: Settings,
  elsewhere: boolean,
): Promise<Server> {
  checkFile(file)
  const loaded = elsewhere ? expectExport(file) : () => {}
  // What it prints while it is loaded must not reach the wire either, unless that is elsewhere.
  if ((process.env['CCMCP_WIRE'] ?? '') === '') guardStdout()
  const hung = () => {
    standardError.write(`ccmcp: ${file} never finishes loading: it awaits what does not come\n`)
    process.exitCode = 1
  }
  // There is nothing left to do, and yet there is no server.
  process.on('beforeExit', hung)
  try {
    return override(await exported(file, await load(file)), settings)
  } finally {
    process.off('beforeExit', hung)
    loaded()
  }
}

/** A program that serves by itself is never done with loading, or ends the process; nobody would know why. Returns how to stop waiting. */
function expectExport(file: string): () => void {
  const tell = (what: string) => () => {
    standardError.write(
      `ccmcp: ${file} ${what}. If it serves by itself (serveStdio, listen), export its server instead, or start it with node\n`,
    )
  }
  const late = setTimeout(tell('is still being loaded'), LONG).unref()
  const ended = () => {
    tell('has ended the process while it was being loaded')()
    process.exitCode ||= 2
  }
  process.once('exit', ended)
  return () => {
    clearTimeout(late)
    process.off('exit', ended)
  }
}

async function load(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown> // a module is an object
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
      throw new UsageError(
        /\.[cm]?tsx?$/.test(file)
          ? `${file} is TypeScript, which Node ${process.version} does not run by itself. Use Node 22.18 or newer, compile it to JavaScript, or load a compiler: NODE_OPTIONS="--import tsx"`
          : `${file} is no JavaScript module: ${messageOf(error)}`,
      )
    throw new Failure(
      1,
      `${file} could not be loaded:\n${error instanceof SyntaxError ? placeOf(file, error) : stackOf(error)}`,
    )
  }
}

/** How many files are searched for a syntax error. */
const MAX_SEARCHED = 50
const RELATIVE_IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g

/** Where a syntax error is, which Node tells only when it starts a file: in this one, or in one that it imports. */
function placeOf(file: string, error: SyntaxError): string {
  const files = new Set([resolve(file)])
  // What is found is added while the set is read.
  for (const each of files) {
    const { stderr } = spawnSync(process.execPath, ['--check', each], {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 10_000,
    })
    const told = stderr.replace(/\n\s+at [\s\S]*/, '').trim()
    if (told.includes('SyntaxError')) return told
    for (const [, path = ''] of readFileSync(each, 'utf8').matchAll(RELATIVE_IMPORT)) {
      const imported = resolve(dirname(each), path)
      if (files.size < MAX_SEARCHED && existsSync(imported)) files.add(imported)
    }
  }
  return stackOf(error)
}

/** The server among the exports: a value, a promise of one, or a function that makes one. */
async function exported(file: string, exports: Record<string, unknown>): Promise<Server> {
  const main = exports['default']
  // The exports of a CommonJS module are one object.
  const inner =
    typeof main === 'object' && main !== null && 'server' in main ? main.server : undefined
  for (const [name, value] of Object.entries({
    default: main,
    server: exports['server'] ?? inner,
  })) {
    const made: unknown = await madeOf(file, name, value)
    if (isServer(made)) return made
  }
  const names = Object.keys(exports).filter((name) => name !== 'module.exports')
  throw new UsageError(
    `${file} exports no server (it exports ${names.join(', ') || 'nothing'}). Export what createServer returns, as default or as "server"; a program that serves by itself is started with node`,
  )
}

async function madeOf(file: string, name: string, value: unknown): Promise<unknown> {
  try {
    const makes =
      typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value))
    return await (makes ? (value as () => unknown)() : value) // without arguments: whatever it takes, it must do without
  } catch (error) {
    throw new Failure(1, `The export ${JSON.stringify(name)} of ${file} failed:\n${stackOf(error)}`)
  }
}

/** By its parts and not by its class: the module may have a copy of ccmcp of its own. */
function isServer(value: unknown): value is Server {
  if (typeof value !== 'object' || value === null) return false
  const has = (name: string, method: string) => {
    const part = (value as Record<string, unknown>)[name] // looked at, not relied upon
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

/** The same server, with other answers to a few questions. */
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
  return Object.create(server, properties) as Server // it has everything of the one behind it
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The stack without the parts that are not the module's. */
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
