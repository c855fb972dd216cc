import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { stdio } from '../client.js'
import { revisions } from '../protocol/revisions/index.js'
import type { Framing } from '../stdio.js'
import { type Arguments, type Options, UsageError, bytesOf } from './options.js'
import { printError } from './print.js'
import { BUNDLED, DEFAULT_SERVER, checkFile, serverKind } from './servers.js'
import { httpServer, isUrl } from './http-server.js'
import type { ServerTarget } from './server-target.js'

/** The options of every command that connects to a server. */
export const TARGET_OPTIONS = {
  header: {
    value: 'HEADER',
    repeatable: true,
    description: "with a URL: header of every request, such as 'X-Team: blue'; repeatable",
  },
  'token-env': {
    value: 'NAME',
    description: 'with a URL: environment variable with the bearer token to send',
  },
  timeout: {
    value: 'SECONDS',
    description: 'request timeout (default 60; 30 for connecting)',
  },
  framing: {
    value: ['lines', 'content-length'],
    description: 'message framing on stdio (default lines)',
  },
  'max-message': {
    value: 'BYTES',
    description: 'maximum message size (default 33554432; with a URL 67108864)',
  },
  verbose: { description: 'show every message and the stderr of the server' },
} as const satisfies Options

export const CLIENT_OPTIONS = {
  revision: {
    value: revisions.map(({ id }) => id),
    description: 'protocol revision (default: the newest that the server supports)',
  },
  ...TARGET_OPTIONS,
  root: {
    value: 'DIR',
    repeatable: true,
    description:
      'root of the client, which the server may ask for; gives no access to files (that is --root of serve); repeatable',
  },
  'no-input': { description: 'decline when the server asks for input, also in a terminal' },
  json: { description: 'print the result as JSON' },
} satisfies Options

export const TARGET_NOTES = `SERVER is a URL, a bundled server (${Object.keys(BUNDLED).join(', ')}; default ${DEFAULT_SERVER}) or a module that exports one, such as ./server.js.
COMMAND starts a server on stdio; it inherits the whole environment.

Exit codes: 0 success, 1 an error from the server, 2 an invalid command line, 3 no connection.`

/** The server of a command line: a URL, the command after `--`, or one that `ccmcp serve` runs. */
export function targetOf({ values, command }: Arguments, server: string | undefined): ServerTarget {
  const limit = values.get('max-message')
  const maxMessage = limit === undefined ? {} : { maxMessage: bytesOf('max-message', limit) }
  if (command === undefined && server !== undefined && isUrl(server))
    return httpServer(server, values, maxMessage)
  for (const option of ['header', 'token-env'])
    if (values.has(option))
      throw new UsageError(
        `--${option} is for a server at a URL; this one is ${command === undefined ? 'started here' : 'the command after "--"'}`,
      )
  const [program = '', ...args] = serverCommand({ command }, server)
  const target = stdio(program, args, {
    // A command that the user types inherits the shell's variables, except for the descriptors of our own launcher.
    env: { ...process.env, CCMCP_WIRE: undefined },
    framing: (values.get('framing') ?? 'lines') as Framing, // checked against the option's values
    ...maxMessage,
    ...(values.has('verbose') ? { stderr: (text) => printError(text) } : {}),
  })
  const label = command === undefined ? (server ?? DEFAULT_SERVER) : program
  return { target, label, explain: ({ message }) => message }
}

/** The command that starts a server: the one after `--`, or `ccmcp serve`. */
export function serverCommand(
  { command }: Pick<Arguments, 'command'>,
  server: string | undefined,
): string[] {
  if (command !== undefined && server !== undefined)
    throw new UsageError(
      `Both a server (${JSON.stringify(server)}) and a command after "--" were given; pass only one`,
    )
  const found = command ?? bundledCommand(server ?? DEFAULT_SERVER)
  if ((found[0] ?? '') === '') throw new UsageError('Missing command after "--"')
  return found
}

/** A host with a port or a path, or with a domain: `localhost:3000`, `example.com/mcp`. */
const ADDRESS = /^(?:(localhost|127\.\d+\.\d+\.\d+)|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:\/\S*)?$/i

function bundledCommand(server: string): string[] {
  const [isAddress, isLocal] = ADDRESS.exec(server) ?? []
  const mayBeModule = /\.[cm]?[jt]sx?$/.test(server) || Object.hasOwn(BUNDLED, server)
  if (isAddress !== undefined && !mayBeModule && !existsSync(server))
    throw new UsageError(
      `${JSON.stringify(server)} is not a file; did you mean the URL ${isLocal === undefined ? 'https' : 'http'}://${server}?`,
    )
  if (serverKind(server, ', a URL, or a command after "--"') === 'file') checkFile(server)
  return [process.execPath, fileURLToPath(new URL('cli.js', import.meta.url)), 'serve', server]
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
