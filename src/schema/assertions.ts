import { isObject } from '../is-object.js'
import { type Issues, type JsonSchema, describeValue, sizeOf } from './issue.js'
import { matches } from './pattern.js'

/* Keywords that apply to a value as a whole, not to its members or items. */

export function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    default:
      return typeof value === type
  }
}

export function checkNumber(schema: JsonSchema, value: number, issues: Issues): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (typeof minimum === 'number' && !(value >= minimum))
    issues.add(`must be at least ${minimum}, not ${value}`)
  if (typeof maximum === 'number' && !(value <= maximum))
    issues.add(`must be at most ${maximum}, not ${value}`)
  if (typeof exclusiveMinimum === 'number' && !(value > exclusiveMinimum))
    issues.add(`must be greater than ${exclusiveMinimum}, not ${value}`)
  if (typeof exclusiveMaximum === 'number' && !(value < exclusiveMaximum))
    issues.add(`must be less than ${exclusiveMaximum}, not ${value}`)
  if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf))
    issues.add(`must be a multiple of ${multipleOf}, not ${value}`)
}

/** Computed in decimal: 0.3 is a multiple of 0.1, but not in binary floating point. */
function isMultiple(value: number, of: number): boolean {
  const [one, other] = [decimal(value), decimal(of)]
  const places = Math.min(one.exponent, other.exponent)
  const whole = ({ digits, exponent }: { digits: bigint; exponent: number }) =>
    digits * 10n ** BigInt(exponent - places)
  return whole(other) !== 0n && whole(one) % whole(other) === 0n
}

function decimal(value: number): { digits: bigint; exponent: number } {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? []
  return {
    digits: BigInt(`${sign}${whole}${fraction}`),
    exponent: Number(exponent) - fraction.length,
  }
}

export function checkString(schema: JsonSchema, value: string, issues: Issues): void {
  if ('minLength' in schema || 'maxLength' in schema)
    checkBounds(schema, 'Length', sizeOf(value), 'characters', issues)
  const { pattern } = schema
  if (typeof pattern !== 'string') return
  if (!matches(pattern, value))
    issues.add(`must match the pattern ${pattern}, not ${describeValue(value)}`)
}

export function checkBounds(
  schema: JsonSchema,
  suffix: string,
  size: number,
  unit: string,
  issues: Issues,
): void {
  const [least, most] = [schema[`min${suffix}`], schema[`max${suffix}`]]
  if (typeof least === 'number' && size < least)
    issues.add(`must have at least ${least} ${unit}, not ${size}`)
  if (typeof most === 'number' && size > most)
    issues.add(`must have at most ${most} ${unit}, not ${size}`)
}

export function checkUnique(
  value: readonly unknown[],
  identities: Identities,
  issues: Issues,
): void {
  const seen = new Map<number, number>()
  for (let index = 0; index < value.length; index++) {
    const identity = identities.of(value[index])
    const before = seen.get(identity)
    if (before !== undefined)
      return issues.add(`must not have the same item twice: ${before} and ${index} are equal`)
    seen.set(identity, index)
  }
}

/**
 * Assigns the same number to equal values. A container is identified by the numbers of its parts and visited once, so the
 * cost is linear in the value, even for nested arrays with `uniqueItems`.
 */
export class Identities {
  readonly #primitives = new Map<unknown, number>()
  readonly #containers = new Map<object, number>()
  readonly #contents = new Map<string, number>()
  #last = 0

  of(value: unknown): number {
    if (typeof value !== 'object' || value === null) return this.#number(this.#primitives, value)
    let found = this.#containers.get(value)
    if (found === undefined) {
      found = this.#number(
        this.#contents,
        Array.isArray(value) ? this.#items(value) : this.#members(value),
      )
      this.#containers.set(value, found)
    }
    return found
  }

  #items(value: readonly unknown[]): string {
    return `[${value.map((item) => this.of(item)).join()}]`
  }

  #members(value: object): string {
    const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
    return `{${members.map(([name, part]) => `${JSON.stringify(name)}:${this.of(part)}`).join()}}`
  }

  #number<Key>(known: Map<Key, number>, key: Key): number {
    const before = known.get(key)
    if (before !== undefined) return before
    known.set(key, ++this.#last)
    return this.#last
  }
}
