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
import { BUNDLED, DEFAULT_SERVER, serverKind } from './servers.js'
import { type Settings, selectTools, settingsOf } from './settings.js'

/** Options of the default server only. */
const DEFAULT_SERVER_OPTIONS: readonly string[] = ['root', 'read-only', 'persist']

const OPTIONS = {
  root: {
    value: 'DIR',
    paths: true,
    description:
      "directory that the file tools of the ccmcp server may access; repeatable (default: the working directory and the system's temporary directory)",
  },
  'read-only': { description: 'ccmcp server: do not offer write_file' },
  persist: {
    value: 'FILE',
    description:
      'ccmcp server: save tools that are registered at run time in FILE (default: not saved)',
  },
  tools: { value: 'NAMES', list: true, description: 'offer only these tools (comma-separated)' },
  'exclude-tools': {
    value: 'NAMES',
    list: true,
    description: 'offer all tools except these (comma-separated)',
  },
  framing: {
    value: ['auto', 'lines', 'content-length'],
    description: 'message framing (default auto: the same as the client)',
  },
  'max-message': {
    value: 'BYTES',
    description:
      'maximum message size (default 1048576 for ccmcp; 33554432 for others, 4194304 with --http)',
  },
  'log-level': {
    value: ['debug', 'info', 'warning', 'error'],
    description: 'minimum log level (default info)',
  },
  'log-file': {
    value: 'FILE',
    description: 'append the log to FILE instead of writing it to stderr',
  },
  capture: {
    value: 'FILE',
    description: 'record every byte to FILE, for "ccmcp view" and "ccmcp check"',
  },
  'unsupported-revision': {
    value: ['negotiate', 'echo', 'reject'],
    description: 'how to handle an unknown protocol revision (default negotiate)',
  },
  'invalid-arguments': {
    value: ['result', 'protocol'],
    description:
      'report invalid tool arguments as a result or as error -32602 (default result; grammar and text: protocol)',
  },
  'unexpected-errors': {
    value: ['result', 'protocol'],
    description:
      'report a tool that throws as a result or as error -32603 (default result; grammar and text: protocol)',
  },
  ...HTTP_OPTIONS,
  ...HELP,
} satisfies Options

const FILE = `a module (./server.js, .mjs, .ts) that exports a server from createServer, or a
           function that returns one, as default or as "server"`

export const serve: Command = {
  usage: 'serve [NAME | FILE] [options]',
  description:
    'Runs an MCP server on stdio or over HTTP: a bundled one, or one that a module exports. The word "serve" may be omitted before options.',
  notes: `Servers:

${columns([...Object.entries(BUNDLED), ['FILE', FILE]])}

Every option can also be set by an environment variable. Options take precedence; empty variables are ignored.

  ${variableOf('root')}=/data ${variableOf('log-level')}=warning ${variableOf('read-only')}=true ccmcp serve`,
  options: OPTIONS,
  positionals: [0, 1],
  run: serveCommand,
}

async function serveCommand({
  values: typed,
  positionals: [name = DEFAULT_SERVER],
}: Arguments): Promise<void> {
  const isFile = serverKind(name) === 'file'
  if (name !== DEFAULT_SERVER) {
    const wrong = DEFAULT_SERVER_OPTIONS.find((option) => typed.has(option))
    if (wrong !== undefined)
      throw new UsageError(`--${wrong} is an option of the ${DEFAULT_SERVER} server only`)
  }
  const values = new Map([...readVariables(process.env, OPTIONS), ...typed])
  const httpOnly = values.has('http')
    ? undefined
    : Object.keys(HTTP_OPTIONS).find((option) => typed.has(option))
  if (httpOnly !== undefined) throw new UsageError(`--${httpOnly} requires --http`)
  await warnAboutUnknownVariables()
  const options = stdioOptions(values, name)
  const settings = settingsOf(values, name)
  const server = await serverOf(name, isFile, settings, values)
  if (values.has('http'))
    return (await import('./serve-http.js')).serveHttp(server, values, options)
  const capture = values.get('capture')
  if (capture === undefined) await serveStdio(server, options)
  else await (await import('./serve-capture.js')).serveRecorded(server, options, capture)
}

async function serverOf(
  name: string,
  isFile: boolean,
  settings: Settings,
  values: ReadonlyMap<string, string>,
): Promise<Server> {
  const server = isFile
    ? await (
        await import('./module.js')
      ).loadServer(name, settings, values.has('http') ? 'http' : 'stdio')
    : await bundled(name, settings)
  selectTools(server, values)
  return server
}

/** A typo in the name of a variable would otherwise go unnoticed. */
async function warnAboutUnknownVariables(): Promise<void> {
  const known = [...Object.keys(OPTIONS).map(variableOf), 'CCMCP_WIRE']
  for (const name of Object.keys(process.env)) {
    if (!name.startsWith('CCMCP_') || known.includes(name)) continue
    const { warn } = await import('./print.js')
    warn(`ignoring unknown variable ${name}${suggestion(name, known)}`)
  }
}

function stdioOptions(values: ReadonlyMap<string, string>, name: string): StdioOptions {
  const limit = values.get('max-message')
  const defaults = stdioDefaults(name)
  if (name === DEFAULT_SERVER) defaults.maxMessage = MAX_MESSAGE
  const file = values.get('log-file')
  const logLevel = values.get('log-level')
  const framing = values.get('framing')
  return {
    ...defaults,
    // Both were checked against the option's values.
    ...(logLevel === undefined ? {} : { logLevel: logLevel as ProcessLogLevel }),
    ...(framing === undefined ? {} : { framing: framing as Framing }),
    ...(limit === undefined ? {} : { maxMessage: bytesOf('max-message', limit) }),
    ...(file === undefined ? {} : { log: logFile(file) }),
  }
}

/** Creates a bundled server. Loads only what that server needs. */
async function createBundled(name: string, { persist, ...settings }: Settings): Promise<Server> {
  if (name === 'grammar') return (await import('../bundled/grammar.js')).grammarServer(settings)
  if (name === 'text') return (await import('../bundled/text.js')).textServer(settings)
  if (persist === undefined) return ccmcpServer(settings)
  const { ToolFile } = await import('../bundled/tool-file.js')
  return ccmcpServer({ ...settings, toolFile: new ToolFile(persist, { warn: warnOnStderr }) })
}

async function bundled(name: string, settings: Settings): Promise<Server> {
  try {
    return await createBundled(name, settings)
  } catch (error) {
    // A TypeError concerns an invalid option, a system error the file that an option names.
    if (error instanceof TypeError || (error instanceof Error && 'syscall' in error))
      throw new UsageError(`Cannot create the ${name} server: ${error.message}`)
    throw error
  }
}

/** Writes synchronously, so that the last lines before an exit are not lost. */
function logFile(path: string): LogStream {
  let descriptor: number
  try {
    // Non-blocking: opening a pipe without a reader would block.
    descriptor = openSync(
      path,
      constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
      0o600,
    )
  } catch (error) {
    throw new UsageError(
      `--log-file: cannot write to ${JSON.stringify(path)}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  return {
    write(line) {
      writeSync(descriptor, line)
    },
  }
}
