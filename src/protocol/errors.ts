/** A request before `initialize`, in a revision with a handshake. */
export const NOT_INITIALIZED = -32002
/** Resource not found, in the revisions that have a code for it. */
export const RESOURCE_NOT_FOUND = -32002
/** The headers of an HTTP request do not match its body. */
export const HEADER_MISMATCH = -32020
/** The request has no valid token. MCP has no code for this or for INSUFFICIENT_SCOPE; the HTTP status is used. */
export const UNAUTHORIZED = 401
/** The caller's token does not grant the scopes in `data.requiredScopes`. */
export const INSUFFICIENT_SCOPE = 403
/** A stateless request names an unsupported revision; `data.supported` lists those that are supported. */
export const UNSUPPORTED_PROTOCOL_VERSION = -32022
/** The client has not declared a capability that the request requires; it is in `data.requiredCapabilities`. */
export const MISSING_CLIENT_CAPABILITY = -32021
/** The user must first open the URLs in `data.elicitations`. Only one revision has it. */
export const URL_ELICITATION_REQUIRED = -32042
