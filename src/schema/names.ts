/** Throws where a member is given that there is not: most of these are slips of the pen. `known` has a member for each name. */
export function checkNames(
  where: string,
  given: object,
  known: Readonly<Record<string, true>>,
): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue
    const names = Object.keys(known)
    const meant = nearest(name, names)
    throw new TypeError(
      `${where}: there is no "${name}"; ${meant === undefined ? `there are ${names.join(', ')}` : `did you mean "${meant}"?`}`,
    )
  }
}

/** Throws where a member is probably meant to be another, which is not there; whoever wants to may have members of their own. */
export function checkTypos(
  given: object,
  known: Readonly<Record<string, true>>,
  fail: (problem: string) => Error,
): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue
    // Who slips begins with the right letter, or with the next: "beta" is not "meta".
    const missing = Object.keys(known).filter(
      (word) => !Object.hasOwn(given, word) && word.slice(0, 2).includes(name.charAt(0)),
    )
    const meant = nearest(name, missing, ({ length }) => (length < 6 ? 1 : 2))
    if (meant !== undefined) throw fail(`there is no "${name}"; did you mean "${meant}"?`)
  }
}

/** The known word that was probably meant; `most` says how far from it one may be. */
export function nearest(
  typed: string,
  known: readonly string[],
  most = ({ length }: string) => Math.max(2, length / 3),
): string | undefined {
  const [found] = known
    // A word of another length is never near; that of a stranger may have megabytes.
    .filter((word) => Math.abs(word.length - typed.length) <= most(word))
    .map((word) => ({ word, distance: distance(typed, word) }))
    .toSorted((one, other) => one.distance - other.distance)
  return found !== undefined && found.distance <= most(found.word) ? found.word : undefined
}

/** How many letters must be changed, added, removed or swapped with the next to turn one word into the other. */
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
