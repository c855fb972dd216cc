import { readFileSync, writeFileSync } from 'node:fs'
import { type PlayOptions, play } from '../harness/play.js'
import { record } from '../harness/record.js'
import { type Step, parseTranscript } from '../harness/transcript.js'
import type { Channel } from '../jsonrpc/channel.js'
import { tap } from '../jsonrpc/channel.js'
import { type Command, HELP } from './command.js'
import { type Arguments, Failure, UsageError } from './options.js'
import { print } from './print.js'
import {
  TARGET_NOTES,
  TARGET_OPTIONS,
  interruptible,
  showFrame,
  targetOf,
  timeoutOf,
} from './target.js'

export const playCommand: Command = {
  usage: 'play FILE [SERVER | -- COMMAND] [options]',
  about:
    'Replays a transcript against a server and shows where its answers differ from those in the file.',
  notes: `In a transcript, lines that begin with ">" are sent, lines that begin with "<" are expected in that order,
and all other lines are prose. In an expected message, * is any value, $name any value that is remembered (a
later ">" line with $name sends it), and ~"took * ms" a text with wildcards. --record keeps the ">" lines and
the prose, and writes what came; lines that fit what came stay as they are.

${TARGET_NOTES.replace('an error from the server', 'something differs')}`,
  options: {
    record: { about: 'write what comes back into FILE, instead of comparing it' },
    ...TARGET_OPTIONS,
    timeout: { value: 'SECONDS', about: 'how long to wait for an expected message (default 5)' },
    ...HELP,
  },
  words: [1, 2],
  takesCommand: true,
  async run(args) {
    const [file = '', word] = args.words
    const transcript = readTranscript(file)
    const target = targetOf(args, word)
    const timeout = timeoutOf(args)
    await interruptible(async (signal) => {
      const channel = openChannel(args, target)
      const stop = () => void channel.close()
      signal.addEventListener('abort', stop)
      const playing: Playing = {
        file,
        transcript,
        channel,
        signal,
        options: timeout === undefined ? {} : { timeout },
      }
      try {
        await (args.given.has('record') ? recordInto(playing) : compare(playing))
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
  options: PlayOptions
}

function readTranscript(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').replaceAll('\r\n', '\n')
  } catch (error) {
    throw new UsageError(
      `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  let steps: Step[]
  try {
    steps = parseTranscript(text)
  } catch (error) {
    throw new UsageError(`${file}, ${error instanceof Error ? error.message : String(error)}`)
  }
  if (steps.every(({ direction }) => direction === 'expect'))
    throw new UsageError(`${file} is no transcript: no line of it begins with ">"`)
  return text
}

function openChannel({ given }: Arguments, target: ReturnType<typeof targetOf>): Channel {
  let channel: Channel
  try {
    channel = target.open()
  } catch (error) {
    throw new Failure(
      3,
      `The server could not be started: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!given.has('verbose')) return channel
  return tap(channel, showFrame)
}

async function compare({ file, transcript, channel, signal, options }: Playing): Promise<void> {
  let played: Awaited<ReturnType<typeof play>>
  try {
    played = await play(transcript, channel, options)
  } catch (error) {
    throw error instanceof SyntaxError ? new UsageError(`${file}: ${error.message}`) : error
  }
  signal.throwIfAborted() // what did not come then is no difference
  const { differences, broken } = played
  for (const difference of differences) print(`${file}, ${difference}\n`)
  if (broken !== undefined) throw new Failure(3, broken.message)
  if (differences.length > 0)
    throw new Failure(1, `${file}: ${count(differences.length, 'difference')}`)
  const steps = parseTranscript(transcript)
  const sent = steps.filter(({ direction }) => direction === 'send').length
  print(`${file}: ${count(sent, 'message')} sent, ${steps.length - sent} came as expected\n`)
}

async function recordInto({ file, transcript, channel, signal, options }: Playing): Promise<void> {
  const {
    transcript: recorded,
    unanswered,
    broken,
    garbage,
    unsent,
  } = await record(transcript, channel, options)
  // Half a conversation must not replace a whole one.
  signal.throwIfAborted()
  if (broken !== undefined) throw new Failure(3, `${broken.message}\n${file} was left as it is`)
  if (garbage !== undefined)
    throw new Failure(
      1,
      `The server prints what is no message: ${JSON.stringify(garbage.slice(0, 200))}\n${file} was left as it is`,
    )
  if (unsent !== undefined) throw new Failure(1, `${file}, ${unsent}\n${file} was left as it is`)
  writeFileSync(file, recorded)
  const came = parseTranscript(recorded).filter(({ direction }) => direction === 'expect').length
  print(
    `${file}: ${count(came, 'message')} written${recorded === transcript ? ', nothing has changed' : ''}\n`,
  )
  if (unanswered.length > 0)
    throw new Failure(1, `${file}: no answer came to line ${unanswered.join(', ')}`)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
