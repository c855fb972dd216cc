import { isObject } from '../is-object.js'
import { type Issue, type JsonSchema, MAX_ISSUES, describeValue, shorten } from './issue.js'

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | Words<Rest>
  : Text

/**
 * The members of an interface as one string: `namesOf<Options>()('host port')`. TypeScript types do not exist at run
 * time; this does not compile unless the names are exactly those of the interface.
 */
export function namesOf<Options>() {
  return <const Text extends string>(
    names: Text &
      ([keyof Options] extends [Words<Text>] ? unknown : Exclude<keyof Options, Words<Text>>) &
      ([Words<Text>] extends [keyof Options] ? unknown : keyof Options),
  ): Text => names
}

/** Throws if the options are not an object or one is unknown, with the most similar name. JavaScript would ignore both. */
export function checkNames(subject: string, given: object, known: string): void {
  if (!isObject(given))
    throw new TypeError(`${subject}: the options must be an object, not ${describeValue(given)}`)
  const names = known.split(' ')
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    const meant = nearest(name, names)
    const advice =
      meant === undefined ? `the options are ${names.join(', ')}` : `did you mean "${meant}"?`
    const error = new TypeError(`${subject}: unknown option "${name}"; ${advice}`)
    throw Object.assign(error, { code: 'UNKNOWN_OPTION' })
  }
}

/** Keywords by which a schema has members that are not among its `properties`. */
const OPEN = ['patternProperties', 'allOf', 'anyOf', 'oneOf', 'if', '$ref', '$dynamicRef']

/**
 * An issue for each argument that the schema does not know and no other issue names: it may be the one that is missing,
 * under a wrong name. Where other keywords may allow it, only if it is similar to one.
 */
export function unknownArguments(
  { properties, additionalProperties, ...schema }: JsonSchema,
  given: object,
  issues: readonly Issue[],
): Issue[] {
  const known = isObject(properties) ? properties : {}
  const missing = Object.keys(known).filter((name) => !Object.hasOwn(given, name))
  const isOpen =
    !isObject(properties) ||
    Object.keys(Object(additionalProperties)).length > 0 ||
    OPEN.some((keyword) => keyword in schema)
  const found: Issue[] = []
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name))
  for (const name of unknown.slice(0, MAX_ISSUES)) {
    const isNamed = ({ path, message: text }: Issue) =>
      path === name || text.includes(`"${name}"`) || text.includes(`'${name}'`)
    const meant = nearest(name, missing)
    if ((isOpen && meant === undefined) || issues.some(isNamed)) continue
    const advice = meant === undefined ? '' : `; did you mean ${meant}?`
    found.push({
      path: '',
      message: `unknown argument ${JSON.stringify(shorten(name, 100))}${advice}`,
    })
  }
  return found
}

/** The most similar known word, within the maximum edit distance for that word. */
export function nearest(
  typed: string,
  known: readonly string[],
  maxDistance = ({ length }: string) => Math.max(2, length / 3),
): string | undefined {
  const [found] = known
    // Lengths are compared first: a received word may have megabytes.
    .filter((word) => Math.abs(word.length - typed.length) <= maxDistance(word))
    .map((word) => ({ word, distance: distance(typed, word) }))
    .toSorted((one, other) => one.distance - other.distance)
  return found !== undefined && found.distance <= maxDistance(found.word) ? found.word : undefined
}

/** The edit distance: letters changed, added, removed or swapped with the next (Damerau-Levenshtein). */
function distance(one: string, other: string): number {
  let before: number[] = []
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const change = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      next.push(
        Math.min(
          change,
          (row[j] ?? 0) + 1,
          (next[j - 1] ?? 0) + 1,
          swapped ? (before[j - 2] ?? 0) + 1 : Infinity,
        ),
      )
    }
    before = row
    row = next
  }
  return row[other.length] ?? 0
}
