import { isObject } from '../is-object.js'
import {
  type Issues,
  type JsonSchema,
  describeValue,
  listTypes,
  listValues,
  mustBe,
  sizeOf,
} from './issue.js'
import { matches } from './pattern.js'
import type { Steps } from './steps.js'

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

/** Whether two JSON values are equal, regardless of the order of keys. */
function sameJson(one: unknown, other: unknown, steps: Steps): boolean {
  if (one === other) return true
  if (Array.isArray(one)) {
    steps.spend(one.length)
    return (
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, index) => sameJson(item, other[index], steps))
    )
  }
  if (!isObject(one) || !isObject(other)) return false
  const names = keysOf(one, steps)
  return (
    names.length === keysOf(other, steps).length &&
    names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name], steps))
  )
}

/** Returns whether the value is of the type. */
export function checkType(type: unknown, value: unknown, issues: Issues, steps: Steps): boolean {
  if (type === undefined) return true
  const types: unknown[] = Array.isArray(type) ? type : [type]
  steps.spend(types.length)
  const fits = types.some((each) => isOfType(each, value))
  if (!fits) issues.add(mustBe(listTypes(types), value))
  return fits
}

export function checkEnum(
  allowed: readonly unknown[],
  value: unknown,
  issues: Issues,
  steps: Steps,
): void {
  steps.spend(allowed.length / 2)
  if (issues.full || allowed.some((each) => sameJson(each, value, steps))) return
  const values = listValues(allowed)
  steps.spend(values.length / 2)
  issues.add(mustBe(values, value))
}

/** The names of members, to look at each of them. */
export function keysOf(value: object, steps: Steps): readonly string[] {
  const names = steps.namesOf(value)
  steps.spend(4 * names.length)
  return names
}

export type Named<Part> = readonly (readonly [name: string, part: Part])[]

/** Up to this many members of a schema for each member of a value, looking for all of them is faster. */
const FEW = 32

/** Selects from the members of a schema, in their order, those that a value of some names may have; undefined if they are few. */
export function selector<Part>(
  members: Named<Part>,
): ((names: readonly string[]) => Named<Part>) | undefined {
  if (members.length <= FEW) return undefined
  const positions = new Map(members.map(([name], position) => [name, position]))
  return (names) => {
    if (names.length * FEW > members.length) return members
    return names
      .flatMap((name) => positions.get(name) ?? [])
      .toSorted((one, other) => one - other)
      .flatMap((position) => members.slice(position, position + 1))
  }
}

/** The bounds of a number: the keyword, whether a number is within the bound, and the words for it. */
export const BOUNDS: readonly (readonly [
  keyword: string,
  holds: (value: number, bound: number) => boolean,
  words: string,
])[] = [
  ['minimum', (value, bound) => value >= bound, 'at least'],
  ['maximum', (value, bound) => value <= bound, 'at most'],
  ['exclusiveMinimum', (value, bound) => value > bound, 'greater than'],
  ['exclusiveMaximum', (value, bound) => value < bound, 'less than'],
]

export function checkNumber(schema: JsonSchema, value: number, issues: Issues, steps: Steps): void {
  for (const [keyword, holds, words] of BOUNDS) {
    const bound = schema[keyword]
    if (typeof bound === 'number' && !holds(value, bound))
      issues.add(mustBe(`${words} ${bound}`, value))
  }
  const { multipleOf } = schema
  if (typeof multipleOf !== 'number') return
  steps.spend(64)
  if (!isMultiple(value, multipleOf)) issues.add(mustBe(`a multiple of ${multipleOf}`, value))
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

export function checkString(schema: JsonSchema, value: string, issues: Issues, steps: Steps): void {
  if ('minLength' in schema || 'maxLength' in schema)
    checkBounds(schema, 'Length', sizeOf(value), 'characters', issues)
  const { pattern } = schema
  if (typeof pattern !== 'string') return
  if (!matches(pattern, value, steps))
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
  if (typeof least === 'number') checkSize(size, 'least', least, unit, issues)
  if (typeof most === 'number') checkSize(size, 'most', most, unit, issues)
}

export function checkSize(
  size: number,
  which: 'least' | 'most',
  limit: number,
  unit: string,
  issues: Issues,
): void {
  if (which === 'least' ? size < limit : size > limit)
    issues.add(`must have at ${which} ${limit} ${unit}, not ${size}`)
}

export function checkUnique(
  value: readonly unknown[],
  identities: Identities,
  issues: Issues,
  steps: Steps,
): void {
  steps.spend(16 * value.length)
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
  readonly #steps: Steps
  readonly #primitives = new Map<unknown, number>()
  readonly #containers = new Map<object, number>()
  readonly #contents = new Map<string, number>()
  #last = 0

  constructor(steps: Steps) {
    this.#steps = steps
  }

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
    this.#steps.spend(32 * value.length)
    return `[${value.map((item) => this.of(item)).join()}]`
  }

  #members(value: object): string {
    const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
    this.#steps.spend(64 * members.length)
    return `{${members.map(([name, part]) => `${JSON.stringify(name)}:${this.of(part)}`).join()}}`
  }

  #number<Key>(known: Map<Key, number>, key: Key): number {
    const before = known.get(key)
    if (before !== undefined) return before
    known.set(key, ++this.#last)
    return this.#last
  }
}
