import { createHash } from 'node:crypto'
import { type Definitions, KIND_NAMES, type Kind } from '../capture/definitions.js'
import { isObject } from '../schema/issue.js'
import { canonical, differences } from './canonical.js'
import type { Found } from './recording.js'
import { plainFinding } from './report.js'

/** Differences of one definition that are shown. */
const MAX_DIFFERENCES = 10
/** Changed definitions that are reported. */
const MAX_CHANGES = 500
const LOCK_VERSION = 1
const NAMES: Readonly<Record<Kind, string>> = {
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  resourceTemplates: 'resource template',
}

/** The text of a lock file: every definition in canonical form, with its digest. */
export function lockText(definitions: Definitions | undefined): string {
  const kinds = KIND_NAMES.map((kind) => {
    const items = [...(definitions?.listing(kind)?.items ?? [])]
    const locked = items.map(([name, definition]) => [
      name,
      { digest: digestOf(definition), definition },
    ])
    return [kind, Object.fromEntries(locked)]
  })
  const lock = { version: LOCK_VERSION, definitions: Object.fromEntries(kinds) as object }
  return `${canonical(lock, 2)}\n`
}

/**
 * Compares what a server lists with a lock file. Throws a SyntaxError if it is not one. `incomplete`: kinds whose list may be
 * incomplete, so nothing is reported as removed.
 */
export function checkLock(
  text: string,
  definitions: Definitions | undefined,
  incomplete: readonly Kind[] = [],
): Found[] {
  const locked = readLock(text)
  const changes = KIND_NAMES.flatMap((kind) => {
    const before = locked[kind]
    const now = definitions?.listing(kind)?.items ?? new Map<string, object>()
    const kept = incomplete.includes(kind) ? [] : Object.keys(before)
    const names = [...new Set([...kept, ...now.keys()])].toSorted()
    return names.flatMap((name) =>
      changesOf(Object.hasOwn(before, name) ? before[name] : undefined, now.get(name)).map(
        (change) => `${NAMES[kind]} ${JSON.stringify(name.slice(0, 100))} ${change}`,
      ),
    )
  })
  return changes.slice(0, MAX_CHANGES).map((change) => plainFinding('changed-definition', change))
}

/** The kinds of which a lock file has definitions. */
export function lockedKinds(text: string): Kind[] {
  const locked = readLock(text)
  return KIND_NAMES.filter((kind) => Object.keys(locked[kind]).length > 0)
}

function changesOf(before: unknown, now: unknown): string[] {
  if (now === undefined) return ['was removed']
  if (before === undefined) return ['was added']
  const { digest, definition } = isObject(before) ? before : {}
  if (digest === digestOf(now)) return []
  const lines = differences(definition, now, MAX_DIFFERENCES)
  return lines.length === 0 ? ['differs from its digest'] : lines
}

function digestOf(definition: unknown): string {
  return `sha256-${createHash('sha256').update(canonical(definition)).digest('base64')}`
}

function readLock(text: string): Record<Kind, Readonly<Record<string, unknown>>> {
  const value = JSON.parse(text) as unknown
  const { version, definitions } = isObject(value) ? value : {}
  if (version !== LOCK_VERSION || !isObject(definitions))
    throw new SyntaxError(`it is not a lock file of version ${LOCK_VERSION}`)
  const kinds = KIND_NAMES.map((kind) => [
    kind,
    isObject(definitions[kind]) ? definitions[kind] : {},
  ])
  return Object.fromEntries(kinds) as ReturnType<typeof readLock> // every kind, just made
}
