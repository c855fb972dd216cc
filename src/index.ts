export type { HttpHeaders, HttpRequest, Principal } from './jsonrpc/channel.js'
export { RpcError } from './jsonrpc/errors.js'
export type { Id } from './jsonrpc/message.js'
export type {
  Annotations,
  AudioContent,
  CacheHint,
  CallToolResult,
  ContentBlock,
  CreateMessageParams,
  CreateMessageResult,
  EmbeddedResource,
  GetPromptResult,
  Icon,
  ImageContent,
  Implementation,
  LogLevel,
  Meta,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  ResourceLink,
  Role,
  Root,
  SamplingContent,
  SamplingMessage,
  TextContent,
  ToolAnnotations,
} from './protocol/model.js'
export type { JsonSchema, Schema, StandardSchema } from './schema/standard.js'
export { withJsonSchema } from './schema/with-json-schema.js'
export type { Call, Caller } from './server/call.js'
export {
  type Answers,
  DeclinedError,
  type Json,
  type Question,
  type StateOptions,
  type StepValue,
  Suspended,
  form,
  roots,
  sample,
  url,
} from './server/ask.js'
export {
  type Complete,
  type Prompt,
  type PromptArgument,
  type Resource,
  type Tool,
  type ToolDefinition,
  type ToolFields,
  type ToolResult,
  prompt,
  resource,
  result,
  tool,
} from './server/define.js'
export { ToolError } from './server/tool-error.js'
export type { Middleware, MethodCall, Result } from './server/middleware.js'
export type { Server } from './server/server.js'
export { type ServerOptions, createServer } from './server/create-server.js'
export type { Extension } from './server/extensions.js'
export type { ChangeBus } from './stores/change-bus.js'
export type { Definitions } from './server/registry.js'
