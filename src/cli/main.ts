import { VERSION } from '../version.js'
import { type Command, runCommand } from './command.js'
import { CommandError, UsageError, columns, suggestion } from './options.js'
import { serve } from './serve.js'
import { BUNDLED } from './servers.js'

interface Entry {
  description: string
  load(): Command | Promise<Command>
}

/** Each command is loaded when it is used. */
const COMMANDS: Readonly<Record<string, Entry>> = {
  serve: { description: 'run a server on stdio or over HTTP (default)', load: () => serve },
  list: {
    description: 'list the tools, resources and prompts of a server',
    load: async () => (await import('./list.js')).list,
  },
  call: { description: 'call a tool', load: async () => (await import('./call.js')).call },
  resume: {
    description: 'wait for a task that an interrupted call left running',
    load: async () => (await import('./resume.js')).resume,
  },
  read: { description: 'read a resource', load: async () => (await import('./read.js')).read },
  prompt: { description: 'get a prompt', load: async () => (await import('./prompt.js')).prompt },
  subscribe: {
    description: 'show the updates of a resource',
    load: async () => (await import('./subscribe.js')).subscribe,
  },
  login: {
    description: 'log in to a server at a URL',
    load: async () => (await import('./login.js')).loginCommand,
  },
  logout: {
    description: 'log out of a server',
    load: async () => (await import('./logout.js')).logoutCommand,
  },
  worker: {
    description: 'run the tasks of a server that other processes serve',
    load: async () => (await import('./worker.js')).worker,
  },
  tasks: {
    description: 'show the tasks in a journal, cancel them or start them again',
    load: async () => (await import('./tasks.js')).tasksCommand,
  },
  play: {
    description: 'replay a transcript against a server, or record one',
    load: async () => (await import('./play.js')).playCommand,
  },
  tap: {
    description: 'run a server on stdio, or listen in front of one at a URL, and record every byte',
    load: async () => (await import('./tap.js')).tap,
  },
  wrap: {
    description: 'put a tap before servers in the configuration of a host',
    load: async () => (await import('./wrap.js')).wrap,
  },
  unwrap: {
    description: 'take the tap out of the configuration of a host',
    load: async () => (await import('./wrap.js')).unwrap,
  },
  view: {
    description: 'show a capture, or follow the newest',
    load: async () => (await import('./view.js')).view,
  },
  check: {
    description: 'report what is wrong in a capture or with a server, with an exit code for CI',
    load: async () => (await import('./check.js')).check,
  },
  demo: {
    description: 'show what ccmcp does, with real servers and clients',
    load: async () => (await import('./demo.js')).demo,
  },
  revisions: {
    description: 'show the differences between the protocol revisions',
    load: async () => (await import('./revisions.js')).revisionsCommand,
  },
}

const HELP_ARGUMENTS: ReadonlySet<string> = new Set(['--help', '-h', 'help'])
const VERSION_ARGUMENTS: ReadonlySet<string> = new Set(['--version', '-V', '-v', 'version'])

function help(): string {
  return `ccmcp ${VERSION}: a Model Context Protocol toolkit

Usage: ccmcp [command] [options]

${columns(Object.entries(COMMANDS).map(([name, { description }]) => [name, description]))}

${columns([
  ['--help', 'show this help; "ccmcp call --help" shows that of a command'],
  ['--version', 'show the version (also -V, "ccmcp version")'],
])}

A server is a bundled one (${Object.keys(BUNDLED).join(', ')}) or a module that exports one. Commands that
connect to a server also take a URL, or any command after "--":

  ccmcp list -- npx some-server
  ccmcp call add https://example.com/mcp a=2 b=40
`
}

function findCommand(name: string): Entry {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry !== undefined) return entry
  const isServer = Object.hasOwn(BUNDLED, name) || /[\\/]|\.[cm]?[jt]s$/.test(name)
  const hint = isServer
    ? `; did you mean ccmcp serve ${name}?`
    : suggestion(name, Object.keys(COMMANDS))
  throw new UsageError(`Unknown command ${JSON.stringify(name)}${hint}`)
}

async function print(text: string): Promise<void> {
  const output = await import('./print.js')
  output.print(text)
}

/** Runs the command that a command line names. */
export async function runCommandLine([first, ...rest]: readonly string[]): Promise<void> {
  if (first === undefined) return runCommand(serve, [])
  if (VERSION_ARGUMENTS.has(first)) return print(`${VERSION}\n`)
  if (!HELP_ARGUMENTS.has(first)) {
    // Options without a command are those of `serve`.
    if (first.startsWith('-')) return runCommand(serve, [first, ...rest])
    return runCommand(await findCommand(first).load(), rest)
  }
  const [command] = first === 'help' ? rest : []
  if (command === undefined) return print(help())
  await runCommand(await findCommand(command).load(), ['--help'])
}

/** The command whose help explains a usage error. */
function commandName(first: string | undefined): string {
  if (first === undefined) return ''
  if (Object.hasOwn(COMMANDS, first)) return `${first} `
  return first.startsWith('-') ? 'serve ' : ''
}

function explain(error: unknown, first: string | undefined): string {
  if (error instanceof UsageError)
    return `${error.message} (see "ccmcp ${commandName(first)}--help")`
  if (error instanceof CommandError) return error.message
  // A system error, such as a failed write, is not a bug: no stack.
  if (error instanceof Error && 'syscall' in error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Reports a failed command line on stderr and in the exit code. */
export async function reportError(error: unknown, name: string | undefined): Promise<void> {
  process.exitCode = error instanceof CommandError ? error.exitCode : 1
  const { flushError, styled } = await import('./print.js')
  await flushError(styled('error', 'ccmcp:'), ` ${explain(error, name)}\n`)
  // Timers that a served module has started must not keep the process alive without a server.
  if (name === undefined || commandName(name) === 'serve ' || name === 'worker') process.exit()
}
