export type { Principal } from './jsonrpc/channel.js'
export { RpcError } from './jsonrpc/errors.js'
export type { Id } from './jsonrpc/message.js'
export type {
  Annotations,
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  Icon,
  ImageContent,
  Implementation,
  LogLevel,
  ResourceLink,
  TextContent,
  ToolAnnotations,
} from './protocol/model.js'
export type { JsonSchema, StandardSchema } from './schema/standard.js'
export type { Call, Caller } from './server/call.js'
export {
  type Complete,
  type Prompt,
  type PromptArgument,
  type Resource,
  type Schema,
  type Tool,
  type ToolDefinition,
  ToolError,
  type ToolResult,
  prompt,
  resource,
  result,
  tool,
} from './server/define.js'
export { type Server, type ServerOptions, createServer } from './server/server.js'
