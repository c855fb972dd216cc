/*
 * The shapes of MCP that every layer speaks: those of the newest revision.
 * Older revisions are projected from them at the door. In what handlers return,
 * a member may also be undefined: in the types of the official SDK it may.
 */

export type Role = 'user' | 'assistant'

export interface Annotations {
  audience?: Role[] | undefined
  priority?: number | undefined
  lastModified?: string | undefined
}

export interface Icon {
  src: string
  mimeType?: string | undefined
  sizes?: string[] | undefined
  theme?: 'light' | 'dark' | undefined
}

export type Meta = Record<string, unknown>

interface BlockExtras {
  annotations?: Annotations | undefined
  _meta?: Meta | undefined
}

export interface TextContent extends BlockExtras {
  type: 'text'
  text: string
}
export interface ImageContent extends BlockExtras {
  type: 'image'
  /** Base64. */
  data: string
  mimeType: string
}
export interface AudioContent extends BlockExtras {
  type: 'audio'
  /** Base64. */
  data: string
  mimeType: string
}
export interface ResourceLink extends ResourceListing {
  type: 'resource_link'
}
export interface ResourceContents {
  uri: string
  mimeType?: string | undefined
  text?: string | undefined
  /** Base64. */
  blob?: string | undefined
  _meta?: Meta | undefined
}
export interface EmbeddedResource extends BlockExtras {
  type: 'resource'
  resource: ResourceContents
}

export type ContentBlock =
  | TextContent
  | ImageContent
  | AudioContent
  | ResourceLink
  | EmbeddedResource
export type ContentKind = ContentBlock['type']

export interface CallToolResult {
  content: ContentBlock[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: Meta
}

export interface ToolAnnotations {
  title?: string
  readOnlyHint?: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint?: boolean
}

/** A tool as it is listed. */
export interface ToolListing {
  name: string
  title?: string
  description?: string
  inputSchema: Readonly<Record<string, unknown>>
  outputSchema?: Readonly<Record<string, unknown>>
  annotations?: ToolAnnotations
  icons?: Icon[]
  _meta?: Meta
}

/** Who a client or a server says it is. */
export interface Implementation {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
}

export interface ProgressParams {
  progressToken: string | number | bigint
  progress: number
  total?: number
  message?: string
}

/** A resource as it is listed. */
export interface ResourceListing {
  uri: string
  name: string
  /** What people are shown in place of the name. */
  title?: string | undefined
  /** What it is. */
  description?: string | undefined
  /** Its type, such as `text/markdown`. */
  mimeType?: string | undefined
  /** In bytes. */
  size?: number | undefined
  /** `audience`, `priority`, `lastModified`. */
  annotations?: Annotations | undefined
  /** Pictures for it, each with a `src`. */
  icons?: Icon[] | undefined
  _meta?: Meta | undefined
}

export interface ResourceTemplateListing {
  uriTemplate: string
  name: string
  title?: string
  description?: string
  mimeType?: string
  annotations?: Annotations
  icons?: Icon[]
  _meta?: Meta
}

export interface ReadResourceResult {
  contents: ResourceContents[]
  _meta?: Meta
}

interface PromptArgumentListing {
  name: string
  title?: string
  description?: string
  required?: boolean
}

export interface PromptListing {
  name: string
  title?: string
  description?: string
  arguments?: PromptArgumentListing[]
  icons?: Icon[]
  _meta?: Meta
}

export interface PromptMessage {
  role: Role
  content: ContentBlock
}

export interface GetPromptResult {
  description?: string
  messages: PromptMessage[]
  _meta?: Meta
}

export interface CompleteResult {
  completion: { values: string[]; total?: number; hasMore?: boolean }
}

/** How long a result may be kept, and by whom: by the caller alone, or by anybody. */
export interface CacheHint {
  ttlMs: number
  cacheScope: 'public' | 'private'
}

/** From the least to the most severe. */
export const LOG_LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** A model wants a tool to be used. */
interface ToolUseContent {
  type: 'tool_use'
  id: string
  name: string
  input: Readonly<Record<string, unknown>>
  _meta?: Meta
}

interface ToolResultContent {
  type: 'tool_result'
  toolUseId: string
  content: ContentBlock[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: Meta
}

export type SamplingContent =
  | TextContent
  | ImageContent
  | AudioContent
  | ToolUseContent
  | ToolResultContent

export interface SamplingMessage {
  role: Role
  content: SamplingContent | SamplingContent[]
  _meta?: Meta
}

/** What a client's model is to complete. */
export interface CreateMessageParams {
  messages: SamplingMessage[]
  maxTokens: number
  systemPrompt?: string
  temperature?: number
  stopSequences?: string[]
  modelPreferences?: {
    hints?: { name?: string }[]
    costPriority?: number
    speedPriority?: number
    intelligencePriority?: number
  }
  includeContext?: 'none' | 'thisServer' | 'allServers'
  metadata?: Readonly<Record<string, unknown>>
  tools?: ToolListing[]
  toolChoice?: { mode?: 'auto' | 'required' | 'none' }
}

export interface CreateMessageResult extends SamplingMessage {
  model: string
  stopReason?: string
}

/** What a user is asked. */
export interface ElicitParams {
  mode: 'form' | 'url'
  message: string
  /** Of a form: what is asked for. */
  requestedSchema?: Readonly<Record<string, unknown>>
  url?: string
  elicitationId?: string
}

/** What a user did with a question. */
export interface ElicitResult {
  action: 'accept' | 'decline' | 'cancel'
  content?: Readonly<Record<string, string | number | boolean | string[]>>
}

/** A folder or file that the user works in. */
export interface Root {
  uri: string
  name?: string
  _meta?: Meta
}
