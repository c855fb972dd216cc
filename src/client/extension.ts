import { withCode } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import { type Params, isObject, isThenable } from '../jsonrpc/message.js'
import {
  CORE_RESULT_TYPES,
  checkFunction,
  checkIdentity,
  checkTable,
} from '../protocol/extension-rules.js'
import { METHODS, type MethodDescriptor } from '../protocol/methods.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { checkNames, namesOf } from '../schema/names.js'
import type { CallOptions } from './call-options.js'
import type { ListenOptions, Subscription } from './subscription.js'

/** The connection of a client, as an extension uses it; the same object for as long as the client lives. */
export interface ExtensionConnection {
  /** What the server has declared for the extension; undefined if it has not. */
  readonly settings: Params | undefined
  /** Fires when the client is closed, or its connection is lost and not restored. */
  readonly signal: AbortSignal
  /** Sends a request on the current connection, or on the next one after a reconnect. */
  request(method: string, params?: Params, options?: CallOptions): Promise<Params>
  /** Answers input requests of the server by the handlers of the client; returns the `inputResponses`. */
  answer(inputRequests: unknown, signal: AbortSignal): Promise<Params>
  /** Listens to a field of the extension, as `client.listen` does. */
  listen(field: string, value: unknown, options?: ListenOptions): Promise<Subscription>
}

/** What the handlers of an extension may need. */
export interface ExtensionContext {
  /** As `connection.settings`. */
  readonly settings: Params | undefined
  readonly connection: ExtensionConnection
}

/** What the handler of a result type may need. */
export interface ResultContext extends ExtensionContext {
  /** The request that got the result. */
  readonly method: string
  readonly params: Params | undefined
  /** Fires when the caller gives up. */
  readonly signal: AbortSignal
  /** Sends another request, such as one that polls, with the caller's timeouts, and its signal unless another is given. */
  request(method: string, params?: Params, options?: CallOptions): Promise<Params>
  /** As `connection.answer`. */
  answer(inputRequests: unknown, signal: AbortSignal): Promise<Params>
}

/** What a client must know of a request method of an extension. */
export type ClientExtensionMethod = Pick<MethodDescriptor, 'nameParam' | 'mayRequireInput'>

/**
 * An extension of the protocol, as a client supports it. `Members` are what its clients get.
 * https://modelcontextprotocol.io/seps/2133-extensions
 */
export interface ClientExtension<Members extends object | void = object | void> {
  /** Its identifier: a prefix, a slash and a name, such as `com.example/clock`. */
  id: string
  /** The protocol revisions in which it is declared and its handlers are called (default: all). */
  revisions?: readonly string[]
  /** What is declared for it in `capabilities.extensions` (default `{}`). */
  settings?: Params
  /** Its request methods that have a name parameter, or may require input; others need not be named. */
  methods?: Readonly<Record<string, ClientExtensionMethod>>
  /** Handlers for the notifications that it adds, by method. */
  notifications?: Readonly<Record<string, (params: Params, context: ExtensionContext) => unknown>>
  /** Handlers for the result types that it adds, by `resultType`. Each returns the result that the caller gets. */
  resultTypes?: Readonly<
    Record<string, (result: Params, context: ResultContext) => Params | Promise<Params>>
  >
  /** Called when a client is connected. An object that it returns has members for the client, such as functions that send requests. */
  connected?(connection: ExtensionConnection): Members
}

/** What a client gets from its extensions. */
export type ExtensionMembers<Extensions extends readonly ClientExtension[]> =
  Extensions extends readonly [infer First, ...infer Others extends readonly ClientExtension[]]
    ? MembersOf<First> & ExtensionMembers<Others>
    : unknown
type MembersOf<Extension> =
  Extension extends ClientExtension<infer Members>
    ? object | void extends Members // not known
      ? unknown
      : [Members] extends [void]
        ? unknown
        : Exclude<Members, void>
    : unknown

const MEMBERS = namesOf<ClientExtension>()(
  'id revisions settings methods notifications resultTypes connected',
)
const METHOD_MEMBERS = namesOf<ClientExtensionMethod>()('nameParam mayRequireInput')

const CORE_NOTIFICATIONS: ReadonlySet<string> = new Set(
  revisions.flatMap(({ methods }) => methods.serverNotifications),
)

/** The extensions of one client. */
export class ClientExtensions {
  readonly #extensions: readonly ClientExtension[]

  /** Throws if an extension is not valid, or two of them claim the same name. */
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
      for (const method of Object.keys(extension.methods ?? {})) claim('method', method)
      for (const method of Object.keys(extension.notifications ?? {})) claim('notification', method)
      for (const type of Object.keys(extension.resultTypes ?? {})) claim('result type', type)
    }
    this.#extensions = extensions
  }

  /** Tells the extensions of a connected client, and adds their members to it. */
  connected(client: object, connectionOf: (id: string) => ExtensionConnection): void {
    for (const extension of this.#extensions) {
      const { id } = extension
      const members = membersIn(extension.connected?.(connectionOf(id)), id)
      const taken = Object.keys(members).find((name) => name in client)
      if (taken !== undefined)
        throw new TypeError(
          `connect: extension "${id}" has the member "${taken}", which the client has already`,
        )
      Object.assign(client, members)
    }
  }

  /** The capabilities that are declared in a revision: with the settings of the extensions that it has. */
  declare(revision: Revision, capabilities: Params): Params {
    const active = this.#in(revision)
    if (active.length === 0) return capabilities
    const settings = active.map((each) => [each.id, each.settings ?? {}] as const)
    const given = capabilities['extensions'] as Params | undefined // as the caller declares them
    return { ...capabilities, extensions: { ...given, ...Object.fromEntries(settings) } }
  }

  /** What the protocol, or an extension, says of a request method. */
  methodOf(revision: Revision | undefined, method: string): MethodDescriptor | undefined {
    return METHODS.get(method) ?? this.#find(revision, method, ({ methods }) => methods)?.entry
  }

  /** Throws for a method of an extension that the revision does not have: there it could mean something else. */
  checkMethod(revision: Revision, method: string): void {
    for (const { id, methods, revisions: its } of this.#extensions)
      if (
        methods !== undefined &&
        Object.hasOwn(methods, method) &&
        its?.includes(revision.id) === false
      )
        throw withCode(
          'NOT_SUPPORTED',
          new Error(
            `${method} belongs to ${id}, which protocol revision ${revision.id} does not have`,
          ),
        )
  }

  notificationHandler(revision: Revision | undefined, method: string) {
    return this.#find(revision, method, ({ notifications }) => notifications)
  }

  resultHandler(revision: Revision | undefined, resultType: unknown) {
    return this.#find(revision, resultType, ({ resultTypes }) => resultTypes)
  }

  /** The ids of the extensions in a revision, for error messages. */
  describe(revision: Revision): string {
    const ids = this.#in(revision).map(({ id }) => id)
    return ids.length === 0
      ? 'the client has no extensions'
      : `the extensions of the client are ${ids.join(', ')}`
  }

  /** What the extension that has a name says of it. */
  #find<Entry>(
    revision: Revision | undefined,
    name: unknown,
    tableOf: (extension: ClientExtension) => Readonly<Record<string, Entry>> | undefined,
  ): { id: string; entry: Entry } | undefined {
    if (typeof name !== 'string') return undefined
    for (const extension of this.#in(revision)) {
      const table = tableOf(extension)
      const entry = table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined
      if (entry !== undefined) return { id: extension.id, entry }
    }
    return undefined
  }

  #in(revision: Revision | undefined): readonly ClientExtension[] {
    if (revision === undefined || this.#extensions.length === 0) return NONE
    return this.#extensions.filter((each) => each.revisions?.includes(revision.id) ?? true)
  }
}

/** What `connected` has returned. */
function membersIn(returned: unknown, id: string): object {
  if (returned === undefined) return {}
  if (isObject(returned) && !isThenable(returned)) return returned
  // A promise that rejects must not end the process.
  callHook(() => returned, ignore)
  throw new TypeError(
    `connect: extension "${id}": "connected" must return an object with members, or nothing`,
  )
}

const NONE: readonly ClientExtension[] = []

/** The settings of an extension in the capabilities of a server. */
export function settingsOf(id: string, { extensions }: Params): Params | undefined {
  const settings = isObject(extensions) ? extensions[id] : undefined
  return isObject(settings) ? settings : undefined
}

function check(extension: ClientExtension): void {
  if (!isObject(extension))
    throw new TypeError('connect: an extension must be an object with an "id"')
  const { id, settings, methods = {}, notifications = {}, resultTypes = {} } = extension
  const where = `connect: extension ${JSON.stringify(id)}`
  checkNames(where, extension, MEMBERS)
  checkIdentity(where, id, extension.revisions)
  if (settings !== undefined && !isObject(settings))
    throw new TypeError(`${where}: "settings" must be an object`)
  checkTable(where, 'methods', methods, (method, its) => {
    if (!isObject(method)) throw new TypeError(`${its} must be an object`)
    checkNames(its, method, METHOD_MEMBERS)
  })
  for (const [name, table] of Object.entries({ notifications, resultTypes }))
    checkTable(where, name, table, checkFunction)
  if (extension.connected !== undefined) checkFunction(extension.connected, `${where}: "connected"`)
  for (const method of Object.keys(methods))
    if (METHODS.has(method)) throw new TypeError(`${where}: ${method} belongs to the core protocol`)
  for (const method of Object.keys(notifications))
    if (CORE_NOTIFICATIONS.has(method))
      throw new TypeError(`${where}: ${method} belongs to the core protocol; use client.on`)
  for (const type of Object.keys(resultTypes))
    if (CORE_RESULT_TYPES.includes(type))
      throw new TypeError(`${where}: the result type "${type}" belongs to the core protocol`)
}
