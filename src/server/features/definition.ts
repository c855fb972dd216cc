import { INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import { markHandled } from '../../jsonrpc/hook.js'
import { type Id, isObject, isThenable } from '../../jsonrpc/message.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { INSUFFICIENT_SCOPE } from '../../protocol/errors.js'
import type { CacheHint } from '../../protocol/model.js'
import { nearest } from '../../schema/names.js'
import type { Caller } from '../call.js'
import { newErrorReference } from '../../jsonrpc/reference.js'

/* What tools, resources and prompts have in common. */

export const SHARED_MEMBERS = 'name title description icons meta visible scopes'

const INPUT = ['input', 'arguments']
const HANDLER = ['run', 'build', 'read']
/** Names on the wire and in other SDKs, each with what it is called here, in one kind of definition or another. */
const OTHER_NAMES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    inputSchema: INPUT,
    paramsSchema: INPUT,
    argsSchema: INPUT,
    parameters: INPUT,
    handler: HANDLER,
    execute: HANDLER,
    callback: HANDLER,
    outputSchema: ['output'],
    uriTemplate: ['uri'],
    _meta: ['meta'],
  }),
)

/** Throws if a member has another name here, or is probably a typo of one that is missing. Definitions may have other members. */
export function checkMemberNames(
  given: object,
  known: string,
  fail: (problem: string) => Error,
): void {
  const names = known.split(' ')
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    const own = OTHER_NAMES.get(name)?.find((word) => names.includes(word))
    const members = given as Readonly<Record<string, unknown>> // read by name
    // The same value under both names: a definition for another library was spread into this one.
    if (own !== undefined && members[name] !== members[own])
      throw fail(`"${name}" is called "${own}" here`)
    // A typo rarely changes the first letter: "beta" is not "meta".
    const missing = names.filter(
      (word) => !Object.hasOwn(given, word) && word.slice(0, 2).includes(name.charAt(0)),
    )
    const meant = nearest(name, missing, ({ length }) => (length < 6 ? 1 : 2))
    if (meant !== undefined) throw fail(`unknown member "${name}"; did you mean "${meant}"?`)
  }
}

interface SharedProperties {
  title?: unknown
  description?: unknown
  annotations?: unknown
  icons?: unknown
  meta?: unknown
  cache?: unknown
  scopes?: unknown
  visible?: unknown
}

export type Rule = readonly [holds: (value: unknown) => boolean, what: string]
const isText = (value: unknown) => typeof value === 'string'
export const TEXT: Rule = [isText, 'a string']
export const FLAG: Rule = [(value) => typeof value === 'boolean', 'true or false']
const OBJECT: Rule = [isObject, 'an object']
export const isFunction: Rule[0] = (value) => typeof value === 'function'
const oneOf =
  (...values: readonly unknown[]): Rule[0] =>
  (value) =>
    values.includes(value)
/** Whether it is an array without holes, which would be sent as null: `every` does not see them. */
export function isListOf<Item = unknown>(
  value: unknown,
  holds: (item: unknown) => boolean,
): value is Item[] {
  return Array.isArray(value) && !value.includes(undefined) && value.every(holds)
}
export const isStrings = (value: unknown) => isListOf<string>(value, isText)

const SHARED: Readonly<Record<string, Rule>> = {
  title: TEXT,
  description: TEXT,
  annotations: OBJECT,
  meta: OBJECT,
  visible: [isFunction, 'a function of the caller'],
}
const isRole = oneOf('user', 'assistant')
const ANNOTATIONS: Readonly<Record<string, Rule>> = {
  title: TEXT,
  readOnlyHint: FLAG,
  destructiveHint: FLAG,
  idempotentHint: FLAG,
  openWorldHint: FLAG,
  audience: [(value) => isListOf(value, isRole), 'an array of "user" and "assistant"'],
  priority: [
    (value) => typeof value === 'number' && value >= 0 && value <= 1,
    'a number from 0 to 1',
  ],
  lastModified: TEXT,
}
const ICON: Readonly<Record<string, Rule>> = {
  mimeType: TEXT,
  sizes: [isStrings, 'an array of strings'],
  theme: [oneOf('light', 'dark'), '"light" or "dark"'],
}

/** Clients reject a whole list or result for one member of the wrong type. */
export function checkMembers(
  value: object,
  rules: Readonly<Record<string, Rule>>,
  fail: (problem: string) => Error,
  place = '',
): void {
  const members = value as Readonly<Record<string, unknown>> // read by name
  for (const [name, [holds, what]] of Object.entries(rules))
    if (members[name] !== undefined && !holds(members[name]))
      throw fail(`"${place}${name}" must be ${what}`)
}

/** Throws if a listed member has the wrong type. */
export function checkSharedProperties(
  facts: SharedProperties,
  fail: (problem: string) => Error,
): void {
  const { annotations, icons, cache, scopes } = facts
  if (cache !== undefined) hintOf(cache, fail)
  checkMembers(facts, SHARED, fail)
  checkMembers(Object(annotations), ANNOTATIONS, fail, 'annotations.')
  if (
    icons !== undefined &&
    !isListOf<object>(icons, (icon) => isObject(icon) && typeof icon['src'] === 'string')
  )
    throw fail('"icons" must be an array of objects with a "src"')
  for (const icon of icons ?? []) checkMembers(icon, ICON, fail, 'icons.')
  if (
    scopes !== undefined &&
    !isListOf(scopes, (scope) => typeof scope === 'string' && /^[!#-[\]-~]+$/.test(scope))
  )
    throw fail('"scopes" must be an array of OAuth scopes: words without spaces and quotes')
}

/** Not cacheable. */
export const UNCACHED: CacheHint = { ttlMs: 0, cacheScope: 'private' }

/** A complete caching hint; throws if it is invalid. */
export function hintOf(hint: unknown, fail: (problem: string) => Error): CacheHint {
  if (!isObject(hint)) throw fail('"cache" must be an object with "ttlMs" and "cacheScope"')
  const { ttlMs = 0, cacheScope = 'private' } = hint
  if (typeof ttlMs !== 'number' || !Number.isSafeInteger(ttlMs) || ttlMs < 0)
    throw fail('"cache.ttlMs" must be a non-negative integer, in milliseconds')
  if (cacheScope !== 'public' && cacheScope !== 'private')
    throw fail('"cache.cacheScope" must be "public" or "private"')
  return { ttlMs, cacheScope }
}

/** The members that are not undefined. */
export function withoutUndefined<Members extends object>(
  members: Members,
): { [Key in keyof Members]?: NonNullable<Members[Key]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Members]?: NonNullable<Members[Key]>
  } // the same, less what is missing
}

/** Throws if a listing is not JSON: it would break the whole list. */
export function checkListable<Listing>(
  listing: Listing,
  fail: (problem: string) => Error,
): Listing {
  try {
    JSON.stringify(listing)
  } catch (error) {
    throw fail(
      `it cannot be listed, since not all of it is JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  return listing
}

type Visible = (caller: Caller) => boolean | Promise<boolean>

/** Whether a caller may see it: a promise only if `visible` returns one. */
export function isVisibleTo(
  { visible }: { visible?: Visible },
  caller: Caller,
): boolean | Promise<boolean> {
  if (visible === undefined) return true
  const seen: unknown = visible(caller)
  // A caller that awaits several of them may fail before this one does.
  return isThenable(seen)
    ? markHandled(Promise.resolve(seen).then((value) => value === true))
    : seen === true
}

/** The definitions that a caller may see, in order. */
export function visibleTo<Served extends { readonly definition: { visible?: Visible } }>(
  all: Iterable<Served>,
  caller: Caller,
): Served[] | Promise<Served[]> {
  const served = [...all]
  const seen = served.map(({ definition }) => isVisibleTo(definition, caller))
  if (!seen.some((each) => each instanceof Promise))
    return served.filter((_, index) => seen[index] === true)
  return Promise.all(seen.map((each) => Promise.resolve(each))).then((known) =>
    served.filter((_, index) => known[index] === true),
  )
}

/**
 * Throws if a caller lacks the scopes that a definition requires. A local caller (stdio, in memory) has no token and
 * needs none, unless it calls on behalf of a principal.
 */
export function checkScopes(
  { scopes = [] }: { scopes?: readonly string[] },
  { connection, remote }: { connection: { caller: Caller }; remote: boolean },
): void {
  const { principal } = connection.caller
  if (scopes.length === 0 || (!remote && principal === undefined)) return
  const granted = principal?.scopes ?? []
  if (scopes.every((scope) => granted.includes(scope))) return
  throw new RpcError(
    INSUFFICIENT_SCOPE,
    `Insufficient scope: this needs a token with ${scopes.join(' ')}`,
    { requiredScopes: scopes },
  )
}

/**
 * Converts the return value of a handler to the shape that is sent. If that fails, throws an internal error and logs the
 * reason. Remote callers do not get it, as it may quote the result.
 */
export function convertResult<Value>(
  what: string,
  {
    remote,
    report,
    call,
  }: { remote: boolean; report(report: LogEntry): void; call: { readonly id: Id } },
  convert: () => Value,
): Value {
  try {
    return convert()
  } catch (error) {
    const text = `${what} returned a malformed result`
    const known = remote ? ` (reference ${newErrorReference()})` : ''
    report({ level: 'error', message: text + known, id: call.id, error })
    throw new RpcError(INTERNAL_ERROR, text + (known || `: ${messageOf(error)}`))
  }
}

/** The message of whatever was thrown; never the stack. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return String(error.message)
  return typeof error === 'string' ? error : 'it threw a value that is not an Error'
}
