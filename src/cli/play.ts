import { readFileSync, writeFileSync } from 'node:fs'
import { type PlayOptions, play } from '../harness/play.js'
import { record } from '../harness/record.js'
import { type Step, parseTranscript } from '../harness/transcript.js'
import { type Client, type TargetChannel, connect } from '../client.js'
import { ToolHeaders } from '../client/tool-headers.js'
import { type Channel, tap } from '../jsonrpc/channel.js'
import { isObject, parseMessage } from '../jsonrpc/message.js'
import { PROTOCOL_VERSION } from '../protocol/meta.js'
import { VERSION } from '../version.js'
import { type Command, HELP } from './command.js'
import { truncate } from './format.js'
import { isUrl } from './http-server.js'
import { type Arguments, CommandError, UsageError } from './options.js'
import { fileProblem, print, warn } from './print.js'
import { abortOnSignal } from './signals.js'
import type { ServerTarget } from './server-target.js'
import { TARGET_NOTES, TARGET_OPTIONS, targetOf, timeoutOf } from './target.js'
import { showFrame } from './with-client.js'

export const playCommand: Command = {
  usage: 'play FILE [SERVER | -- COMMAND] [options]',
  description:
    'Replays a transcript against a server and shows where the responses differ from the file.',
  notes: `In a transcript, lines starting with ">" are sent, lines starting with "<" are expected in that order, and
all other lines are comments. In an expected message, * matches any value, $name captures a value (a later ">"
line with $name sends it), and ~"took * ms" is a string with wildcards. --record keeps the ">" lines and the
comments and writes the received messages; expected lines that match are kept.

${TARGET_NOTES.replace('an error from the server', 'a difference')}`,
  options: {
    record: { description: 'write the received messages to FILE instead of comparing them' },
    ...TARGET_OPTIONS,
    timeout: { value: 'SECONDS', description: 'timeout for each expected message (default 5)' },
    ...HELP,
  },
  positionals: [1, 2],
  takesServerCommand: true,
  async run(args) {
    const [file = '', server] = args.positionals
    const transcript = readTranscript(file)
    const target = targetOf(args, server)
    const timeout = timeoutOf(args)
    await abortOnSignal(async (signal) => {
      const toolHeaders = await listHeaders(target, transcript, signal)
      const channel = openChannel(args, target, toolHeaders)
      const stop = () => void channel.close()
      signal.addEventListener('abort', stop)
      const playing: Playing = {
        file,
        transcript,
        channel,
        signal,
        explain: target.explain,
        options: timeout === undefined ? {} : { timeout },
      }
      try {
        await (args.values.has('record') ? recordInto(playing) : compare(playing))
      } finally {
        await channel.close()
      }
    })
  },
}

interface Playing {
  file: string
  transcript: string
  channel: Channel
  signal: AbortSignal
  /** One line about a lost connection. */
  explain: ServerTarget['explain']
  options: PlayOptions
}

function readTranscript(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').replaceAll('\r\n', '\n')
  } catch (error) {
    throw new UsageError(fileProblem('read', file, error))
  }
  let steps: Step[]
  try {
    steps = parseTranscript(text)
  } catch (error) {
    throw new UsageError(`${file}, ${error instanceof Error ? error.message : String(error)}`)
  }
  if (steps.every(({ direction }) => direction === 'expect'))
    throw new UsageError(`${file} is not a transcript: no line starts with ">"`)
  return text
}

/** What the server's tools repeat in headers: listed first if the transcript calls tools without a handshake over HTTP. */
async function listHeaders(
  { target, label }: ServerTarget,
  transcript: string,
  signal: AbortSignal,
): Promise<ToolHeaders> {
  const toolHeaders = new ToolHeaders(({ message }) => warn(message))
  const callsTools = parseTranscript(transcript).some(
    ({ direction, text }) =>
      direction === 'send' && text.includes('"tools/call"') && text.includes(PROTOCOL_VERSION),
  )
  if (!isUrl(label) || !callsTools) return toolHeaders
  let client: Client | undefined
  try {
    client = await connect(target, { signal, info: { name: 'ccmcp', version: VERSION } })
    for await (const tool of client.tools({ signal })) toolHeaders.rememberPage({ tools: [tool] })
  } catch {
    // The transcript is played without the headers, and shows what is wrong.
    signal.throwIfAborted()
  } finally {
    await client?.close()
  }
  return toolHeaders
}

function openChannel(
  { values }: Arguments,
  { target }: ServerTarget,
  toolHeaders: ToolHeaders,
): Channel {
  let channel: Channel
  try {
    channel = describing(target.open(), toolHeaders)
  } catch (error) {
    throw new CommandError(
      3,
      `Cannot start the server: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!values.has('verbose')) return channel
  return tap(channel, showFrame)
}

/** HTTP repeats parts of a message in headers, so each text must be a message. */
function describing(channel: TargetChannel, toolHeaders: ToolHeaders): Channel {
  if (channel.http !== true) return channel
  return {
    send(frame) {
      const message = parseMessage(frame)
      if (message.kind === 'response' || message.kind === 'notification') return channel.send(frame)
      if (message.kind !== 'request')
        throw new UsageError(
          `Over HTTP, only single JSON-RPC messages can be sent, not ${truncate(frame, 100)}`,
        )
      const meta = message.params?.['_meta']
      const version = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
      const { kind, id, method, params } = message
      const protocolVersion = typeof version === 'string' ? version : undefined
      const headerParams = method === 'tools/call' ? toolHeaders.headerParamsFor(params) : undefined
      channel.send(frame, { kind, id, method, params, protocolVersion, headerParams })
    },
    receive: (receiver) => channel.receive(receiver),
    close: () => channel.close(),
  }
}

async function compare(playing: Playing): Promise<void> {
  const { file, transcript, channel, signal, explain, options } = playing
  let played: Awaited<ReturnType<typeof play>>
  try {
    played = await play(transcript, channel, options)
  } catch (error) {
    throw error instanceof SyntaxError ? new UsageError(`${file}: ${error.message}`) : error
  }
  signal.throwIfAborted() // messages that are missing because of the abort are not differences
  const { differences, broken } = played
  for (const difference of differences) print(`${file}, ${difference}\n`)
  if (broken !== undefined) throw new CommandError(3, explain(broken))
  if (differences.length > 0)
    throw new CommandError(1, `${file}: ${count(differences.length, 'difference')}`)
  const steps = parseTranscript(transcript)
  const sent = steps.filter(({ direction }) => direction === 'send').length
  print(`${file}: ${count(sent, 'message')} sent, ${steps.length - sent} received as expected\n`)
}

async function recordInto(playing: Playing): Promise<void> {
  const { file, transcript, channel, signal, explain, options } = playing
  const {
    transcript: recorded,
    unanswered,
    broken,
    garbage,
    unsent,
  } = await record(transcript, channel, options)
  // An incomplete recording must not replace a complete one.
  signal.throwIfAborted()
  if (broken !== undefined) throw new CommandError(3, `${explain(broken)}\n${file} was not changed`)
  if (garbage !== undefined)
    throw new CommandError(
      1,
      `The server wrote an invalid message to stdout: ${JSON.stringify(garbage.slice(0, 200))}\n${file} was not changed`,
    )
  if (unsent !== undefined) throw new CommandError(1, `${file}, ${unsent}\n${file} was not changed`)
  writeFileSync(file, recorded)
  const received = parseTranscript(recorded).filter(
    ({ direction }) => direction === 'expect',
  ).length
  print(
    `${file}: ${count(received, 'message')} written${recorded === transcript ? ', no changes' : ''}\n`,
  )
  if (unanswered.length > 0)
    throw new CommandError(1, `${file}: no response to line ${unanswered.join(', ')}`)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
