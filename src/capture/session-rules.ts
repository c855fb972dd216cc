import { METHODS } from '../protocol/methods.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { isObject } from '../schema/issue.js'
import type { ConversationDefinitions } from './conversation-definitions.js'
import { ToolChecks } from './definition-checks.js'
import type { Definitions, Kind } from './definitions.js'
import type { FrameFindings } from './findings.js'
import type { Direction } from './format.js'
import type { Span } from './frames.js'
import { nodeAt } from './json.js'
import { memberOf, valueAt } from './lazy-json.js'
import { type Message, methodPlace } from './messages.js'
import type { Link } from './operations.js'
import { ProgressRules } from './progress-rules.js'
import type { SchemaCheck } from './schema-check.js'
import { StatelessRules } from './stateless-rules.js'

/** The capability that a client must have declared for a request of the server. */
const CLIENT_CAPABILITIES: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
  'elicitation/create': 'elicitation',
}
/** The capability that the sender of a notification must have declared, and its member that must be true. */
const NOTIFICATIONS: Readonly<Record<string, readonly [capability: string, member?: string]>> = {
  'notifications/message': ['logging'],
  'notifications/tools/list_changed': ['tools', 'listChanged'],
  'notifications/prompts/list_changed': ['prompts', 'listChanged'],
  'notifications/resources/list_changed': ['resources', 'listChanged'],
  'notifications/resources/updated': ['resources', 'subscribe'],
  'notifications/roots/list_changed': ['roots', 'listChanged'],
}
/** Issues of a message that are reported. */
const MAX_ISSUES = 5

/** What rules of their own report. */
const OWN_RULES: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope'])
const META_PATH =
  /^params\._meta\.io\.modelcontextprotocol\/(?:protocolVersion|clientCapabilities)$/

/** Rules of MCP, by the revision of each message. */
export class SessionRules {
  readonly #schemas: ReadonlyMap<string, SchemaCheck>
  readonly #definitions: ConversationDefinitions
  readonly #tools = new ToolChecks()
  readonly #progress = new ProgressRules()
  readonly #stateless = new StatelessRules()
  /** Whether the server has responded to initialize, and the client has confirmed. */
  #isAnswered = false
  #isInitialized = false
  /** Whether the capture shows that the client has confirmed. */
  #isConfirmed = false
  #hasLoss = false
  /** What each side has declared; undefined if the capture does not show it. */
  #server: Record<string, unknown> | undefined
  #client: Record<string, unknown> | undefined

  constructor(schemas: ReadonlyMap<string, SchemaCheck>, definitions: ConversationDefinitions) {
    this.#schemas = schemas
    this.#definitions = definitions
  }

  /** The capture lacks the handshake, so that nothing is concluded from its absence. */
  beginPartial(): void {
    this.#isAnswered = true
    this.#isInitialized = true
  }

  /** Something was not recorded: from now on, nothing is concluded from what the capture does not show. */
  noteLoss(): void {
    // What was declared is certain only after the handshake.
    if (!this.#isConfirmed) {
      this.#server = undefined
      this.#client = undefined
    }
    this.#hasLoss = true
    this.#isAnswered = true
    this.#isInitialized = true
    this.#progress.noteLoss()
    this.#stateless.noteLoss()
    this.#definitions.noteLoss()
  }

  /** A list cannot be read. */
  noteUnreadableList(kind: Kind): void {
    this.#definitions.noteUnreadableList(kind)
    if (kind === 'tools') this.#tools.noteUnreadableList()
  }

  /** `isStateless`: the connection has stateless requests only. */
  check(
    message: Message,
    dir: Direction,
    link: Link,
    isStateless: boolean,
    found: FrameFindings,
  ): void {
    const { revision } = link
    if (message.kind === 'request') this.#request(message, dir, revision, isStateless, found)
    this.#follow(message, dir, link)
    this.#version(message, link, found)
    this.#progress.check(message, dir, link, found)
    const list = this.#definitions.add(message, link)
    if (list?.kind === 'tools')
      this.#tools.list(list, found.span(list.list), this.#definitions.schemas, found)
    this.#tools.call(message, link, this.#definitions, found)
    if (message.kind === 'notification') this.#notification(message, dir, found)
    this.#stateless.check(message, link, isStateless, found)
    if (revision === undefined) return
    if (message.inBatch && !revision.batches) found.text('batch', message.node)
    this.#schema(message, link, revision, found)
  }

  /** The end of a capture: the tools that were never called, and where they were listed. */
  unusedTools(definitions: Definitions): { span: Span; detail: string } | undefined {
    return this.#hasLoss ? undefined : this.#tools.unused(definitions)
  }

  #notification({ method = '', node }: Message, dir: Direction, found: FrameFindings): void {
    const [capability, member] = NOTIFICATIONS[method] ?? []
    const declared = dir === 'in' ? this.#client : this.#server
    if (capability === undefined || declared === undefined) return
    const value = declared[capability]
    const isDeclared = isObject(value) && (member === undefined || value[member] === true)
    if (!isDeclared)
      found.text(
        'undeclared-notification',
        methodPlace(node),
        member === undefined ? capability : `${capability}.${member}`,
      )
  }

  /** Remembers what the handshake says. */
  #follow({ kind, method, params, result }: Message, dir: Direction, { operation }: Link): void {
    if (method === 'initialize' && dir === 'in') this.#client = objectAt(params, 'capabilities')
    if (method === 'notifications/initialized') {
      this.#isInitialized = true
      this.#isConfirmed = true
    }
    if (kind !== 'response' || result === undefined) return
    if (operation?.method === 'initialize') this.#isAnswered = true
    if (operation?.method === 'initialize' || operation?.method === 'server/discover')
      this.#server = objectAt(result, 'capabilities')
  }

  #version({ kind, params, result }: Message, { operation }: Link, found: FrameFindings): void {
    if (operation?.method !== 'initialize') return
    const source = kind === 'response' ? result : params
    const version = memberOf(source, 'protocolVersion')
    const isKnown = revisions.some(({ id }) => id === version?.value)
    if (version !== undefined && typeof version.value === 'string' && !isKnown)
      found.text('unknown-revision', version, version.value.slice(0, 40))
  }

  #request(
    { method = '', node }: Message,
    dir: Direction,
    revision: Revision | undefined,
    isStateless: boolean,
    found: FrameFindings,
  ): void {
    if (dir === 'out' && isStateless && !this.#hasLoss) {
      found.text('server-request', methodPlace(node), method)
      return
    }
    const stateless = revision?.lifecycle === 'stateless'
    const isReady = dir === 'in' ? this.#isAnswered : this.#isInitialized
    const isKnownStateless = isStateless && this.#stateless.isServed
    if (!stateless && !isKnownStateless && !isReady && method !== 'ping' && method !== 'initialize')
      found.text('before-initialized', methodPlace(node), method)
    if (revision === undefined) return
    this.#method(method, dir, revision, node, found)
    const capability = dir === 'in' ? METHODS.get(method)?.capability : CLIENT_CAPABILITIES[method]
    const declared = dir === 'in' ? this.#server : this.#client
    // Not every revision has every capability.
    const exists =
      dir === 'out' ||
      (capability !== undefined && revision.fields.capabilities.includes(capability))
    if (capability !== undefined && exists && declared !== undefined && !(capability in declared))
      found.text('undeclared-capability', methodPlace(node), capability)
  }

  #method(
    method: string,
    dir: Direction,
    revision: Revision,
    node: Message['node'],
    found: FrameFindings,
  ): void {
    const has = ({ methods, unsupportedMethods }: Revision) =>
      (dir === 'in' ? methods.clientRequests : methods.serverRequests).includes(method) ||
      Object.hasOwn(unsupportedMethods, method)
    if (!has(revision) && revisions.some(has))
      found.text('wrong-revision', methodPlace(node), method)
  }

  #schema(
    { kind, method, node, result }: Message,
    { operation }: Link,
    revision: Revision,
    found: FrameFindings,
  ): void {
    const schema = this.#schemas.get(revision.id)
    if (schema === undefined) return
    if ((kind === 'request' || kind === 'notification') && method !== undefined) {
      const issues = (schema.message(method, node.value) ?? []).filter(
        ({ path }) => !META_PATH.test(path),
      )
      for (const { path, message } of issues.slice(0, MAX_ISSUES))
        found.text('schema', nodeAt(node, path), `${path === '' ? method : path} ${message}`)
    }
    if (kind !== 'response' || result === undefined || operation === undefined) return
    const issues = (schema.result(operation.method, operation.hasTask, result.value) ?? []).filter(
      ({ path }) => !OWN_RULES.has(path),
    )
    for (const { path, message } of issues.slice(0, MAX_ISSUES))
      found.text('schema', nodeAt(result, path), `result${path && `.${path}`} ${message}`)
  }
}

function objectAt(node: Message['params'], name: string): Record<string, unknown> | undefined {
  const value = valueAt(node, name)
  return isObject(value) ? value : undefined
}
