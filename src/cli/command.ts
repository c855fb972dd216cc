import {
  type Arguments,
  type Options,
  UsageError,
  describeOptions,
  readArguments,
} from './options.js'

/** A command of the command line. */
export interface Command {
  /** The usage line, without `ccmcp`. */
  usage: string
  /** What it does, in one or two sentences. */
  description: string
  /** The help after the options. */
  notes?: string
  options: Options
  /** Minimum and maximum number of positional arguments. */
  positionals: readonly [min: number, max: number]
  /** Whether it takes the command of a server after `--`. */
  takesServerCommand?: true
  /** Whether it takes `name=value` for a tool or prompt. */
  takesPairs?: true
  run(args: Arguments): Promise<void>
}

export const HELP = { help: { description: 'show this help' } } as const satisfies Options

function formatHelp({ usage, description, notes, options }: Command): string {
  const help = `Usage: ccmcp ${usage}\n\n${description}\n\n${describeOptions(options)}\n`
  return notes === undefined ? help : `${help}\n${notes}\n`
}

/** The name of a positional argument in the usage line, such as TOOL. */
function missingArgument({ usage }: Command, index: number): string {
  return usage.split(' ')[index + 1] ?? 'argument'
}

export async function runCommand(command: Command, args: readonly string[]): Promise<void> {
  if (command.takesServerCommand === true)
    (await import('./hints.js')).suggestCommand(command, args)
  const parsed = readArguments(args, command.options)
  if (parsed.values.has('help')) {
    const { print } = await import('./print.js')
    print(formatHelp(command))
    return
  }
  const [min, max] = command.positionals
  if (command.takesPairs === true) {
    const { isPair } = await import('./pairs.js')
    const rest = parsed.positionals.splice(min)
    parsed.pairs = rest.filter(isPair)
    parsed.positionals.push(...rest.filter((argument) => !isPair(argument)))
  }
  const extra = parsed.positionals[max]
  if (extra !== undefined) throw new UsageError(`Unknown argument ${JSON.stringify(extra)}`)
  if (parsed.positionals.length < min)
    throw new UsageError(
      `Missing ${missingArgument(command, parsed.positionals.length)}; usage: ccmcp ${command.usage}`,
    )
  if (parsed.command !== undefined && command.takesServerCommand !== true)
    throw new UsageError(`This command takes no "--"; usage: ccmcp ${command.usage}`)
  await command.run(parsed)
}
