import { type Channel, type Tapped, tap } from '../jsonrpc/channel.js'
import { Deadline } from '../jsonrpc/deadline.js'
import { callHook } from '../jsonrpc/hook.js'
import { type Notification, type Params, isObject } from '../jsonrpc/message.js'
import { Peer } from '../jsonrpc/peer.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { truncate, truncateJson } from '../jsonrpc/truncate.js'
import { MAY_ASK } from '../protocol/asking.js'
import { cancelled } from '../protocol/cancellation.js'
import { CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION } from '../protocol/meta.js'
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Implementation,
  PromptListing,
  ReadResourceResult,
  ResourceListing,
  ResourceTemplateListing,
  ToolListing,
} from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { type InputHandlers, answer, answerInputRequests, unknownMethod } from './input-handlers.js'
import type * as methods from './methods.js'
import { listOf } from './pages.js'

export interface Progress {
  progress: number
  total?: number
  message?: string
}

export interface CallOptions {
  /** Gives the request up; the server is told. */
  signal?: AbortSignal
  /** Milliseconds without an answer or progress (default 60 s). */
  timeout?: number
  /** Milliseconds in all, however much progress there is (default 10 min). */
  maxTimeout?: number
  /** Asks the server for progress. */
  onProgress?: (progress: Progress) => unknown
}

export interface ClientSessionOptions {
  info: Implementation
  capabilities: Params
  answers: InputHandlers
  report(report: LogEntry): void
  tap?: (tapped: Tapped) => void
}

/** What is known of the server, once the connection is open. */
export interface ServerDetails {
  revision: Revision
  server: Implementation | undefined
  capabilities: Params
  instructions: string | undefined
}

const TIMEOUT = 60_000
const MAX_TIMEOUT = 600_000
/** How often one request may be answered with questions. */
const MAX_ROUNDS = 20

/** A client's conversation with one server, below any revision's rules of opening. */
export class ClientSession {
  readonly peer: Peer
  readonly #options: ClientSessionOptions
  readonly #listeners = new Map<string, Set<(params: Params) => unknown>>()
  readonly #progress = new Map<unknown, (params: Params) => void>()
  /** The signals of questions that are being answered; one that has fired is not waited for any more. */
  readonly #answering = new Set<AbortSignal>()
  /** The revision whose requests describe themselves; none after a handshake. */
  describes: Revision | undefined
  /** The revision that a handshake has agreed on. */
  agreed: Revision | undefined

  constructor(channel: Channel, options: ClientSessionOptions) {
    this.#options = options
    const tapFailed = (error: unknown) =>
      options.report({ level: 'error', message: 'tap failed', error })
    this.peer = new Peer(
      options.tap === undefined ? channel : tap(channel, options.tap, tapFailed),
      {
        onRequest: ({ request, signal }) => {
          const { method, params = {} } = request
          if (method === 'ping') return {}
          const revision = this.agreed ?? this.describes
          if (revision?.methods.serverRequests.includes(method) === false)
            throw unknownMethod(method)
          this.#answering.add(signal)
          return answer(options.answers, revision, method, params, signal).finally(() =>
            this.#answering.delete(signal),
          )
        },
        onNotification: (notification) => this.#notified(notification),
        // Garbage is reported, never answered.
        answersGarbage: false,
        batchLimit: () => (this.agreed?.batches === true ? Infinity : 0),
        cancelled: (requestId, reason, method) =>
          method !== 'initialize' &&
          this.peer.notify('notifications/cancelled', { requestId, reason }),
        report: options.report,
      },
    )
  }

  /** Sends a request; where the result asks for something, that is answered, and the request is sent again. */
  async request(
    method: string,
    params: Params | undefined,
    options: CallOptions = {},
    describes: Revision | undefined = this.describes,
  ): Promise<Params> {
    let result = await this.#requestOnce(method, params, options, describes)
    if (describes === undefined) return result
    for (let round = 0; result['resultType'] === 'input_required'; round++) {
      if (round === MAX_ROUNDS)
        throw new TypeError(`${method} asks again and again: ${MAX_ROUNDS} times it was answered`)
      const { signal = new AbortController().signal } = options
      const answered = await answerInputRequests(
        this.#options.answers,
        describes,
        method,
        result,
        signal,
      )
      result = await this.#requestOnce(method, { ...params, ...answered }, options, describes)
    }
    return result
  }

  async #requestOnce(
    method: string,
    params: Params | undefined,
    options: CallOptions,
    describes: Revision | undefined,
  ): Promise<Params> {
    const { signal, timeout = TIMEOUT, maxTimeout = MAX_TIMEOUT, onProgress } = options
    const deadline = new Deadline({
      idle: timeout,
      total: maxTimeout,
      busy: () => [...this.#answering].some(({ aborted }) => !aborted),
    })
    const token = onProgress === undefined ? undefined : this.peer.nextId
    if (onProgress !== undefined) {
      this.#progress.set(token, (progress) => {
        deadline.extend()
        this.#tell('onProgress', () => onProgress(progress as unknown as Progress)) // checked for its number when it came
      })
    }
    try {
      const described = this.#describe(params, token, describes)
      const result = await this.peer.request(method, described, {
        deadline,
        ...(signal === undefined ? {} : { signal }),
        ...(describes === undefined ? {} : { protocolVersion: describes.id }),
      })
      return checkResult(method, result, describes !== undefined)
    } finally {
      if (token !== undefined) this.#progress.delete(token)
    }
  }

  on(method: string, listener: (params: Params) => unknown): () => void {
    const listeners = this.#listeners.get(method) ?? new Set()
    this.#listeners.set(method, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  /** Adds to `_meta` what the request must say of itself. */
  #describe(
    params: Params | undefined,
    token: unknown,
    revision: Revision | undefined,
  ): Params | undefined {
    if (revision === undefined && token === undefined) return params
    const own = isObject(params?.['_meta']) ? params['_meta'] : {}
    const description =
      revision === undefined
        ? {}
        : {
            [PROTOCOL_VERSION]: revision.id,
            [CLIENT_INFO]: this.#options.info,
            [CLIENT_CAPABILITIES]: this.#options.capabilities,
          }
    return {
      ...params,
      _meta: { ...own, ...(token === undefined ? {} : { progressToken: token }), ...description },
    }
  }

  #notified(notification: Notification): void {
    const { method, params = {} } = notification
    if (method === 'notifications/cancelled') {
      const asked = cancelled(notification)
      if (asked !== undefined) this.peer.cancel(asked.id, asked.reason)
    }
    if (method === 'notifications/progress' && typeof params['progress'] === 'number') {
      const { progressToken, ...progress } = params
      this.#progress.get(progressToken)?.(progress)
    }
    for (const listener of this.#listeners.get(method) ?? [])
      this.#tell(`A listener for ${truncate(method)}`, () => listener(params))
  }

  /** A listener that fails keeps nothing from the others, and ends nothing. */
  #tell(name: string, listener: () => unknown): void {
    callHook(listener, (error) =>
      this.peer.log({ level: 'error', message: `${name} failed`, error }),
    )
  }
}

/** https://modelcontextprotocol.io/specification/2026-07-28/basic#resulttype */
function checkResult(method: string, result: unknown, described: boolean): Params {
  if (!isObject(result)) throw new TypeError(`The answer to ${method} is not an object`)
  const { resultType = 'complete' } = result
  // Before results described themselves, such a member was nobody's business.
  if (!described || resultType === 'complete') return result
  const asks = result['inputRequests'] !== undefined || result['requestState'] !== undefined
  if (resultType === 'input_required' && MAY_ASK.has(method) && asks) return result
  if (resultType === 'input_required')
    throw new TypeError(`${method} needs input, but ${asks ? 'must not ask' : 'asks for nothing'}`)
  throw new TypeError(`The answer to ${method} has the unknown type ${truncateJson(resultType)}`)
}

/** A connected client. */
export class Client {
  readonly #session: ClientSession
  readonly #reached: ServerDetails

  constructor(session: ClientSession, reached: ServerDetails) {
    this.#session = session
    this.#reached = reached
  }

  /** The protocol revision that is spoken. */
  get revision(): string {
    return this.#reached.revision.id
  }

  /** Who the server says it is. */
  get server(): Implementation | undefined {
    return this.#reached.server
  }

  get capabilities(): Params {
    return this.#reached.capabilities
  }

  get instructions(): string | undefined {
    return this.#reached.instructions
  }

  /** Sends a request. The methods of the protocol are typed; their results are what the server says, and are not checked. */
  request<const Method extends methods.RequestMethod>(
    method: Method,
    ...[params, options]: methods.RequestArguments<Method, CallOptions>
  ): Promise<methods.RequestResult<Method>> {
    return this.#session.request(method, params as Params | undefined, options) as Promise<
      methods.RequestResult<Method>
    > // as the protocol has it
  }

  notify<const Method extends methods.ClientNotificationMethod>(
    method: Method,
    ...[params]: methods.NotificationArguments<Method>
  ): void {
    this.#session.peer.notify(method, params)
  }

  /** Calls a tool. Its failure is a result with `isError`; an unknown tool is an RpcError. */
  async callTool(name: string, args: Params = {}, options?: CallOptions): Promise<CallToolResult> {
    const result = await this.#session.request('tools/call', { name, arguments: args }, options)
    if (!Array.isArray(result['content']))
      throw new TypeError(`The result of ${name} has no content`)
    return result as unknown as CallToolResult // its content is the server's word
  }

  async readResource(uri: string, options?: CallOptions): Promise<ReadResourceResult> {
    const result = await this.#session.request('resources/read', { uri }, options)
    if (!Array.isArray(result['contents']))
      throw new TypeError(`The answer for ${uri} has no contents`)
    return result as unknown as ReadResourceResult // its contents are the server's word
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>> = {},
    options?: CallOptions,
  ): Promise<GetPromptResult> {
    const result = await this.#session.request('prompts/get', { name, arguments: args }, options)
    if (!Array.isArray(result['messages']))
      throw new TypeError(`The prompt ${name} has no messages`)
    return result as unknown as GetPromptResult // its messages are the server's word
  }

  /** Asks what may stand for an argument of a prompt, or for a variable of a resource template. */
  async complete(
    of: { prompt: string } | { template: string },
    argument: { name: string; value: string },
    others: Readonly<Record<string, string>> = {},
    options?: CallOptions,
  ): Promise<CompleteResult['completion']> {
    const ref =
      'prompt' in of
        ? { type: 'ref/prompt', name: of.prompt }
        : { type: 'ref/resource', uri: of.template }
    const known =
      Object.keys(others).length > 0 && this.#reached.revision.fields.completion.includes('context')
    const context = known ? { context: { arguments: others } } : {}
    const { completion } = await this.#session.request(
      'completion/complete',
      { ref, argument, ...context },
      options,
    )
    if (!isObject(completion) || !Array.isArray(completion['values']))
      throw new TypeError('The answer to completion/complete has no values')
    return completion as unknown as CompleteResult['completion'] // its values are the server's word
  }

  /** Every tool, page after page. */
  tools(options?: CallOptions): AsyncIterableIterator<ToolListing> {
    return listOf<ToolListing>(this.#session, 'tools/list', 'tools', options)
  }

  resources(options?: CallOptions): AsyncIterableIterator<ResourceListing> {
    return listOf<ResourceListing>(this.#session, 'resources/list', 'resources', options)
  }

  resourceTemplates(options?: CallOptions): AsyncIterableIterator<ResourceTemplateListing> {
    return listOf<ResourceTemplateListing>(
      this.#session,
      'resources/templates/list',
      'resourceTemplates',
      options,
    )
  }

  prompts(options?: CallOptions): AsyncIterableIterator<PromptListing> {
    return listOf<PromptListing>(this.#session, 'prompts/list', 'prompts', options)
  }

  /** Listens for a notification; the returned function ends that. */
  on<const Method extends methods.ServerNotificationMethod>(
    method: Method,
    listener: (params: methods.NotificationParams<Method>) => unknown,
  ): () => void {
    return this.#session.on(method, listener as (params: Params) => unknown) // what a server sends is its word
  }

  close(): Promise<void> {
    return this.#session.peer.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
