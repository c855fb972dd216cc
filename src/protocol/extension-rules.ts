import { revisions } from './revisions/index.js'

/* What is the same for the extensions of servers and clients. https://modelcontextprotocol.io/seps/2133-extensions */

/** https://modelcontextprotocol.io/specification/2026-07-28/basic#meta */
const LABEL = '[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?'
const ID = new RegExp(`^${LABEL}(?:\\.${LABEL})*/[A-Za-z0-9](?:[\\w.-]*[A-Za-z0-9])?$`)

export const CORE_RESULT_TYPES: readonly string[] = ['complete', 'input_required']

/** Throws if the id or the revisions of an extension are not valid. */
export function checkIdentity(where: string, id: unknown, named: unknown): void {
  if (typeof id !== 'string' || !ID.test(id))
    throw new TypeError(`${where}: "id" must be a prefix, a slash and a name: com.example/name`)
  if (named === undefined) return
  if (!Array.isArray(named) || named.length === 0)
    throw new TypeError(
      `${where}: "revisions" must list at least one protocol revision; leave it out for all`,
    )
  const unknown: unknown = named.find((name) => !revisions.some((each) => each.id === name))
  if (unknown !== undefined)
    throw new TypeError(
      `${where}: unknown protocol revision ${JSON.stringify(unknown)}; expected one of ${revisions.map((each) => each.id).join(', ')}`,
    )
}

/** Throws unless a member is missing, or an object of which each value passes the check. */
export function checkTable(
  where: string,
  name: string,
  table: unknown,
  check: (value: unknown, where: string) => void = checkFunction,
): void {
  if (table === undefined) return
  if (typeof table !== 'object' || table === null || Array.isArray(table))
    throw new TypeError(`${where}: "${name}" must be an object`)
  for (const [key, value] of Object.entries(table)) check(value, `${where}: "${name}.${key}"`)
}

export function checkFunction(value: unknown, where: string): void {
  if (typeof value !== 'function') throw new TypeError(`${where} must be a function`)
}
