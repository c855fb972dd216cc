import { type Params, isObject } from '../jsonrpc/message.js'
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
import type * as methods from './methods.js'
import { listOf } from './pages.js'
import type { CallOptions, ClientSession, ServerDetails } from './session.js'

/** A connected client. */
export class Client {
  readonly #session: ClientSession
  readonly #details: ServerDetails

  constructor(session: ClientSession, details: ServerDetails) {
    this.#session = session
    this.#details = details
  }

  /** The negotiated protocol revision. */
  get revision(): string {
    return this.#details.revision.id
  }

  /** The server's name and version. */
  get server(): Implementation | undefined {
    return this.#details.server
  }

  get capabilities(): Params {
    return this.#details.capabilities
  }

  get instructions(): string | undefined {
    return this.#details.instructions
  }

  /** Sends a request. The methods of the protocol are typed; results are not checked. */
  request<const Method extends methods.RequestMethod>(
    method: Method,
    ...[params, options]: methods.RequestArguments<Method, CallOptions>
  ): Promise<methods.RequestResult<Method>> {
    return this.#session.request(method, params as Params | undefined, options) as Promise<
      methods.RequestResult<Method>
    > // as the protocol defines it
  }

  notify<const Method extends methods.ClientNotificationMethod>(
    method: Method,
    ...[params]: methods.NotificationArguments<Method>
  ): void {
    this.#session.peer.notify(method, params)
  }

  /** Calls a tool. A tool that fails resolves with `isError`; an unknown tool rejects with an RpcError. */
  async callTool(name: string, args: Params = {}, options?: CallOptions): Promise<CallToolResult> {
    const result = await this.#session.request('tools/call', { name, arguments: args }, options)
    if (!Array.isArray(result['content']))
      throw new TypeError(`The result of the tool ${name} has no "content"`)
    return result as unknown as CallToolResult // the content is not checked
  }

  async readResource(uri: string, options?: CallOptions): Promise<ReadResourceResult> {
    const result = await this.#session.request('resources/read', { uri }, options)
    if (!Array.isArray(result['contents']))
      throw new TypeError(`The response for ${uri} has no "contents"`)
    return result as unknown as ReadResourceResult // the contents are not checked
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>> = {},
    options?: CallOptions,
  ): Promise<GetPromptResult> {
    const result = await this.#session.request('prompts/get', { name, arguments: args }, options)
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
      Object.keys(others).length > 0 && this.#details.revision.fields.completion.includes('context')
    const context = known ? { context: { arguments: others } } : {}
    const { completion } = await this.#session.request(
      'completion/complete',
      { ref, argument, ...context },
      options,
    )
    if (!isObject(completion) || !Array.isArray(completion['values']))
      throw new TypeError('The response to completion/complete has no "values"')
    return completion as unknown as CompleteResult['completion'] // the values are not checked
  }

  /** Every tool, of all pages. */
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

  /** Adds a listener for a notification; the returned function removes it. */
  on<const Method extends methods.ServerNotificationMethod>(
    method: Method,
    listener: (params: methods.NotificationParams<Method>) => unknown,
  ): () => void {
    return this.#session.on(method, listener as (params: Params) => unknown) // params are not checked
  }

  close(): Promise<void> {
    return this.#session.peer.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
