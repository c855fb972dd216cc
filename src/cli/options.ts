/** A command line that cannot be carried out: what is wrong and what to do. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** One option of a command, as `--help` shows it. */
export interface Option {
  /** Its values, or what stands for its value in the help; without it, the option is a switch. */
  value?: readonly string[] | string
  about: string
}

/** Reads `--name value` and `--name=value`; anything else is an error that names the nearest. */
export function readOptions(args: readonly string[], options: Readonly<Record<string, Option>>): Map<string, string> {
  const given = new Map<string, string>()
  for (let i = 0; i < args.length; i++) {
    const [, name = '', , inline] = /^--([^=]+)(=([\s\S]*))?$/.exec(args[i] ?? '') ?? []
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined)
      throw new UsageError(
        `Unknown argument ${JSON.stringify(args[i])}${suggestion(
          (args[i] ?? '').split('=', 1)[0] ?? '',
          Object.keys(options).map((known) => `--${known}`),
        )}`,
      )
    if (option.value === undefined) {
      if (inline !== undefined) throw new UsageError(`--${name} takes no value`)
      given.set(name, 'true')
      continue
    }
    const value = inline ?? args[++i]
    if (value === undefined)
      throw new UsageError(`--${name} needs a value: ${typeof option.value === 'string' ? option.value : option.value.join(', ')}`)
    if (typeof option.value !== 'string' && !option.value.includes(value)) {
      throw new UsageError(
        `--${name} cannot be ${JSON.stringify(value)}; choose ${option.value.join(', ')}${suggestion(value, option.value)}`,
      )
    }
    given.set(name, value)
  }
  return given
}

export function describeOptions(options: Readonly<Record<string, Option>>): string {
  const rows = Object.entries(options).map(([name, { value, about }]) => {
    const shown = value === undefined ? '' : ` ${typeof value === 'string' ? value : value.join('|')}`
    return [`  --${name}${shown}`, about] as const
  })
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  return rows.map(([left, about]) => left.padEnd(width) + about).join('\n')
}

/** `; did you mean …?`, where something known is close to what was typed. */
export function suggestion(typed: string, known: readonly string[]): string {
  const nearest = known
    .map((word) => ({ word, distance: distance(typed, word) }))
    .toSorted((one, other) => one.distance - other.distance)[0]
  return nearest !== undefined && nearest.distance <= Math.max(2, nearest.word.length / 3) ? `; did you mean ${nearest.word}?` : ''
}

/** How many letters must be changed, added or removed to turn one word into the other. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const change = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}
