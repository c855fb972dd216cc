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
import { type Arguments, Failure, type Options, UsageError, bytesOf } from './options.js'
import { complain, printJson, styled, warn } from './print.js'
import { DEFAULT_SERVER, checkFile, kindOf } from './servers.js'
import { cut } from './show.js'

/** How many lines of a server that are no messages are shown. */
const MAX_NOISE = 5
/** Characters of a server's error that are shown. */
const MAX_ERROR = 10_000

/** The options of every command that talks to a server. */
export const TARGET_OPTIONS = {
  timeout: {
    value: 'SECONDS',
    about: 'how long to wait for an answer (default 60; 30 for the first one)',
  },
  framing: {
    value: ['lines', 'content-length'],
    about: 'how messages are told apart (default lines)',
  },
  'max-message': { value: 'BYTES', about: 'the longest message taken in (default 33554432)' },
  verbose: { about: 'show every message and what the server logs, on stderr' },
} as const satisfies Options

export const CLIENT_OPTIONS = {
  revision: {
    value: revisions.map(({ id }) => id),
    about: 'the revision of the protocol (default: the newest that the server speaks)',
  },
  ...TARGET_OPTIONS,
  json: { about: 'the result as JSON' },
} satisfies Options

export const ARGS_OPTION = {
  args: {
    value: 'JSON',
    about: 'the arguments: a JSON object, @FILE for the content of a file, or - for stdin',
  },
} as const satisfies Options

export const TARGET_NOTES = `The server is SERVER (one that comes with ccmcp, or a file that exports one; default ${DEFAULT_SERVER}), or any
command after "--", which gets the whole environment.

Exit codes: 0 success, 1 an error from the server, 2 a wrong command line, 3 no connection.`

/** The server that a command line means: what follows `--`, or one that we serve ourselves. */
export function targetOf({ given, command }: Arguments, word: string | undefined): Target {
  if (command !== undefined && word !== undefined)
    throw new UsageError(`Name one server: ${JSON.stringify(word)}, or what follows "--"`)
  const limit = given.get('max-message')
  const [program, ...args] = command ?? bundledCommand(word ?? DEFAULT_SERVER)
  if (program === undefined || program === '') throw new UsageError('No command follows "--"')
  return stdio(program, args, {
    // Whoever types a command expects it to see the variables of the shell. Where our own wire is does not concern it.
    env: { ...process.env, CCMCP_WIRE: undefined },
    framing: (given.get('framing') ?? 'lines') as Framing, // checked against the option's values
    ...(limit === undefined ? {} : { maxMessage: bytesOf('max-message', limit) }),
    ...(given.has('verbose') ? { stderr: (text) => complain(text) } : {}),
  })
}

function bundledCommand(word: string): string[] {
  if (/^https?:/i.test(word))
    throw new UsageError(
      `${JSON.stringify(word)} is a URL, and only servers on stdio can be talked to so far: name one, or a command after "--"`,
    )
  if (kindOf(word, ', or a command after "--"') === 'file') checkFile(word)
  return [process.execPath, fileURLToPath(new URL('cli.js', import.meta.url)), 'serve', word]
}

export function timeoutOf({ given }: Arguments): number | undefined {
  const text = given.get('timeout')
  if (text === undefined) return undefined
  const seconds = Number(text)
  // setTimeout takes no more.
  if (!(text.trim() !== '' && seconds > 0 && seconds <= 2_000_000))
    throw new UsageError(`--timeout must be a number of seconds, not ${JSON.stringify(text)}`)
  return Math.ceil(seconds * 1000)
}

/** What `--args` says. */
export async function argsOf({ given }: Arguments): Promise<Record<string, unknown>> {
  const text = given.get('args')
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(await textOf(text))
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new UsageError(
      `--args is no JSON (${error instanceof Error ? error.message : String(error)}); write it such as '{"name":"value"}'`,
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
      `--args ${text} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** For `--verbose`. */
export function showFrame({ direction, frame }: Tapped): void {
  complain(direction === 'out' ? styled('sent', '>') : styled('received', '<'), ` ${frame}\n`)
}

/** Warns of what a server prints to stdout that is no message of the protocol. */
class Noise {
  #line = ''
  #count = 0

  /** The line that is being read. */
  read(line: string): void {
    this.#line = line
  }

  warn(reason: string): void {
    if (++this.#count > MAX_NOISE) return
    warn(
      `the server printed a line on stdout that is no protocol message: ${JSON.stringify(cut(this.#line, 200))} (${reason})`,
    )
    if (this.#count === 1) warn('stdout carries the protocol; a server logs to stderr')
    if (this.#count === MAX_NOISE) warn('further lines of this kind are not shown')
  }
}

/** Connects, does what is to be done, and ends the server, whatever happens. */
export async function withClient(
  args: Arguments,
  word: string | undefined,
  use: (client: Client, options: CallOptions) => Promise<void>,
): Promise<void> {
  const target = targetOf(args, word)
  const timeout = timeoutOf(args)
  const revision = args.given.get('revision')
  const verbose = args.given.has('verbose')
  if (args.command === undefined && word === undefined)
    warn(
      `no server is named, so this is the bundled server ${DEFAULT_SERVER}, which can write files. Another one is a file (./server.js) or a command after "--"`,
    )
  const noise = new Noise()
  await interruptible(async (signal) => {
    try {
      const client = await connect(target, {
        info: { name: 'ccmcp', version: VERSION },
        signal,
        ...(timeout === undefined ? {} : { timeout, probeTimeout: Math.min(timeout, 2000) }),
        ...(revision === undefined ? {} : { revision }),
        tap(tapped) {
          if (tapped.direction === 'in') noise.read(tapped.frame)
          if (verbose) showFrame(tapped)
        },
        report: ({ level, message }) => level === 'warning' && noise.warn(message),
      })
      try {
        const times =
          timeout === undefined ? {} : { timeout, maxTimeout: Math.max(timeout, 600_000) }
        await use(client, { signal, ...times })
      } finally {
        await client.close()
      }
    } catch (error) {
      throw failureOf(error, args.given.has('json'))
    }
  })
}

/** The first Ctrl-C ends the server as it should be ended, the second at once. */
export async function interruptible(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController()
  let exitCode = 0
  const stop = (signal: NodeJS.Signals) => {
    if (exitCode !== 0) process.exit(exitCode)
    exitCode = signal === 'SIGINT' ? 130 : signal === 'SIGTERM' ? 143 : 129
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
  if (exitCode !== 0) throw new Failure(exitCode, 'Interrupted')
}

function failureOf(error: unknown, json: boolean): unknown {
  if (error instanceof RpcError) {
    const { code, message, data } = error
    if (json) printJson({ error: { code, message, data } })
    const detail = data === undefined || json ? '' : `\n${JSON.stringify(data, null, 2)}`
    return new Failure(
      1,
      cut(`The server answered with error ${code}: ${message}${detail}`, MAX_ERROR),
    )
  }
  if (isConnectionLost(error)) return new Failure(3, error.message)
  // What the server said does not make sense.
  return error instanceof TypeError ? new Failure(1, error.message) : error
}

export function isConnectionLost(error: unknown): error is Error {
  return (
    error instanceof ConnectionError || error instanceof ChannelClosed || error instanceof Timeout
  )
}
