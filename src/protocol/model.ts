/*
 * The types of MCP, in the shape of the newest revision; results are projected
 * to older revisions when they are sent. In what handlers return, a member may
 * also be undefined, as in the types of the official SDK.
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
export type ContentType = ContentBlock['type']

export interface CallToolResult {
  content: ContentBlock[]
  structuredContent?: unknown
  isError?: boolean | undefined
  _meta?: Meta | undefined
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

/** The name and version of a client or server. */
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
  /** The display name; default is the name. */
  title?: string | undefined
  /** A description. */
  description?: string | undefined
  /** The MIME type, such as `text/markdown`. */
  mimeType?: string | undefined
  /** The size in bytes. */
  size?: number | undefined
  /** `audience`, `priority`, `lastModified`. */
  annotations?: Annotations | undefined
  /** Icons, each with a `src`. */
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
  _meta?: Meta | undefined
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
  description?: string | undefined
  messages: PromptMessage[]
  _meta?: Meta | undefined
}

export interface CompleteResult {
  completion: { values: string[]; total?: number; hasMore?: boolean }
}

/** How long a result may be cached, and by whom: by the caller alone, or in shared caches. */
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

/** A tool call by a model. */
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

/** The parameters of `sampling/createMessage`. */
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

/** The parameters of `elicitation/create`. */
export interface ElicitParams {
  mode: 'form' | 'url'
  message: string
  /** The schema of a form. */
  requestedSchema?: Readonly<Record<string, unknown>>
  url?: string
  elicitationId?: string
}

/** The answer to an elicitation. */
export interface ElicitResult {
  action: 'accept' | 'decline' | 'cancel'
  content?: Readonly<Record<string, string | number | boolean | string[]>>
}

/** A directory or file that the user works in. */
export interface Root {
  uri: string
  name?: string
  _meta?: Meta
}
