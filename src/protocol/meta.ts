/**
 * Members of `_meta` that an extension adds to a tool or to contents. They are sent in every revision: a client that has
 * declared the extension knows them, also if its revision had no `_meta` there.
 */
export const EXTENSION_META: unique symbol = Symbol.for('ccmcp.extensionMeta')

/** The keys of `_meta` that belong to the protocol itself. */
export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'
export const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
export const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
