import { VERSION } from '../version.js'
import { type Command, runCommand } from './command.js'
import { Failure, UsageError, columns, suggestion } from './options.js'
import { serve } from './serve.js'
import { BUNDLED } from './servers.js'

interface Entry {
  about: string
  load(): Command | Promise<Command>
}

/** Each is loaded when it is asked for: what comes before a server's first answer counts. */
const COMMANDS: Readonly<Record<string, Entry>> = {
  serve: { about: 'run a server on stdin and stdout (the default)', load: () => serve },
  list: { about: 'show what a server offers', load: async () => (await import('./list.js')).list },
  call: { about: 'call a tool', load: async () => (await import('./call.js')).call },
  read: { about: 'read a resource', load: async () => (await import('./read.js')).read },
  prompt: { about: 'get a prompt', load: async () => (await import('./prompt.js')).prompt },
  play: {
    about: 'replay a transcript against a server, or record one',
    load: async () => (await import('./play.js')).playCommand,
  },
  demo: {
    about: 'start a server, talk to it, and show every message',
    load: async () => (await import('./demo.js')).demo,
  },
  revisions: {
    about: 'what is known about each revision of the protocol',
    load: async () => (await import('./revisions.js')).revisionsCommand,
  },
}

const VERSION_WORDS = new Set(['--version', '-V', '-v', 'version'])

function help(): string {
  return `ccmcp ${VERSION}: a Model Context Protocol toolkit

Usage: ccmcp [command] [options]

${columns(Object.entries(COMMANDS).map(([name, { about }]) => [name, about]))}

${columns([
  ['--help', 'this help; "ccmcp call --help" for that of a command'],
  ['--version', 'the version of ccmcp; also -V, "ccmcp version"'],
])}

A server is one that comes with ccmcp (${Object.keys(BUNDLED).join(', ')}), a file that exports one, or,
for the commands that talk to it, any command after "--":

  ccmcp list -- npx some-server
  ccmcp call add --args '{"a":2,"b":40}'
`
}

function find(name: string): Entry {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry !== undefined) return entry
  const isServer = Object.hasOwn(BUNDLED, name) || /[\\/]|\.[cm]?[jt]s$/.test(name)
  const meant = isServer
    ? `; did you mean ccmcp serve ${name}?`
    : suggestion(name, Object.keys(COMMANDS))
  throw new UsageError(`Unknown command ${JSON.stringify(name)}${meant}`)
}

/** A server that is started does not need it. */
async function print(text: string): Promise<void> {
  const printing = await import('./print.js')
  printing.print(text)
}

/** Runs the command that a command line names. */
export async function runCommandLine([first, ...rest]: readonly string[]): Promise<void> {
  const asked = first === 'help' ? rest[0] : undefined
  if (asked !== undefined) await runCommand(await find(asked).load(), ['--help'])
  else if (first === '--help' || first === '-h' || first === 'help') await print(help())
  else if (first !== undefined && VERSION_WORDS.has(first)) await print(`${VERSION}\n`)
  else if (first === undefined) await runCommand(serve, [])
  else if (first.startsWith('-')) await runCommand(serve, [first, ...rest])
  else await runCommand(await find(first).load(), rest)
}

function explain(error: unknown, name: string | undefined): string {
  if (error instanceof UsageError) {
    const known =
      name !== undefined && Object.hasOwn(COMMANDS, name)
        ? `${name} `
        : name?.startsWith('-') === true
          ? 'serve '
          : ''
    return `${error.message} (see "ccmcp ${known}--help")`
  }
  if (error instanceof Failure) return error.message
  // What the system refuses, such as to write, is no fault in our code.
  if (error instanceof Error && 'syscall' in error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Reports a failed command line on stderr and in the exit code. */
export async function reportError(error: unknown, name: string | undefined): Promise<void> {
  const { complain, styled } = await import('./print.js')
  complain(styled('error', 'ccmcp:'), ` ${explain(error, name)}\n`)
  process.exitCode = error instanceof Failure ? error.exitCode : 1
}
