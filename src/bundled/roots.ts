import { sep } from 'node:path'

/** A directory that the file tools work in: its path without links, and as it was given. */
export interface Root {
  readonly real: string
  readonly given: string
}

/** The directories that the file tools work in, at least one; the first is where relative paths begin. */
export type RootList = readonly [first: Root, ...others: Root[]]

/** A place beneath a root, as the names that lead there. */
export interface Location {
  /** The path of the root, without links. */
  readonly root: string
  readonly names: readonly string[]
}

/**
 * Tells which root a path is in. A root inside another one is reached from the
 * outer one: its own name can be changed by whoever may write there, and is
 * not relied on.
 */
export class Roots {
  /** As they were given, the first one first. */
  readonly given: readonly string[]
  readonly #first: Location
  /** Every name of a root, and where it is. */
  readonly #known: readonly { readonly names: readonly string[]; readonly location: Location }[]

  constructor(roots: RootList) {
    this.given = [...new Set(roots.map(({ given }) => given))]
    this.#first = beneathOutermost(roots[0], roots)
    this.#known = roots.flatMap((root) => {
      const location = beneathOutermost(root, roots)
      return [root.real, root.given].map((path) => ({ names: namesOf(path), location }))
    })
  }

  fromFirst(names: readonly string[]): Location {
    return { root: this.#first.root, names: [...this.#first.names, ...names] }
  }

  /** Where an absolute path leads: beneath the longest root that it begins with, or (undefined) outside of all of them. */
  locate(names: readonly string[]): Location | undefined {
    let found: Location | undefined
    let longest = -1
    for (const { names: known, location } of this.#known) {
      const inside = rest(names, known)
      if (inside === undefined || known.length <= longest) continue
      longest = known.length
      found = { root: location.root, names: [...location.names, ...inside] }
    }
    return found
  }
}

function beneathOutermost({ real }: Root, roots: readonly Root[]): Location {
  const names = namesOf(real)
  const around = roots
    .map((each) => each.real)
    .filter((other) => rest(names, namesOf(other)) !== undefined)
  const root = around.reduce((one, other) => (other.length < one.length ? other : one))
  return { root, names: names.slice(namesOf(root).length) }
}

/** The names in a path; those of an absolute path on Windows begin with the drive. */
export function namesOf(path: string): string[] {
  return path.split(sep === '/' ? '/' : /[\\/]/).filter((name) => name !== '' && name !== '.')
}

/** What follows the names of a root; undefined where they are others. */
function rest(names: readonly string[], root: readonly string[]): readonly string[] | undefined {
  const same = (one: string, other = '') =>
    one === other || (sep !== '/' && one.toLowerCase() === other.toLowerCase())
  return root.every((name, index) => same(name, names[index]))
    ? names.slice(root.length)
    : undefined
}
