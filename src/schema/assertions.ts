import { type Issue, type JsonSchema, describeValue, isRecord, sizeOf } from './issue.js'
import { matches } from './pattern.js'

/* What can be said of a value by itself, without a look at its parts. */

/** What applying a schema to a value has shown: faults, and which members and items it has spoken about. */
export class Findings {
  readonly issues: Issue[] = []
  readonly members = new Set<string>()
  readonly items = new Set<number>()

  add(path: string, message: string): void {
    this.issues.push({ path, message })
  }

  /** Takes over what another schema has found about the same value. */
  join(other: Findings): void {
    this.issues.push(...other.issues)
    this.cover(other)
  }

  /** Takes over only which parts the other has spoken about. */
  cover({ members, items }: Findings): void {
    for (const name of members) this.members.add(name)
    for (const item of items) this.items.add(item)
  }

  get fit(): boolean {
    return this.issues.length === 0
  }
}

export function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    default:
      return typeof value === type
  }
}

export function numbers(schema: JsonSchema, value: number, path: string, found: Findings): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (typeof minimum === 'number' && !(value >= minimum)) found.add(path, `must be at least ${minimum}, not ${value}`)
  if (typeof maximum === 'number' && !(value <= maximum)) found.add(path, `must be at most ${maximum}, not ${value}`)
  if (typeof exclusiveMinimum === 'number' && !(value > exclusiveMinimum))
    found.add(path, `must be greater than ${exclusiveMinimum}, not ${value}`)
  if (typeof exclusiveMaximum === 'number' && !(value < exclusiveMaximum))
    found.add(path, `must be less than ${exclusiveMaximum}, not ${value}`)
  if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf)) found.add(path, `must be a multiple of ${multipleOf}, not ${value}`)
}

/** In decimals, as the numbers are written: 0.3 is a multiple of 0.1. */
function isMultiple(value: number, of: number): boolean {
  const [one, other] = [decimal(value), decimal(of)]
  const places = Math.min(one.exponent, other.exponent)
  const whole = ({ digits, exponent }: { digits: bigint; exponent: number }) => digits * 10n ** BigInt(exponent - places)
  return whole(other) !== 0n && whole(one) % whole(other) === 0n
}

function decimal(value: number): { digits: bigint; exponent: number } {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? []
  return { digits: BigInt(`${sign}${whole}${fraction}`), exponent: Number(exponent) - fraction.length }
}

export function strings(schema: JsonSchema, value: string, path: string, found: Findings): void {
  if ('minLength' in schema || 'maxLength' in schema) bounds(schema, 'Length', sizeOf(value), 'characters', path, found)
  const { pattern } = schema
  if (typeof pattern !== 'string') return
  const matching = matches(pattern, value)
  if (matching === undefined) found.add(path, `is too long to be compared with the pattern ${pattern}`)
  else if (!matching) found.add(path, `must match the pattern ${pattern}, not ${describeValue(value)}`)
}

export function bounds(schema: JsonSchema, suffix: string, size: number, unit: string, path: string, found: Findings): void {
  const [least, most] = [schema[`min${suffix}`], schema[`max${suffix}`]]
  if (typeof least === 'number' && size < least) found.add(path, `must have at least ${least} ${unit}, not ${size}`)
  if (typeof most === 'number' && size > most) found.add(path, `must have at most ${most} ${unit}, not ${size}`)
}

export function unique(value: readonly unknown[], path: string, found: Findings): void {
  const seen = new Map<string, number>()
  for (const [index, item] of value.entries()) {
    const written = canonical(item)
    const before = seen.get(written)
    if (before !== undefined) {
      found.add(path, `must not have the same item twice: ${before} and ${index} are equal`)
      return
    }
    seen.set(written, index)
  }
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    isRecord(member) ? Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1))) : member,
  )
}
