import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { nearest } from '../schema/names.js'
import { truncate } from './format.js'
import { type Options, UsageError } from './options.js'
import { isPair } from './pairs.js'
import { BUNDLED } from './servers.js'

/** Interpreters by file extension. */
const INTERPRETERS: Readonly<Record<string, string>> = { py: 'python3', rb: 'ruby', sh: 'sh' }

const EXTENSION = /\.(\w+)$/
const MODULE = /^[cm]?[jt]sx?$/

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
  /** The first option that the command does not have; it is one of the pairs. */
  unknown: string | undefined
  /** The argument in place of a server name, and those after it. */
  server: string[]
}

/** Throws a UsageError with a corrected command line if one can be meant: `--` before a server command, `name=value` or `--args` for arguments. */
export function suggestCommand(command: CommandSyntax, args: readonly string[]): void {
  const end = args.indexOf('--')
  const given = end === -1 ? [] : args.slice(end)
  const split = splitArguments(command, end === -1 ? args : args.slice(0, end), end !== -1)
  if (split === undefined) return
  if (split.json !== undefined && !isJson(split.json))
    throw new UsageError(
      `${truncate(split.json, 200)} is not valid JSON; pass arguments with --args '{"a":2}' or as a=2`,
    )
  const isSwapped = given.length === 0 && command.takesPairs === true && swap(split)
  const words = command.takesPairs === true ? takeWords(split, given.length > 0) : []
  const { positionals, options, json, pairs, unknown, server } = split
  const rules = [
    [isSwapped, 'The name comes before the server'],
    [unknown !== undefined, `Unknown option ${unknown}; pass arguments as name=value`],
    [words.length > 0, 'Pass arguments as name=value'],
    [json !== undefined, 'Pass arguments with --args'],
  ] as const
  const [first = ''] = server
  const suggested =
    given.length === 0 ? guessServerCommand(server, Object.keys(command.options)) : undefined
  const isMissing = server.length === 1 && !/\s/.test(first) && !existsSync(first)
  const rule =
    rules.find(([applies]) => applies)?.[1] ??
    (suggested &&
      `${isMissing ? `${first} does not exist. ` : ''}Put the command of a server after "--"`)
  if (rule === undefined) return
  const line = [
    'ccmcp',
    ...command.usage.split(' ', 1),
    ...positionals,
    ...(suggested === undefined ? server : []),
    ...options,
    ...(json === undefined ? [] : ['--args', json]),
    ...pairs,
    ...(suggested === undefined ? given : ['--', ...suggested]),
  ]
  throw new UsageError(`${rule}; did you mean: ${line.map(quoted).join(' ')}`)
}

/** Exchanges the name of a tool or prompt and the server, if they are in the wrong order. */
function swap(split: SplitArguments): boolean {
  const [file = ''] = split.positionals
  const [name, ...rest] = split.server
  const isReversed =
    (/^https?:/i.test(file) || (/[\\/.]/.test(file) && existsSync(file))) &&
    name !== undefined &&
    !isServer(name) &&
    !existsSync(name)
  if (isReversed) {
    split.positionals = [name]
    split.server = [file, ...rest]
  }
  return isReversed
}

/** Takes the words that can only be arguments of a tool or prompt from those in place of a server, and makes them pairs. */
function takeWords(split: SplitArguments, hasCommand: boolean): string[] {
  const [first = ''] = split.server
  const start = isServer(first) ? 1 : 0
  const words = split.server.slice(start)
  if (words.some((word) => /^-\D/.test(word))) return []
  if (start === 0 && !hasCommand && mayStartServer(split.server)) return []
  split.server.length = Math.min(start, split.server.length)
  for (let i = 0; i < words.length; i += 2) {
    const [name = '', value] = words.slice(i, i + 2)
    if (value === undefined || !/^[A-Za-z_][\w.-]*$/.test(name))
      throw new UsageError(
        `Pass arguments as name=value, such as a=2, not ${words.map(quoted).join(' ')}; "ccmcp list" shows their names`,
      )
    split.pairs.push(`${name}=${value}`)
  }
  return words
}

/** Whether these words can be a server, or the command of one. */
function mayStartServer(words: readonly string[]): boolean {
  const [first = ''] = words
  const [program = ''] = first.trim().split(/\s+/)
  // One word is reported as an unknown server, which may be a typo.
  if (words.length === 1 && program === first && !isJson(first)) return true
  return /[\\/]/.test(program) || existsSync(program) || isOnPath(program)
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) =>
      ['', '.exe', '.cmd', '.bat'].some((end) => existsSync(join(folder, `${program}${end}`))),
    )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Whether an argument names a bundled server, a URL or a script. */
function isServer(argument: string): boolean {
  const [, extension = ''] = EXTENSION.exec(argument) ?? []
  return (
    Object.hasOwn(BUNDLED, argument) ||
    /^https?:/i.test(argument) ||
    MODULE.test(extension) ||
    Object.hasOwn(INTERPRETERS, extension)
  )
}

/** Undefined if help is requested or the command line has another error. */
function splitArguments(
  command: CommandSyntax,
  args: readonly string[],
  hasCommand: boolean,
): SplitArguments | undefined {
  const [needed] = command.positionals
  const split: SplitArguments = {
    positionals: [],
    options: [],
    json: undefined,
    pairs: [],
    unknown: undefined,
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
    else if (isArgumentOption(command, split, arg)) {
      const next = args[i + 1]
      // A URL is rather the value of the option.
      const isServerNext =
        !hasCommand &&
        split.server.length === 0 &&
        isServer(next ?? '') &&
        !/^https?:/i.test(next ?? '')
      const isFlag =
        inline === undefined && (next === undefined || /^--|=/.test(next) || isServerNext)
      split.unknown ??= `--${name}`
      split.pairs.push(`${name}${isFlag ? '=true' : (inline ?? `=${args[++i]}`)}`)
    } else if (isArgument(command, split, arg)) split.pairs.push(arg)
    else if (split.server.length > 0) split.server.push(arg)
    else if (/^-[^\d]/.test(arg)) return undefined
    else if (split.positionals.length < needed) split.positionals.push(arg)
    else if ('args' in command.options && split.json === undefined && /^\s*\{/.test(arg))
      split.json = arg
    else split.server.push(arg)
  }
  return split
}

/** Whether an option that the command does not have is probably an argument of the tool or prompt. */
function isArgumentOption(command: CommandSyntax, split: SplitArguments, arg: string): boolean {
  const [server] = split.server
  return (
    command.takesPairs === true &&
    split.positionals.length >= command.positionals[0] &&
    (server === undefined || isServer(server)) &&
    /^--[A-Za-z_]/.test(arg) &&
    !isTypo(arg, Object.keys(command.options))
  )
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
  if (rest.length === 0 && /\S\s+\S/.test(first) && !existsSync(first))
    return first.trim().split(/\s+/)
  const [, extension = ''] = EXTENSION.exec(first) ?? []
  const isModule = MODULE.test(extension)
  const interpreter = Object.hasOwn(INTERPRETERS, extension) ? INTERPRETERS[extension] : undefined
  // A name with several dots that is not a file is rather a host.
  if (rest.length === 0)
    return interpreter === undefined || (/^[^\\/]*\.[^\\/]*\./.test(first) && !existsSync(first))
      ? undefined
      : [interpreter, first]
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
