import type { Params } from '../jsonrpc/message.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { checkNames, namesOf } from '../schema/names.js'

/** A connection, as an extension uses it. */
export interface ExtensionConnection {
  /** Sends a request. */
  request(method: string, params?: Params, options?: { signal?: AbortSignal }): Promise<Params>
  /** Answers input requests of the server by the handlers of the client; returns the `inputResponses`. */
  answer(inputRequests: unknown, signal: AbortSignal): Promise<Params>
}

/** What the handler of a result type may need. */
export interface ResultContext extends ExtensionConnection {
  /** The request that got the result. */
  readonly method: string
  readonly params: Params | undefined
  /** Fires when the caller gives up. */
  readonly signal: AbortSignal
  /** Sends another request, such as one that polls, with the caller's timeouts, and its signal unless another is given. */
  request(method: string, params?: Params, options?: { signal?: AbortSignal }): Promise<Params>
}

/**
 * An extension of the protocol, as a client supports it.
 * https://modelcontextprotocol.io/seps/2133-extensions
 */
export interface ClientExtension {
  /** Its identifier: a prefix, a slash and a name, such as `com.example/clock`. */
  id: string
  /** The protocol revisions in which it is declared and its handlers are called. */
  revisions: readonly string[]
  /** What is declared for it in `capabilities.extensions` (default `{}`). */
  settings?: Params
  /** Handlers for the notifications that it adds, by method. */
  notifications?: Readonly<Record<string, (params: Params) => unknown>>
  /** Handlers for the result types that it adds, by `resultType`. Each returns the result that the caller gets. */
  resultTypes?: Readonly<
    Record<string, (result: Params, context: ResultContext) => Params | Promise<Params>>
  >
  /** Called with each connection that the client opens, before anything is sent on it. */
  connected?(connection: ExtensionConnection): void
}

const MEMBERS = namesOf<ClientExtension>()(
  'id revisions settings notifications resultTypes connected',
)

/** https://modelcontextprotocol.io/specification/2026-07-28/basic#meta */
const LABEL = '[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?'
const ID = new RegExp(`^${LABEL}(?:\\.${LABEL})*/[A-Za-z0-9](?:[\\w.-]*[A-Za-z0-9])?$`)
const CORE_RESULT_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required'])
const CORE_NOTIFICATIONS: ReadonlySet<string> = new Set(
  revisions.flatMap(({ methods }) => methods.serverNotifications),
)

/** The extensions of one client. */
export class ClientExtensions {
  readonly #extensions: readonly ClientExtension[]

  /** Throws where an extension is not valid, or two of them claim the same name. */
  constructor(extensions: readonly ClientExtension[] = []) {
    const names = new Set<string>()
    const claim = (kind: string, name: string) => {
      const claimed = `${kind} "${name}"`
      if (names.has(claimed)) throw new TypeError(`connect: two extensions have the ${claimed}`)
      names.add(claimed)
    }
    for (const extension of extensions) {
      check(extension)
      claim('id', extension.id)
      for (const method of Object.keys(extension.notifications ?? {})) claim('notification', method)
      for (const type of Object.keys(extension.resultTypes ?? {})) claim('result type', type)
    }
    this.#extensions = extensions
  }

  connected(connection: ExtensionConnection): void {
    for (const extension of this.#extensions) extension.connected?.(connection)
  }

  /** The capabilities that are declared in a revision: with the settings of the extensions that it has. */
  declare(revision: Revision, capabilities: Params): Params {
    const active = this.#in(revision)
    if (active.length === 0) return capabilities
    const settings = active.map((each) => [each.id, each.settings ?? {}] as const)
    const given = capabilities['extensions'] as Params | undefined // as the caller declares them
    return { ...capabilities, extensions: { ...given, ...Object.fromEntries(settings) } }
  }

  notificationHandler(revision: Revision | undefined, method: string) {
    return own(
      this.#in(revision).map(({ notifications }) => notifications),
      method,
    )
  }

  resultHandler(revision: Revision | undefined, resultType: unknown) {
    return own(
      this.#in(revision).map(({ resultTypes }) => resultTypes),
      resultType,
    )
  }

  #in(revision: Revision | undefined): readonly ClientExtension[] {
    if (revision === undefined || this.#extensions.length === 0) return NONE
    return this.#extensions.filter((each) => each.revisions.includes(revision.id))
  }
}

const NONE: readonly ClientExtension[] = []

function own<Handler>(
  tables: readonly (Readonly<Record<string, Handler>> | undefined)[],
  name: unknown,
): Handler | undefined {
  if (typeof name !== 'string') return undefined
  return tables.find((table) => table !== undefined && Object.hasOwn(table, name))?.[name]
}

function check(extension: ClientExtension): void {
  const { id, revisions: named, notifications = {}, resultTypes = {} } = extension
  const where = `connect: extension ${JSON.stringify(id)}`
  checkNames(where, extension, MEMBERS)
  if (typeof id !== 'string' || !ID.test(id))
    throw new TypeError(`${where}: "id" must be a prefix, a slash and a name: com.example/name`)
  if (!Array.isArray(named) || named.length === 0)
    throw new TypeError(`${where}: "revisions" must list at least one protocol revision`)
  const unknown = named.find((name) => !revisions.some((each) => each.id === name))
  if (unknown !== undefined)
    throw new TypeError(
      `${where}: unknown protocol revision ${JSON.stringify(unknown)}; known are ${revisions.map((each) => each.id).join(', ')}`,
    )
  for (const method of Object.keys(notifications))
    if (CORE_NOTIFICATIONS.has(method))
      throw new TypeError(`${where}: ${method} belongs to the core protocol; use client.on`)
  for (const type of Object.keys(resultTypes))
    if (CORE_RESULT_TYPES.has(type))
      throw new TypeError(`${where}: the result type "${type}" belongs to the core protocol`)
  for (const [name, handler] of [...Object.entries(notifications), ...Object.entries(resultTypes)])
    if (typeof handler !== 'function')
      throw new TypeError(`${where}: the handler of "${name}" must be a function`)
}
