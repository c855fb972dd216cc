import { delimiter } from 'node:path'
import { nearest } from '../schema/names.js'

/** One option of a command, as `--help` shows it. */
interface Option {
  /** The allowed values, or a placeholder for the help. Without it, the option is a flag. */
  value?: readonly string[] | string
  /** Comma-separated; the option may be repeated. */
  list?: true
  /** A path; the option may be repeated. Its variable separates paths as `PATH` does. */
  paths?: true
  /** A letter that stands for the option: `f` for `-f`. */
  short?: string
  /** May be repeated; each value is kept as it is. */
  repeatable?: true
  description: string
}

export type Options = Readonly<Record<string, Option>>

/** A parsed command line. */
export interface Arguments {
  values: Map<string, string>
  /** The arguments that are not options. */
  positionals: string[]
  /** The arguments of a tool or prompt: `name=value`, `name:=JSON` or `name@=FILE`. */
  pairs: string[]
  /** The arguments after `--`. */
  command: string[] | undefined
}

/** An expected failure of a command: a message for the user, and an exit code. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError'
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** An invalid command line. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError'

  constructor(message: string) {
    super(2, message)
  }
}

/** Parses `--name value`, `--name=value` and positional arguments. */
export function readArguments(args: readonly string[], options: Options): Arguments {
  const parsed: Arguments = {
    values: new Map(),
    positionals: [],
    pairs: [],
    command: undefined,
  }
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    if (arg === '--') {
      parsed.command = args.slice(i + 1)
      break
    }
    if (!arg.startsWith('-') || arg === '-') {
      parsed.positionals.push(arg)
      continue
    }
    const [name, option, inline] = findOption(arg, options)
    if (option.value === undefined) {
      if (inline !== undefined) throw new UsageError(`--${name} takes no value`)
      parsed.values.set(name, 'true')
      continue
    }
    const next = args[i + 1]
    // A value that starts with `--` must be passed as `--name=--value`.
    const value = inline ?? (next?.startsWith('--') === true ? undefined : args[++i])
    if (value === undefined)
      throw new UsageError(`--${name} needs a value: ${valuesOf(option, ', ')}`)
    const separator = separatorOf(option)
    const before = separator === undefined ? undefined : parsed.values.get(name)
    parsed.values.set(
      name,
      checked(`--${name}`, option, before === undefined ? value : `${before}${separator}${value}`),
    )
  }
  return parsed
}

/** Joins repeated values of an option. NUL cannot occur in an argument. */
function separatorOf({ list, paths, repeatable }: Option): string | undefined {
  if (paths === true || repeatable === true) return '\0'
  return list === true ? ',' : undefined
}

function findOption(
  arg: string,
  options: Options,
): [name: string, option: Option, inline: string | undefined] {
  const [, name = '', , inline] = /^--([^=]+)(=([\s\S]*))?$/.exec(longForm(arg, options)) ?? []
  const option = Object.hasOwn(options, name) ? options[name] : undefined
  if (option !== undefined) return [name, option, inline]
  const known = Object.keys(options).map((each) => `--${each}`)
  throw new UsageError(
    `Unknown argument ${JSON.stringify(arg)}${suggestion(arg.split('=', 1)[0] ?? '', known)}`,
  )
}

function longForm(arg: string, options: Options): string {
  if (arg === '-h') return '--help'
  const found = Object.entries(options).find(
    ([, { short }]) => short !== undefined && arg === `-${short}`,
  )
  return found === undefined ? arg : `--${found[0]}`
}

function checked(name: string, { value: allowed }: Option, value: string): string {
  if (typeof allowed === 'object' && !allowed.includes(value))
    throw new UsageError(
      `${name}: invalid value ${JSON.stringify(value)}; expected ${allowed.join(', ')}${/\d/.test(value) ? '' : suggestion(value, allowed)}`,
    )
  return value
}

function valuesOf({ value = '' }: Option, separator: string): string {
  return typeof value === 'string' ? value : value.join(separator)
}

/** The environment variable of an option: `CCMCP_LOG_LEVEL` for `--log-level`. */
export function variableOf(option: string): string {
  return `CCMCP_${option.toUpperCase().replaceAll('-', '_')}`
}

const TRUE = /^(?:1|true|yes|on)$/i
const FALSE = /^(?:0|false|no|off)$/i

/** The options that are set by environment variables. Empty variables are ignored. */
export function readVariables(
  environment: NodeJS.ProcessEnv,
  options: Options,
): Map<string, string> {
  const values = new Map<string, string>()
  for (const [name, option] of Object.entries(options)) {
    const variable = variableOf(name)
    const value = environment[variable] ?? ''
    if (value === '' || name === 'help') continue
    const paths =
      option.paths === true ? value.split(delimiter).filter((path) => path !== '') : undefined
    if (paths !== undefined) {
      if (paths.length > 0) values.set(name, paths.join(separatorOf(option)))
    } else if (option.value !== undefined) values.set(name, checked(variable, option, value))
    else if (TRUE.test(value)) values.set(name, 'true')
    else if (!FALSE.test(value))
      throw new UsageError(
        `${variable}: invalid value ${JSON.stringify(value)}; expected true, false`,
      )
  }
  return values
}

/** The items of a comma-separated list. */
export function listOf(name: string, text: string): string[] {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (items.length === 0) throw new UsageError(`--${name} needs at least one value`)
  return items
}

/** The values of an option that was given several times. */
export function valuesOfRepeated(text: string | undefined): string[] {
  return text === undefined ? [] : text.split('\0')
}

/** The paths of a repeatable option. */
export function pathsOf(text: string): string[] {
  return text.split('\0')
}

/** The value of an option in bytes. */
export function bytesOf(name: string, text: string): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`--${name} must be a number of bytes, not ${JSON.stringify(text)}`)
  return value
}

export function describeOptions(options: Options): string {
  return columns(
    Object.entries(options).map(([name, option]) => [
      `--${name}${option.value === undefined ? '' : ` ${valuesOf(option, '|')}`}`,
      option.description,
    ]),
  )
}

/** Formats two columns. A left cell of more than 36 characters gets a line of its own. */
export function columns(rows: readonly (readonly [left: string, right: string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length).filter((length) => length <= 36)) + 2
  return rows
    .map(([left, right]) =>
      (left.length + 2 > width
        ? `  ${left}\n  ${' '.repeat(width)}${right}`
        : `  ${left.padEnd(width)}${right}`
      ).trimEnd(),
    )
    .join('\n')
}

/** `; did you mean …?`, if a known name is similar to the typed one. */
export function suggestion(typed: string, known: readonly string[]): string {
  const match = nearest(typed, known)
  return match === undefined ? '' : `; did you mean ${match}?`
}
