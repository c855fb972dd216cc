import { sep } from 'node:path'

/** A directory that the file tools may access: its real path, and the path as given. */
export interface Root {
  readonly real: string
  readonly given: string
}

/** The directories that the file tools may access. Relative paths start at the first. */
export type RootList = readonly [first: Root, ...others: Root[]]

/** A path under a root. */
export interface Location {
  /** The real path of the root. */
  readonly root: string
  readonly segments: readonly string[]
}

/**
 * Finds the root of a path. A root inside another root is reached from the
 * outer one, because a process that may write there can rename the inner one.
 */
export class Roots {
  /** The paths as given, in order. */
  readonly given: readonly string[]
  readonly #first: Location
  /** Every path of a root, and its location. */
  readonly #known: readonly { readonly segments: readonly string[]; readonly location: Location }[]

  constructor(roots: RootList) {
    this.given = [...new Set(roots.map(({ given }) => given))]
    this.#first = inOutermostRoot(roots[0], roots)
    this.#known = roots.flatMap((root) => {
      const location = inOutermostRoot(root, roots)
      return [root.real, root.given].map((path) => ({ segments: segmentsOf(path), location }))
    })
  }

  inFirstRoot(segments: readonly string[]): Location {
    return { root: this.#first.root, segments: [...this.#first.segments, ...segments] }
  }

  /** Locates an absolute path under the longest root that contains it; undefined if none does. */
  locate(segments: readonly string[]): Location | undefined {
    let found: Location | undefined
    let longest = -1
    for (const { segments: known, location } of this.#known) {
      const inside = relativeSegments(segments, known)
      if (inside === undefined || known.length <= longest) continue
      longest = known.length
      found = { root: location.root, segments: [...location.segments, ...inside] }
    }
    return found
  }
}

function inOutermostRoot({ real }: Root, roots: readonly Root[]): Location {
  const segments = segmentsOf(real)
  const containing = roots
    .map((each) => each.real)
    .filter((other) => relativeSegments(segments, segmentsOf(other)) !== undefined)
  const root = containing.reduce((one, other) => (other.length < one.length ? other : one))
  return { root, segments: segments.slice(segmentsOf(root).length) }
}

/** The segments of a path. On Windows the first segment of an absolute path is the drive. */
export function segmentsOf(path: string): string[] {
  return path.split(sep === '/' ? '/' : /[\\/]/).filter((name) => name !== '' && name !== '.')
}

/** The segments after those of a root; undefined if the path is not under it. */
function relativeSegments(
  segments: readonly string[],
  root: readonly string[],
): readonly string[] | undefined {
  const same = (one: string, other = '') =>
    one === other || (sep !== '/' && one.toLowerCase() === other.toLowerCase())
  return root.every((name, index) => same(name, segments[index]))
    ? segments.slice(root.length)
    : undefined
}
