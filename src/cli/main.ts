import { VERSION } from '../version.js'
import { UsageError, suggestion } from './options.js'
import { serve } from './serve.js'

const HELP = `ccmcp ${VERSION}: a Model Context Protocol toolkit

Usage: ccmcp [command] [options]

  serve     run the bundled server on stdin and stdout (the default)
  demo      start the server, talk to it, and show every message
  revisions what is known about each revision of the protocol

  --help    this help; "ccmcp serve --help" for that command's options
  --version
`

const COMMANDS: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  serve,
  demo: async (args) => (await import('./demo.js')).demo(args),
  revisions: async (args) => (await import('./revisions.js')).revisionsCommand(args),
}

async function main(args: readonly string[]): Promise<void> {
  const [first, ...rest] = args
  if (first === '--help' || first === '-h' || first === 'help') process.stdout.write(HELP)
  else if (first === '--version' || first === '-v') process.stdout.write(`${VERSION}\n`)
  else if (first === undefined || first.startsWith('-')) await serve(args)
  else {
    const command = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined
    if (command === undefined) throw new UsageError(`Unknown command ${JSON.stringify(first)}${suggestion(first, Object.keys(COMMANDS))}`)
    await command(rest)
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const usage = error instanceof UsageError
  process.stderr.write(
    `ccmcp: ${usage ? `${error.message} (see "ccmcp --help")` : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  )
  process.exitCode = usage ? 2 : 1
}
