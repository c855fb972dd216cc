import { delimiter } from 'node:path'
import { nearest } from '../schema/names.js'

/** One option of a command, as `--help` shows it. */
interface Option {
  /** Its values, or what stands for its value in the help; without it, the option is a switch. */
  value?: readonly string[] | string
  /** Several values with commas; it may be given several times. */
  list?: true
  /** A path; it may be given several times. Its variable holds several with the separator of `PATH` between them. */
  paths?: true
  about: string
}

export type Options = Readonly<Record<string, Option>>

/** What a command line says. */
export interface Arguments {
  given: Map<string, string>
  /** What is no option. */
  words: string[]
  /** What stands after `--`. */
  command: string[] | undefined
}

/** Why a command does not succeed, in words for the person who gave it. */
export class Failure extends Error {
  override readonly name: string = 'Failure'
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** A command line that cannot be carried out: what is wrong and what to do. */
export class UsageError extends Failure {
  override readonly name = 'UsageError'

  constructor(message: string) {
    super(2, message)
  }
}

/** Reads `--name value`, `--name=value` and words; anything else is an error that names the nearest. */
export function readArguments(args: readonly string[], options: Options): Arguments {
  const found: Arguments = { given: new Map(), words: [], command: undefined }
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    if (arg === '--') {
      found.command = args.slice(i + 1)
      break
    }
    if (!arg.startsWith('-') || arg === '-') {
      found.words.push(arg)
      continue
    }
    const [name, option, inline] = find(arg, options)
    if (option.value === undefined) {
      if (inline !== undefined) throw new UsageError(`--${name} takes no value`)
      found.given.set(name, 'true')
      continue
    }
    const next = args[i + 1]
    // What looks like the next option is one; `--name=--value` says otherwise.
    const value = inline ?? (next?.startsWith('--') === true ? undefined : args[++i])
    if (value === undefined)
      throw new UsageError(`--${name} needs a value: ${valuesOf(option, ', ')}`)
    const separator = separatorOf(option)
    const before = separator === undefined ? undefined : found.given.get(name)
    found.given.set(
      name,
      checked(`--${name}`, option, before === undefined ? value : `${before}${separator}${value}`),
    )
  }
  return found
}

/** What stands between several values of one option: no path has a NUL in it. */
function separatorOf({ list, paths }: Option): string | undefined {
  return paths === true ? '\0' : list === true ? ',' : undefined
}

function find(
  arg: string,
  options: Options,
): [name: string, option: Option, inline: string | undefined] {
  const [, name = '', , inline] =
    /^--([^=]+)(=([\s\S]*))?$/.exec(arg === '-h' ? '--help' : arg) ?? []
  const option = Object.hasOwn(options, name) ? options[name] : undefined
  if (option !== undefined) return [name, option, inline]
  const known = Object.keys(options).map((each) => `--${each}`)
  throw new UsageError(
    `Unknown argument ${JSON.stringify(arg)}${suggestion(arg.split('=', 1)[0] ?? '', known)}`,
  )
}

function checked(name: string, { value: allowed }: Option, value: string): string {
  if (typeof allowed === 'object' && !allowed.includes(value))
    throw new UsageError(
      `${name} cannot be ${JSON.stringify(value)}; choose ${allowed.join(', ')}${/\d/.test(value) ? '' : suggestion(value, allowed)}`,
    )
  return value
}

function valuesOf({ value = '' }: Option, separator: string): string {
  return typeof value === 'string' ? value : value.join(separator)
}

/** The variable that stands for an option: `CCMCP_LOG_LEVEL` for `--log-level`. */
export function variableOf(option: string): string {
  return `CCMCP_${option.toUpperCase().replaceAll('-', '_')}`
}

const TRUE = /^(?:1|true|yes|on)$/i
const FALSE = /^(?:0|false|no|off)$/i

/** The options that are set by variables. An empty variable is none. */
export function readVariables(
  environment: NodeJS.ProcessEnv,
  options: Options,
): Map<string, string> {
  const given = new Map<string, string>()
  for (const [name, option] of Object.entries(options)) {
    const variable = variableOf(name)
    const value = environment[variable] ?? ''
    if (value === '' || name === 'help') continue
    const paths =
      option.paths === true ? value.split(delimiter).filter((path) => path !== '') : undefined
    if (paths !== undefined) {
      if (paths.length > 0) given.set(name, paths.join(separatorOf(option)))
    } else if (option.value !== undefined) given.set(name, checked(variable, option, value))
    else if (TRUE.test(value)) given.set(name, 'true')
    else if (!FALSE.test(value))
      throw new UsageError(`${variable} cannot be ${JSON.stringify(value)}; choose true, false`)
  }
  return given
}

/** The items of a list with commas. */
export function listOf(name: string, given: string): string[] {
  const items = given
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (items.length === 0) throw new UsageError(`--${name} needs at least one name`)
  return items
}

/** The paths of an option that takes several. */
export function pathsOf(given: string): string[] {
  return given.split('\0')
}

/** The bytes that an option says. */
export function bytesOf(name: string, given: string): number {
  const value = Number(given)
  if (!/^\d+$/.test(given) || !Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`--${name} must be a number of bytes, not ${JSON.stringify(given)}`)
  return value
}

export function describeOptions(options: Options): string {
  return columns(
    Object.entries(options).map(([name, option]) => [
      `--${name}${option.value === undefined ? '' : ` ${valuesOf(option, '|')}`}`,
      option.about,
    ]),
  )
}

/** Two columns, the left as wide as it needs to be; what is very wide stands on a line of its own. */
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

/** `; did you mean …?`, where something known is close to what was typed. */
export function suggestion(typed: string, known: readonly string[]): string {
  const meant = nearest(typed, known)
  return meant === undefined ? '' : `; did you mean ${meant}?`
}
