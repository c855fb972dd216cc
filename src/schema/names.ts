import { isObject } from '../is-object.js'
import { describeValue } from './issue.js'

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
