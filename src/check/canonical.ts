import { isObject } from '../schema/issue.js'

/** JSON with sorted members: the same text for equal values. `indent`: spaces of each level; 0 for one line. */
export function canonical(value: unknown, indent = 0): string {
  return JSON.stringify(sorted(value), null, indent)
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  // Not by assignment: a member may be named __proto__.
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((name) => [name, sorted(value[name])]),
  )
}

/** Differences between two values, each as one line: `/path: before → after`. */
export function differences(before: unknown, after: unknown, max: number): string[] {
  const found: string[] = []
  const open: [path: string, before: unknown, after: unknown][] = [['', before, after]]
  for (let next = open.shift(); next !== undefined && found.length < max; next = open.shift()) {
    const [path, one, other] = next
    if (canonical(one) === canonical(other)) continue
    const names = namesOf(one, other)
    if (names === undefined) found.push(`${path || '/'}: ${shown(one)} → ${shown(other)}`)
    for (const name of names ?? []) open.push([`${path}/${name}`, at(one, name), at(other, name)])
  }
  return found
}

/** The members of both, if they are of the same kind. */
function namesOf(one: unknown, other: unknown): string[] | undefined {
  const areLists = Array.isArray(one) && Array.isArray(other)
  if (!areLists && !(isObject(one) && isObject(other))) return undefined
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
}

function at(value: unknown, name: string): unknown {
  const members = value as Readonly<Record<string, unknown>> // an object or an array
  return Object.hasOwn(members, name) ? members[name] : undefined
}

function shown(value: unknown): string {
  const text = value === undefined ? 'absent' : canonical(value)
  return text.length > 120 ? `${text.slice(0, 120)}…` : text
}
