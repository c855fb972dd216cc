import { existsSync } from 'node:fs'
import { nearest } from '../schema/names.js'
import { type Options, UsageError } from './options.js'
import { isPair } from './pairs.js'
import { BUNDLED } from './servers.js'

/** Interpreters by file extension. */
const INTERPRETERS: Readonly<Record<string, string>> = { py: 'python3', rb: 'ruby', sh: 'sh' }

/** The part of a `Command` that is needed to read its arguments. */
interface CommandSyntax {
  usage: string
  options: Options
  positionals: readonly [min: number, max: number]
  takesPairs?: true
}

interface SplitArguments {
  /** Arguments of the command itself, such as the name of a tool. */
  positionals: string[]
  options: string[]
  /** Tool arguments that were passed without `--args`. */
  json: string | undefined
  pairs: string[]
  /** The argument in place of a server name, and those after it. */
  server: string[]
}

/** Throws a UsageError with a corrected command line if `--` before a server command or `--args` before arguments is missing. */
export function suggestCommand(command: CommandSyntax, args: readonly string[]): void {
  const end = args.indexOf('--')
  const serverCommand = end === -1 ? undefined : args.slice(end)
  const split = splitArguments(command, end === -1 ? args : args.slice(0, end))
  if (split === undefined) return
  const { positionals, options, json, pairs, server } = split
  const suggested =
    serverCommand === undefined
      ? guessServerCommand(server, Object.keys(command.options))
      : undefined
  if (json === undefined && suggested === undefined) return
  const name = command.usage.split(' ', 1)
  const rest = suggested === undefined ? [...server, ...options] : options
  const line = [
    'ccmcp',
    ...name,
    ...positionals,
    ...rest,
    ...(json === undefined ? [] : ['--args', json]),
    ...pairs,
  ]
  const target = suggested === undefined ? (serverCommand ?? []) : ['--', ...suggested]
  const rule =
    json === undefined ? 'Put the command of a server after "--"' : 'Pass arguments with --args'
  throw new UsageError(`${rule}; did you mean: ${[...line, ...target].map(quoted).join(' ')}`)
}

/** Undefined if help is requested or the command line has another error. */
function splitArguments(
  command: CommandSyntax,
  args: readonly string[],
): SplitArguments | undefined {
  const [needed] = command.positionals
  const split: SplitArguments = {
    positionals: [],
    options: [],
    json: undefined,
    pairs: [],
    server: [],
  }
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    const [, name = '', inline] = /^--([^=]+)(=[\s\S]*)?$/.exec(arg) ?? []
    const option = Object.hasOwn(command.options, name) ? command.options[name] : undefined
    if (arg === '-h' || name === 'help') return undefined
    if (option !== undefined)
      split.options.push(
        arg,
        ...(option.value !== undefined && inline === undefined ? args.slice(++i, i + 1) : []),
      )
    else if (isArgument(command, split, arg)) split.pairs.push(arg)
    else if (split.server.length > 0) split.server.push(arg)
    else if (arg.startsWith('-') && arg !== '-') return undefined
    else if (split.positionals.length < needed) split.positionals.push(arg)
    else if ('args' in command.options && split.json === undefined && /^\s*\{/.test(arg))
      split.json = arg
    else split.server.push(arg)
  }
  return split
}

function isArgument(
  { takesPairs, positionals: [needed] }: CommandSyntax,
  split: SplitArguments,
  arg: string,
) {
  return takesPairs === true && split.positionals.length >= needed && isPair(arg)
}

/** The server command that these arguments probably are; undefined if they may name a server. */
function guessServerCommand(
  [first, ...rest]: readonly string[],
  options: readonly string[],
): string[] | undefined {
  if (first === undefined || Object.hasOwn(BUNDLED, first) || /^https?:/i.test(first))
    return undefined
  if (rest.length === 0 && !existsSync(first))
    return /\S\s+\S/.test(first) ? first.trim().split(/\s+/) : undefined
  const [, extension = ''] = /\.(\w+)$/.exec(first) ?? []
  const isModule = /^[cm]?[jt]sx?$/.test(extension)
  const interpreter = Object.hasOwn(INTERPRETERS, extension) ? INTERPRETERS[extension] : undefined
  if (rest.length === 0) return interpreter === undefined ? undefined : [interpreter, first]
  // After a module, a typo in an option of ours is more likely than an argument of the module.
  const hasTypo = rest.some((arg) => arg.startsWith('--') && isTypo(arg, options))
  if (hasTypo && isModule) return undefined
  if (isModule) return ['node', first, ...rest]
  return interpreter === undefined ? [first, ...rest] : [interpreter, first, ...rest]
}

/** Whether an argument is one of the options with one letter wrong, or two in a long one. */
function isTypo(arg: string, options: readonly string[]): boolean {
  const known = options.map((name) => `--${name}`)
  return nearest(arg.split('=', 1)[0] ?? '', known, ({ length }) => length / 5) !== undefined
}

/** Quotes an argument for a shell. */
export function quoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`
}
