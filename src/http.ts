export { httpHandler, nodeHandler } from './http/handlers.js'
export { listen } from './http/listen.js'
export type {
  HttpHandlerOptions,
  HttpLimits,
  HttpOptions,
  HttpStores,
  LegacySseOptions,
  ListenOptions,
} from './http/options.js'
export type { TokenVerifier } from './auth/authorization.js'
export { type OAuthOptions, oauth } from './auth/oauth.js'
export { type StaticToken, tokens } from './auth/tokens.js'
export type { HttpHeaders, HttpRequest, Principal, TappedMessage } from './jsonrpc/channel.js'
export type {
  ChangeBus,
  ChangeBusDefinition,
  ChangePort,
  ChangeReceiver,
  ChangedList,
  Changes,
  SharedChange,
} from './stores/change-bus.js'
export { changeBus } from './stores/shared-changes.js'
export {
  type EventStore,
  type EventWriter,
  MemoryEventStore,
  type MemoryEventStoreOptions,
  type StoredEvent,
} from './stores/event-store.js'
export type {
  OwnershipStart,
  SessionLocation,
  SessionOwnership,
} from './stores/session-ownership.js'
export {
  MemorySessionStore,
  type MemorySessionStoreOptions,
  type SessionRecord,
  type SessionStore,
} from './stores/session-store.js'
export type { Listening } from './transports/http/node.js'
export type { NodeHandler } from './transports/http/node-handler.js'
export type { HttpHandler } from './transports/http/web-context.js'
export type { LogStream, Logger, ProcessLogLevel } from './transports/stdio-log.js'
