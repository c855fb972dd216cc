import {
  type Arguments,
  type Options,
  UsageError,
  describeOptions,
  readArguments,
} from './options.js'

/** A command of the command line. */
export interface Command {
  /** What may follow `ccmcp`. */
  usage: string
  /** What it does, in one sentence. */
  about: string
  /** The rest of its help. */
  notes?: string
  options: Options
  /** How many words it takes, at least and at most. */
  words: readonly [least: number, most: number]
  /** Whether the command of a server may follow after `--`. */
  takesCommand?: true
  run(args: Arguments): Promise<void>
}

export const HELP = { help: { about: 'show this help' } } as const satisfies Options

function helpOf({ usage, about, notes, options }: Command): string {
  return `ccmcp ${usage}\n\n${about}\n\n${describeOptions(options)}\n${notes === undefined ? '' : `\n${notes}\n`}`
}

export async function runCommand(command: Command, args: readonly string[]): Promise<void> {
  if (command.takesCommand === true) (await import('./hints.js')).suggestCommand(command, args)
  const found = readArguments(args, command.options)
  if (found.given.has('help')) {
    const { print } = await import('./print.js')
    print(helpOf(command))
    return
  }
  const [least, most] = command.words
  const extra = found.words[most]
  if (extra !== undefined) throw new UsageError(`Unknown argument ${JSON.stringify(extra)}`)
  if (found.words.length < least)
    throw new UsageError(`Something is missing; the usage is: ccmcp ${command.usage}`)
  if (found.command !== undefined && command.takesCommand !== true)
    throw new UsageError(`No command can follow here; the usage is: ccmcp ${command.usage}`)
  await command.run(found)
}
