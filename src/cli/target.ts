import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  type CallOptions,
  ChannelClosed,
  type Client,
  ConnectionError,
  RpcError,
  type Tapped,
  type Target,
  Timeout,
  connect,
  stdio,
} from '../client.js'
import { isObject } from '../jsonrpc/message.js'
import { revisions } from '../protocol/revisions/index.js'
import type { Framing } from '../stdio.js'
import { VERSION } from '../version.js'
import { type Arguments, CommandError, type Options, UsageError, bytesOf } from './options.js'
import { printError, printJson, styled, warn } from './print.js'
import { DEFAULT_SERVER, checkFile, kindOf } from './servers.js'
import { shorten } from './format.js'

/** Maximum number of warnings about invalid lines. */
const MAX_INVALID_LINES = 5
/** Maximum characters to show of a server's error. */
const MAX_ERROR = 10_000

/** The options of every command that connects to a server. */
export const TARGET_OPTIONS = {
  timeout: {
    value: 'SECONDS',
    description: 'request timeout (default 60; 30 for connecting)',
  },
  framing: {
    value: ['lines', 'content-length'],
    description: 'message framing (default lines)',
  },
  'max-message': { value: 'BYTES', description: 'maximum message size (default 33554432)' },
  verbose: { description: 'show every message and the stderr of the server' },
} as const satisfies Options

export const CLIENT_OPTIONS = {
  revision: {
    value: revisions.map(({ id }) => id),
    description: 'protocol revision (default: the newest that the server supports)',
  },
  ...TARGET_OPTIONS,
  json: { description: 'print the result as JSON' },
} satisfies Options

export const ARGS_OPTION = {
  args: {
    value: 'JSON',
    description: 'arguments as a JSON object; @FILE reads them from a file, - from stdin',
  },
} as const satisfies Options

export const TARGET_NOTES = `SERVER is a bundled server or a module that exports one (default ${DEFAULT_SERVER}). COMMAND is any command; it gets the
whole environment.

Exit codes: 0 success, 1 an error from the server, 2 an invalid command line, 3 no connection.`

/** The server of a command line: the command after `--`, or one that `ccmcp serve` runs. */
export function targetOf({ values, command }: Arguments, word: string | undefined): Target {
  const limit = values.get('max-message')
  const [program = '', ...args] = serverCommand({ command }, word)
  return stdio(program, args, {
    // A command that the user types gets the shell's variables, except for the descriptors of our own launcher.
    env: { ...process.env, CCMCP_WIRE: undefined },
    framing: (values.get('framing') ?? 'lines') as Framing, // checked against the option's values
    ...(limit === undefined ? {} : { maxMessage: bytesOf('max-message', limit) }),
    ...(values.has('verbose') ? { stderr: (text) => printError(text) } : {}),
  })
}

/** The command that starts a server: the one after `--`, or `ccmcp serve`. */
export function serverCommand(
  { command }: Pick<Arguments, 'command'>,
  word: string | undefined,
): string[] {
  if (command !== undefined && word !== undefined)
    throw new UsageError(
      `Two servers: ${JSON.stringify(word)} and a command after "--"; pass one of them`,
    )
  const found = command ?? bundledCommand(word ?? DEFAULT_SERVER)
  if ((found[0] ?? '') === '') throw new UsageError('Missing command after "--"')
  return found
}

function bundledCommand(word: string): string[] {
  if (/^https?:/i.test(word))
    throw new UsageError(
      `${JSON.stringify(word)} is a URL; only servers on stdio are supported so far. Pass a server name, a module, or a command after "--"`,
    )
  if (kindOf(word, ', or a command after "--"') === 'file') checkFile(word)
  return [process.execPath, fileURLToPath(new URL('cli.js', import.meta.url)), 'serve', word]
}

export function timeoutOf({ values }: Arguments): number | undefined {
  const text = values.get('timeout')
  if (text === undefined) return undefined
  const seconds = Number(text)
  // The maximum of setTimeout.
  if (!(text.trim() !== '' && seconds > 0 && seconds <= 2_000_000))
    throw new UsageError(`--timeout must be a number of seconds, not ${JSON.stringify(text)}`)
  return Math.ceil(seconds * 1000)
}

/** The value of `--args`. */
export async function argsOf({ values }: Arguments): Promise<Record<string, unknown>> {
  const text = values.get('args')
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(await textOf(text))
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new UsageError(
      `--args is not valid JSON (${error instanceof Error ? error.message : String(error)}); expected an object such as '{"name":"value"}'`,
    )
  }
  if (!isObject(value))
    throw new UsageError(`--args must be a JSON object, such as '{"name":"value"}'`)
  return value
}

async function textOf(text: string): Promise<string> {
  if (text !== '-' && !text.startsWith('@')) return text
  try {
    if (text !== '-') return readFileSync(text.slice(1), 'utf8')
    const chunks: Buffer[] = []
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer) // no encoding was set
    return Buffer.concat(chunks).toString()
  } catch (error) {
    throw new UsageError(
      `--args: cannot read ${text}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** Shows a message for `--verbose`. */
export function showFrame({ direction, frame }: Tapped): void {
  printError(direction === 'out' ? styled('sent', '>') : styled('received', '<'), ` ${frame}\n`)
}

/** Warns about lines on a server's stdout that are not protocol messages. */
class InvalidOutput {
  #line = ''
  #count = 0

  /** Sets the line that is being read. */
  read(line: string): void {
    this.#line = line
  }

  warn(reason: string): void {
    if (++this.#count > MAX_INVALID_LINES) return
    warn(
      `the server wrote a line to stdout that is not a protocol message: ${JSON.stringify(shorten(this.#line, 200))} (${reason})`,
    )
    if (this.#count === 1)
      warn('stdout is reserved for protocol messages; servers must log to stderr')
    if (this.#count === MAX_INVALID_LINES) warn('further such lines are not shown')
  }
}

/** Connects to the server, runs `use`, and always closes the connection. */
export async function withClient(
  args: Arguments,
  word: string | undefined,
  use: (client: Client, options: CallOptions) => Promise<void>,
): Promise<void> {
  const target = targetOf(args, word)
  const timeout = timeoutOf(args)
  const revision = args.values.get('revision')
  const verbose = args.values.has('verbose')
  if (args.command === undefined && word === undefined)
    warn(
      `no server specified; using the bundled server ${DEFAULT_SERVER}, which can write files. Pass a module (./server.js) or a command after "--" to use another`,
    )
  const invalidOutput = new InvalidOutput()
  await abortOnSignal(async (signal) => {
    try {
      const client = await connect(target, {
        info: { name: 'ccmcp', version: VERSION },
        signal,
        ...(timeout === undefined ? {} : { timeout, probeTimeout: Math.min(timeout, 2000) }),
        ...(revision === undefined ? {} : { revision }),
        tap(tapped) {
          if (tapped.direction === 'in') invalidOutput.read(tapped.frame)
          if (verbose) showFrame(tapped)
        },
        report: ({ level, message }) => level === 'warning' && invalidOutput.warn(message),
      })
      try {
        const times =
          timeout === undefined ? {} : { timeout, maxTimeout: Math.max(timeout, 600_000) }
        await use(client, { signal, ...times })
      } finally {
        await client.close()
      }
    } catch (error) {
      throw commandError(error, args.values.has('json'))
    }
  })
}

/** 128 plus the number of the signal. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Aborts on the first SIGINT, SIGTERM or SIGHUP, so that the server is closed; exits immediately on the second. */
export async function abortOnSignal(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController()
  let exitCode = 0
  const stop = (signal: keyof typeof EXIT_CODES) => {
    if (exitCode !== 0) process.exit(exitCode)
    exitCode = EXIT_CODES[signal]
    controller.abort(new Error('Interrupted'))
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, stop)
  try {
    await run(controller.signal)
  } catch (error) {
    if (exitCode === 0) throw error
  } finally {
    for (const signal of signals) process.off(signal, stop)
  }
  if (exitCode !== 0) throw new CommandError(exitCode, 'Interrupted')
}

function commandError(error: unknown, json: boolean): unknown {
  if (error instanceof RpcError) {
    const { code, message, data } = error
    if (json) printJson({ error: { code, message, data } })
    const detail = data === undefined || json ? '' : `\n${JSON.stringify(data, null, 2)}`
    return new CommandError(
      1,
      shorten(`The server returned error ${code}: ${message}${detail}`, MAX_ERROR),
    )
  }
  if (isConnectionLost(error)) return new CommandError(3, error.message)
  // The server sent an invalid result.
  return error instanceof TypeError ? new CommandError(1, error.message) : error
}

export function isConnectionLost(error: unknown): error is Error {
  return (
    error instanceof ConnectionError || error instanceof ChannelClosed || error instanceof Timeout
  )
}
