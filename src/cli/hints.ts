import { existsSync } from 'node:fs'
import { type Options, UsageError, suggestion } from './options.js'
import { BUNDLED } from './servers.js'

/** What runs a file that is no JavaScript. */
const INTERPRETERS: Readonly<Record<string, string>> = { py: 'python3', rb: 'ruby', sh: 'sh' }

/** What has to be known of a command. */
interface Line {
  usage: string
  options: Options
  words: readonly [least: number, most: number]
}

interface Split {
  /** What the command itself takes, such as the name of a tool. */
  words: string[]
  options: string[]
  /** Arguments of a tool that were given as a word. */
  json: string | undefined
  /** The word that should name a server, and what follows it. */
  server: string[]
}

/** Throws with the command line that was probably meant, where the command of a server stands without `--`, or arguments without `--args`. */
export function suggestCommand(command: Line, args: readonly string[]): void {
  const end = args.indexOf('--')
  const given = end === -1 ? undefined : args.slice(end)
  const split = splitArguments(command, end === -1 ? args : args.slice(0, end))
  if (split === undefined) return
  const { words, options, json, server } = split
  const meant = given === undefined ? commandOf(server, Object.keys(command.options)) : undefined
  if (json === undefined && meant === undefined) return
  const name = command.usage.split(' ', 1)
  const rest = meant === undefined ? [...server, ...options] : options
  const line = [
    'ccmcp',
    ...name,
    ...words,
    ...rest,
    ...(json === undefined ? [] : ['--args', json]),
  ]
  const target = meant === undefined ? (given ?? []) : ['--', ...meant]
  const rule =
    json === undefined
      ? 'The command of a server comes after "--"'
      : 'Arguments are given with --args'
  throw new UsageError(`${rule}; did you mean: ${[...line, ...target].map(quoted).join(' ')}`)
}

/** Undefined where something else is wrong, or help is asked for. */
function splitArguments(command: Line, args: readonly string[]): Split | undefined {
  const [needed] = command.words
  const split: Split = { words: [], options: [], json: undefined, server: [] }
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
    else if (split.server.length > 0) split.server.push(arg)
    else if (arg.startsWith('-') && arg !== '-') return undefined
    else if (split.words.length < needed) split.words.push(arg)
    else if ('args' in command.options && split.json === undefined && /^\s*\{/.test(arg))
      split.json = arg
    else split.server.push(arg)
  }
  return split
}

/** The command that words mean which stand where a server is named; undefined where they may name one. */
function commandOf(
  [first, ...rest]: readonly string[],
  options: readonly string[],
): string[] | undefined {
  if (first === undefined || Object.hasOwn(BUNDLED, first) || /^https?:/i.test(first))
    return undefined
  if (rest.length === 0 && !existsSync(first))
    return /\S\s+\S/.test(first) ? first.trim().split(/\s+/) : undefined
  const [, extension = ''] = /\.(\w+)$/.exec(first) ?? []
  const isModule = /^[cm]?[jt]sx?$/.test(extension)
  const interpreter = isModule
    ? 'node'
    : Object.hasOwn(INTERPRETERS, extension)
      ? INTERPRETERS[extension]
      : undefined
  if (rest.length === 0)
    return isModule || interpreter === undefined ? undefined : [interpreter, first]
  // Behind a module, an option with a slip is more likely than an argument of its own.
  const slip = rest.some(
    (arg) =>
      arg.startsWith('--') &&
      suggestion(
        arg.split('=', 1)[0] ?? '',
        options.map((name) => `--${name}`),
      ) !== '',
  )
  if (slip && isModule) return undefined
  return interpreter === undefined ? [first, ...rest] : [interpreter, first, ...rest]
}

/** A word as a shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
