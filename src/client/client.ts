import { type Params, isObject } from '../jsonrpc/message.js'
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Implementation,
  LogLevel,
  PromptListing,
  ReadResourceResult,
  ResourceListing,
  ResourceTemplateListing,
  ToolListing,
} from '../protocol/model.js'
import type { Schema } from '../schema/standard.js'
import { type CachedCallOptions, cachedListOf } from './cache.js'
import type { Connection } from './connection.js'
import type { ClientEvents } from './events.js'
import type * as methods from './methods.js'
import type { Prior } from './prior.js'
import type { CallOptions, SessionCallOptions } from './call-options.js'
import type { List } from './subscription-links.js'
import type { ListenOptions, Subscription } from './subscription.js'
import type { ListChange, ResourceChange } from './subscriptions.js'
import { type TypedToolResult, checkBy, checkResult, typedResult } from './tool-results.js'

export interface ToolCallOptions<Output extends Schema = Schema> extends CallOptions {
  /** The schema of the structured content: JSON Schema or Standard Schema. The result is validated and typed by it. */
  output?: Output
}

/** The name of an event or a notification. */
type EventName = keyof ClientEvents | methods.ServerNotificationMethod
type EventOf<Name> = Name extends keyof ClientEvents
  ? ClientEvents[Name]
  : methods.NotificationParams<Name>

/** A connected client. */
export class Client {
  readonly #connection: Connection
  readonly #validates: boolean
  readonly #send = (method: string, params: Params | undefined, options?: SessionCallOptions) =>
    this.#connection.request(method, params, options)

  /** `validates`: results are validated by the listed schemas. */
  constructor(connection: Connection, validates: boolean) {
    this.#connection = connection
    this.#validates = validates
  }

  /** The negotiated protocol revision. */
  get revision(): string {
    return this.#connection.details.revision.id
  }

  /** The server's name and version. */
  get server(): Implementation | undefined {
    return this.#connection.details.server
  }

  get capabilities(): Params {
    return this.#connection.details.capabilities
  }

  get instructions(): string | undefined {
    return this.#connection.details.instructions
  }

  /** What is known of the server, as plain JSON: `connect(target, { prior })` then saves a request. */
  get prior(): Prior {
    return this.#connection.prior
  }

  /** Sends a request. The methods of the protocol are typed; results are neither checked nor cached. */
  request<const Method extends methods.RequestMethod>(
    method: Method,
    ...[params, options]: methods.RequestArguments<Method, CallOptions>
  ): Promise<methods.RequestResult<Method>> {
    return this.#send(method, params as Params | undefined, options) as Promise<
      methods.RequestResult<Method>
    > // as the protocol defines it
  }

  notify<const Method extends methods.ClientNotificationMethod>(
    method: Method,
    ...[params]: methods.NotificationArguments<Method>
  ): void {
    this.#connection.notify(method, params as Params | undefined)
  }

  /**
   * Calls a tool. A tool that fails resolves with `isError`; an unknown tool rejects with an RpcError. With `output`, the
   * structured content is validated and typed by that schema.
   */
  callTool<const Output extends Schema>(
    name: string,
    args: Params | undefined,
    options: ToolCallOptions<Output> & { output: Output },
  ): Promise<TypedToolResult<Output>>
  callTool(name: string, args?: Params, options?: CallOptions): Promise<CallToolResult>
  async callTool(
    name: string,
    args: Params = {},
    { output, ...options }: ToolCallOptions = {},
  ): Promise<CallToolResult | TypedToolResult<Schema>> {
    checkFirst(name, 'callTool(name, args)')
    const check = output === undefined ? undefined : checkBy(output)
    const schema = this.#validates ? await this.#outputSchema(name, options) : undefined
    const received = await this.#send('tools/call', { name, arguments: args }, options)
    if (!Array.isArray(received['content']))
      throw new TypeError(`The result of the tool ${name} has no "content"`)
    const result = received as unknown as CallToolResult // the content is not checked
    try {
      await checkResult(name, result, schema, this.#connection.report)
      return check === undefined ? result : await typedResult(name, result, check)
    } catch (error) {
      this.#connection.redactError(error)
      throw error
    }
  }

  /** Before the call, so that a list that fails does not hide a result. */
  #outputSchema(name: string, options: CallOptions): Promise<unknown> {
    const { onProgress: _, ...others } = options
    const { details, outputSchemas } = this.#connection
    if (details.revision.structuredContent === 'none') return Promise.resolve(undefined)
    return outputSchemas.of(name, () => this.tools(others))
  }

  async readResource(uri: string, options?: CachedCallOptions): Promise<ReadResourceResult> {
    checkFirst(uri, 'readResource(uri)')
    const { cache } = this.#connection
    const { result } = await cache.request(this.#send, 'resources/read', { uri }, options)
    if (!Array.isArray(result['contents']))
      throw new TypeError(`The response for ${uri} has no "contents"`)
    return result as unknown as ReadResourceResult // the contents are not checked
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>> = {},
    options?: CallOptions,
  ): Promise<GetPromptResult> {
    checkFirst(name, 'getPrompt(name, args)')
    const result = await this.#send('prompts/get', { name, arguments: args }, options)
    if (!Array.isArray(result['messages']))
      throw new TypeError(`The result of the prompt ${name} has no "messages"`)
    return result as unknown as GetPromptResult // the messages are not checked
  }

  /** Completes an argument of a prompt, or a variable of a resource template. */
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
      Object.keys(others).length > 0 &&
      this.#connection.details.revision.fields.completion.includes('context')
    const context = known ? { context: { arguments: others } } : {}
    const { completion } = await this.#send(
      'completion/complete',
      { ref, argument, ...context },
      options,
    )
    if (!isObject(completion) || !Array.isArray(completion['values']))
      throw new TypeError('The response to completion/complete has no "values"')
    return completion as unknown as CompleteResult['completion'] // the values are not checked
  }

  /** Every tool, of all pages. */
  tools(options?: CachedCallOptions): AsyncIterableIterator<ToolListing> {
    return this.#list('tools/list', 'tools', options)
  }

  resources(options?: CachedCallOptions): AsyncIterableIterator<ResourceListing> {
    return this.#list('resources/list', 'resources', options)
  }

  resourceTemplates(options?: CachedCallOptions): AsyncIterableIterator<ResourceTemplateListing> {
    return this.#list('resources/templates/list', 'resourceTemplates', options)
  }

  prompts(options?: CachedCallOptions): AsyncIterableIterator<PromptListing> {
    return this.#list('prompts/list', 'prompts', options)
  }

  async *#list<Item>(
    method: string,
    member: string,
    options: CachedCallOptions | undefined,
  ): AsyncIterableIterator<Item> {
    try {
      yield* cachedListOf<Item>(this.#connection.cache, this.#send, method, member, options)
    } catch (error) {
      this.#connection.redactError(error)
      throw error
    }
  }

  /** Forgets the cached results, such as after the user has changed. */
  clearCache(): void {
    this.#connection.cache.clear()
  }

  /**
   * Calls the listener when a resource changes, in every protocol revision and across reconnects. Resolves when the server
   * has accepted it; rejects with the code `NOT_SUPPORTED` if it does not offer subscriptions. A change may be announced
   * more than once.
   */
  subscribe(
    uri: string,
    listener: (change: ResourceChange) => unknown,
    options?: CallOptions,
  ): Promise<Subscription> {
    return this.#connection.subscribe(uri, listener, options)
  }

  /** Calls the listener when the list of tools, prompts or resources changes. As `subscribe`, for lists. */
  watch(
    list: List,
    listener: (change: ListChange) => unknown,
    options?: CallOptions,
  ): Promise<Subscription> {
    return this.#connection.watch(list, listener, options)
  }

  /**
   * Listens to what a field of `subscriptions/listen` that belongs to an extension asks for; its notifications go to the
   * extension's handlers and to `on`, and may come more than once. As `subscribe`, across reconnects; lists for the same
   * field are sent as one.
   */
  listen(field: string, value: unknown, options?: ListenOptions): Promise<Subscription> {
    return this.#connection.listen(field, value, options)
  }

  /** Asks for log messages of a level or above (`on('notifications/message', …)`), in every protocol revision. */
  setLogLevel(level: LogLevel, options?: CallOptions): Promise<void> {
    return this.#connection.setLogLevel(level, options)
  }

  /** Adds a listener for an event or a notification; the returned function removes it. */
  on<const Name extends EventName>(
    name: Name,
    listener: (event: EventOf<Name>) => unknown,
  ): () => void {
    return this.#connection.listeners.add(name, listener) // params of notifications are not checked
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Throws for the params of a request as the only argument, as other clients take them. */
function checkFirst(first: unknown, form: string): void {
  if (isObject(first) && !(first instanceof URL))
    throw new TypeError(`${form}: the first argument must be a string, not an object`)
}
