/** A handshake request on a connection that has not been initialized. */
export const NOT_INITIALIZED = -32002
/** A resource that is not there, in the revisions that have a code of its own for that. */
export const RESOURCE_NOT_FOUND = -32002
/** The headers of an HTTP request do not say what its body says. */
export const HEADER_MISMATCH = -32020
/** The request has no token that is good. The specification names no codes for this and the next: they are HTTP's own. */
export const UNAUTHORIZED = 401
/** The caller's token does not grant the scopes in `data.requiredScopes`. */
export const INSUFFICIENT_SCOPE = 403
/** A request that describes itself names a revision that is not served so; `data.supported` lists those that are. */
export const UNSUPPORTED_PROTOCOL_VERSION = -32022
/** The request needs something that its client has not declared; `data.requiredCapabilities` says what. */
export const MISSING_CLIENT_CAPABILITY = -32021
