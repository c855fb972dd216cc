import type { Params } from '../jsonrpc/message.js'
import type {
  CacheHint,
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  LogLevel,
  Meta,
  ProgressParams,
  PromptListing,
  ReadResourceResult,
  ResourceListing,
  ResourceTemplateListing,
  ToolListing,
} from '../protocol/model.js'

/* Params and results of the protocol's methods, in all revisions. Results are typed, not checked. */

interface WithMeta {
  _meta?: Meta
}

interface ListParams extends WithMeta {
  cursor?: string | undefined
}
type Page<Member extends string, Item> = { [Key in Member]: Item[] } & {
  nextCursor?: string
} & Partial<CacheHint> &
  WithMeta

/** Added by the client when it answers input requests. */
interface Resumed extends WithMeta {
  inputResponses?: Params
  requestState?: string
}

interface Subscriptions {
  toolsListChanged?: boolean
  promptsListChanged?: boolean
  resourcesListChanged?: boolean
  resourceSubscriptions?: string[]
  /** Fields of extensions. */
  [field: string]: unknown
}

/** Requests of a client, by method. */
export interface Requests {
  'server/discover': {
    params: WithMeta
    result: {
      supportedVersions: string[]
      capabilities: Params
      instructions?: string
    } & Partial<CacheHint> &
      WithMeta
  }
  ping: { params: WithMeta; result: WithMeta }
  'tools/list': { params: ListParams; result: Page<'tools', ToolListing> }
  'tools/call': { params: { name: string; arguments?: Params } & Resumed; result: CallToolResult }
  'resources/list': { params: ListParams; result: Page<'resources', ResourceListing> }
  'resources/templates/list': {
    params: ListParams
    result: Page<'resourceTemplates', ResourceTemplateListing>
  }
  'resources/read': {
    params: { uri: string } & Resumed
    result: ReadResourceResult & Partial<CacheHint>
  }
  'resources/subscribe': { params: { uri: string } & WithMeta; result: WithMeta }
  'resources/unsubscribe': {
    params: { uri: string } & WithMeta
    result: WithMeta
  }
  'prompts/list': { params: ListParams; result: Page<'prompts', PromptListing> }
  'prompts/get': {
    params: { name: string; arguments?: Readonly<Record<string, string>> } & Resumed
    result: GetPromptResult
  }
  'completion/complete': {
    params: {
      ref:
        | { type: 'ref/prompt'; name: string; title?: string }
        | { type: 'ref/resource'; uri: string }
      argument: { name: string; value: string }
      context?: { arguments?: Readonly<Record<string, string>> }
    } & WithMeta
    result: CompleteResult & WithMeta
  }
  'logging/setLevel': { params: { level: LogLevel } & WithMeta; result: WithMeta }
  'subscriptions/listen': {
    params: { notifications: Subscriptions } & WithMeta
    result: WithMeta
  }
}

/** Notifications of a server, by method. */
export interface ServerNotifications {
  'notifications/cancelled': { requestId?: string | number; reason?: string } & WithMeta
  'notifications/progress': ProgressParams & WithMeta
  'notifications/message': { level: LogLevel; logger?: string; data: unknown } & WithMeta
  'notifications/resources/updated': { uri: string } & WithMeta
  'notifications/resources/list_changed': WithMeta
  'notifications/tools/list_changed': WithMeta
  'notifications/prompts/list_changed': WithMeta
  'notifications/elicitation/complete': { elicitationId: string } & WithMeta
  'notifications/subscriptions/acknowledged': { notifications: Subscriptions } & WithMeta
}

/** Notifications of a client, by method. */
export interface ClientNotifications {
  'notifications/initialized': WithMeta
  'notifications/cancelled': { requestId: string | number; reason?: string } & WithMeta
  'notifications/progress': ProgressParams & WithMeta
  'notifications/roots/list_changed': WithMeta
}

/** Any other string; the known ones are still suggested by editors. */
type Other = string & {}
export type RequestMethod = keyof Requests | Other
export type ServerNotificationMethod = keyof ServerNotifications | Other
export type ClientNotificationMethod = keyof ClientNotifications | Other

export type RequestResult<Method> = Method extends keyof Requests
  ? Requests[Method]['result']
  : Params
export type NotificationParams<Method> = Method extends keyof ServerNotifications
  ? ServerNotifications[Method]
  : Params

/** Params without required members can be omitted. */
type Arguments<Params, Rest extends unknown[]> = object extends Params
  ? [params?: Params | undefined, ...Rest]
  : [params: Params, ...Rest]
export type RequestArguments<Method, Options> = Method extends keyof Requests
  ? Arguments<Requests[Method]['params'], [options?: Options]>
  : [params?: Params | undefined, options?: Options]
export type NotificationArguments<Method> = Method extends keyof ClientNotifications
  ? Arguments<ClientNotifications[Method], []>
  : [params?: Params | undefined]
