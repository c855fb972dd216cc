export type { LogEntry } from './jsonrpc/log-entry.js'
export type { Params } from './jsonrpc/message.js'
export type { MethodDescriptor, SessionEffect } from './protocol/methods.js'
export type { CallToolResult, ToolListing } from './protocol/model.js'
export type { CallEnvironment } from './server/call.js'
export {
  type Extension,
  type ExtensionClient,
  type ExtensionDefinition,
  type ExtensionMethod,
  type ExtensionStream,
  type Serving,
  type ToolCall,
  extension,
} from './server/extensions.js'
