import { constants, openSync, writeSync } from 'node:fs'
import { ccmcpServer, warnOnStderr } from '../bundled/ccmcp.js'
import type { Server } from '../index.js'
import {
  type Framing,
  type ProcessLogLevel,
  type LogStream,
  type StdioOptions,
  serveStdio,
} from '../stdio.js'
import { type Command, HELP } from './command.js'
import { MAX_MESSAGE, stdioDefaults } from './default-server.js'
import { HTTP_OPTIONS } from './http-options.js'
import {
  type Arguments,
  type Options,
  UsageError,
  bytesOf,
  columns,
  readVariables,
  suggestion,
  variableOf,
} from './options.js'
import { BUNDLED, DEFAULT_SERVER, kindOf } from './servers.js'
import { type Settings, narrow, settingsOf } from './settings.js'

/** The options that one server has and the others have not. */
const OWN: readonly string[] = ['root', 'read-only', 'persist']

const OPTIONS = {
  root: {
    value: 'DIR',
    paths: true,
    about:
      'a folder whose files the server ccmcp gives access to; may be given several times (default: the working folder and that for temporary files)',
  },
  'read-only': { about: 'the server ccmcp changes no files' },
  persist: {
    value: 'FILE',
    about: 'where the server ccmcp keeps tools that were made at run time (default: nowhere)',
  },
  tools: { value: 'NAMES', list: true, about: 'only these tools, with commas between them' },
  'exclude-tools': { value: 'NAMES', list: true, about: 'all tools but these' },
  framing: {
    value: ['auto', 'lines', 'content-length'],
    about: 'how messages are told apart (default auto: as the client does)',
  },
  'max-message': {
    value: 'BYTES',
    about: 'the longest message taken in (default 1048576 for ccmcp, 33554432 for others)',
  },
  'log-level': {
    value: ['debug', 'info', 'warning', 'error'],
    about: 'the lowest level that is logged (default info)',
  },
  'log-file': { value: 'FILE', about: 'log there and not to stderr; lines are added at its end' },
  'unsupported-revision': {
    value: ['negotiate', 'echo', 'reject'],
    about: 'what to do with an unknown protocol revision (default negotiate)',
  },
  'invalid-arguments': {
    value: ['result', 'protocol'],
    about:
      'answer bad arguments with a result or with error -32602 (default result; grammar and text: protocol)',
  },
  'unexpected-errors': {
    value: ['result', 'protocol'],
    about:
      'answer a failing tool with a result or with error -32603 (default result; grammar and text: protocol)',
  },
  ...HTTP_OPTIONS,
  ...HELP,
} satisfies Options

const FILE = `a module (./server.js, .mjs, .ts) that exports a server made with createServer, or
           a function that makes one: as default, or as "server"`

export const serve: Command = {
  usage: 'serve [NAME | FILE] [options]      (the word "serve" may be left out before options)',
  about:
    'Runs an MCP server on stdin and stdout, or over HTTP: one that comes with ccmcp, or one that a file exports.',
  notes: `The servers:

${columns([...Object.entries(BUNDLED), ['FILE', FILE]])}

Each option can be given by a variable as well; the option wins. An empty variable counts as none.

  ${variableOf('root')}=/data ${variableOf('log-level')}=warning ${variableOf('read-only')}=true ccmcp serve`,
  options: OPTIONS,
  words: [0, 1],
  run: serveCommand,
}

async function serveCommand({
  given: typed,
  words: [name = DEFAULT_SERVER],
}: Arguments): Promise<void> {
  const isFile = kindOf(name) === 'file'
  if (name !== DEFAULT_SERVER) {
    const wrong = OWN.find((option) => typed.has(option))
    if (wrong !== undefined)
      throw new UsageError(`--${wrong} is an option of the server ${DEFAULT_SERVER} only`)
  }
  const given = new Map([...readVariables(process.env, OPTIONS), ...typed])
  const idle = given.has('http')
    ? undefined
    : Object.keys(HTTP_OPTIONS).find((option) => typed.has(option))
  if (idle !== undefined) throw new UsageError(`--${idle} is for a server over HTTP: add --http`)
  await warnOfVariables()
  const options = stdioOptions(given, name)
  const settings = settingsOf(given, name)
  const server = await serverOf(name, isFile, settings, given)
  // Loaded only where it is needed: what comes before the first answer counts.
  if (given.has('http')) return (await import('./serve-http.js')).serveHttp(server, given, options)
  await serveStdio(server, options)
}

async function serverOf(
  name: string,
  isFile: boolean,
  settings: Settings,
  given: ReadonlyMap<string, string>,
): Promise<Server> {
  try {
    const server = isFile
      ? await (await import('./module.js')).serverOf(name, settings, given.has('http'))
      : await bundled(name, settings)
    narrow(server, given)
    return server
  } catch (error) {
    // What a module has begun, such as a timer, must not keep a process alive that serves nothing.
    setTimeout(() => process.exit(), 100).unref()
    throw error
  }
}

/** A variable with a slip in its name would be ignored without a word. */
async function warnOfVariables(): Promise<void> {
  const known = [...Object.keys(OPTIONS).map(variableOf), 'CCMCP_WIRE']
  for (const name of Object.keys(process.env)) {
    if (!name.startsWith('CCMCP_') || known.includes(name)) continue
    const { warn } = await import('./print.js')
    warn(`${name} means nothing to ccmcp serve and is ignored${suggestion(name, known)}`)
  }
}

function stdioOptions(given: ReadonlyMap<string, string>, name: string): StdioOptions {
  const limit = given.get('max-message')
  const defaults = stdioDefaults(name)
  if (name === DEFAULT_SERVER) defaults.maxMessage = MAX_MESSAGE
  const file = given.get('log-file')
  const logLevel = given.get('log-level')
  const framing = given.get('framing')
  return {
    ...defaults,
    // Both were checked against the option's values.
    ...(logLevel === undefined ? {} : { logLevel: logLevel as ProcessLogLevel }),
    ...(framing === undefined ? {} : { framing: framing as Framing }),
    ...(limit === undefined ? {} : { maxMessage: bytesOf('max-message', limit) }),
    ...(file === undefined ? {} : { log: logFile(file) }),
  }
}

/** Makes a server that comes with ccmcp; what only some need is loaded only for them. */
async function make(name: string, { persist, ...settings }: Settings): Promise<Server> {
  if (name === 'grammar') return (await import('../bundled/grammar.js')).grammarServer(settings)
  if (name === 'text') return (await import('../bundled/text.js')).textServer(settings)
  if (persist === undefined) return ccmcpServer(settings)
  const { ToolFile } = await import('../bundled/tool-file.js')
  return ccmcpServer({ ...settings, toolFile: new ToolFile(persist, { warn: warnOnStderr }) })
}

async function bundled(name: string, settings: Settings): Promise<Server> {
  try {
    return await make(name, settings)
  } catch (error) {
    // A TypeError is about an option that cannot be obeyed, and what the system refuses about a file that one names.
    if (error instanceof TypeError || (error instanceof Error && 'syscall' in error))
      throw new UsageError(`The server ${name} cannot be made: ${error.message}`)
    throw error
  }
}

/** Written at once: what is logged in the last moment is there as well. */
function logFile(path: string): LogStream {
  let descriptor: number
  try {
    // A pipe that nobody reads would keep us waiting.
    descriptor = openSync(
      path,
      constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
      0o600,
    )
  } catch (error) {
    throw new UsageError(
      `--log-file ${JSON.stringify(path)} cannot be written: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  return {
    write(line) {
      writeSync(descriptor, line)
    },
  }
}
