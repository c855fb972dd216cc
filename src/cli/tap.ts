import { constants } from 'node:os'
import type { Transport } from '../capture/format.js'
import { CaptureFile } from '../tap/capture-file.js'
import { captureFolder, newCapturePath, pruneCaptures } from '../tap/captures.js'
import { type Exit, tapStdio } from '../tap/stdio.js'
import { type Command, HELP } from './command.js'
import { type Arguments, CommandError, UsageError, bytesOf } from './options.js'
import { isUrl } from './http-server.js'
import { MAX_CAPTURE } from './serve-capture.js'
import { warn } from './print.js'
import { DEFAULT_SERVER } from './servers.js'
import { serverCommand } from './target.js'

/** Milliseconds for a signal to end this process. */
const SIGNAL_TIMEOUT = 200

export const tap: Command = {
  usage: 'tap [SERVER | URL | -- COMMAND] [options]',
  description:
    'Records every byte between a client and a server. On stdio it starts the server: put it before the command of a server in the configuration of a host. With a URL it listens on this machine and prints the URL for the client.',
  notes: `SERVER is a bundled server or a module that exports one (default ${DEFAULT_SERVER}). COMMAND is any command; it gets the
whole environment. Bytes, signals, the end of input and the exit code are passed on unchanged.

  ccmcp tap -- npx some-server
  ccmcp tap https://example.com/mcp --port 4000
  ccmcp view                        show the newest capture
  ccmcp view -f                     follow it

A capture contains everything that was sent, also secrets. Only its owner can read it.`,
  options: {
    capture: {
      value: 'FILE',
      description:
        'write the capture to FILE (default: a new file in $XDG_STATE_HOME/ccmcp/captures)',
    },
    'max-capture': {
      value: 'BYTES',
      description: `maximum size of the capture (default ${MAX_CAPTURE})`,
    },
    port: {
      value: 'NUMBER',
      description: 'with a URL: port to listen on (default: any free port)',
    },
    ca: {
      value: 'FILE',
      description: "with a URL: PEM file of certificate authorities to trust instead of Node's",
    },
    ...HELP,
  },
  positionals: [0, 1],
  takesServerCommand: true,
  run: runTap,
}

async function runTap(parsed: Arguments): Promise<void> {
  const [word] = parsed.positionals
  if (word !== undefined && parsed.command === undefined && isUrl(word)) {
    const { tapUrl } = await import('./tap-http.js')
    return tapUrl(word, parsed.values, (label) => openCapture(parsed, label, 'http'))
  }
  const wrong = ['port', 'ca'].find((option) => parsed.values.has(option))
  if (wrong !== undefined)
    throw new UsageError(`--${wrong} is for a server at a URL; this one is on stdio`)
  const [program = '', ...args] = serverCommand(parsed, word)
  const capture = openCapture(
    parsed,
    parsed.command === undefined ? (word ?? DEFAULT_SERVER) : program,
  )
  let exit: Exit
  try {
    exit = await tapStdio(program, args, withoutWire(process.env), capture)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    capture.event('error', { message })
    await capture.close()
    throw new CommandError(3, `Cannot start the server: ${message}`)
  }
  await capture.close()
  end(exit)
}

/** The variable names descriptors of the launcher, which the server does not get. */
function withoutWire(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const env = { ...variables }
  delete env['CCMCP_WIRE']
  return env
}

function openCapture(
  { values }: Pick<Arguments, 'values'>,
  label: string,
  transport: Transport = 'stdio',
): CaptureFile {
  const limit = values.get('max-capture')
  const maxBytes = limit === undefined ? MAX_CAPTURE : bytesOf('max-capture', limit)
  const path = values.get('capture')
  const failed = ({ message }: Error) =>
    warn(`cannot write the capture: ${message}; the server runs without it`)
  const capture = new CaptureFile(path ?? defaultPath(label), { maxBytes, transport, failed })
  if (capture.path !== undefined) warn(`recording to ${capture.path}`)
  return capture
}

/** If the folder cannot be created, opening the file reports it. */
function defaultPath(label: string): string {
  const folder = captureFolder()
  try {
    pruneCaptures(folder)
    return newCapturePath(folder, label)
  } catch {
    return `${folder}/capture.ndjson`
  }
}

/** Ends this process as the server ended. */
function end({ code, signal }: Exit): void {
  if (signal !== null && process.platform !== 'win32') {
    // Node uses SIGUSR1 itself.
    if (signal !== 'SIGUSR1') process.kill(process.pid, signal)
    setTimeout(() => process.exit(128 + constants.signals[signal]), SIGNAL_TIMEOUT)
    return
  }
  process.exit(code ?? 1)
}
