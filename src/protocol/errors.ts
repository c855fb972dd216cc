/** A handshake request on a connection that has not been initialized. */
export const NOT_INITIALIZED = -32002
/** A request that describes itself names a revision that is not served so; `data.supported` lists those that are. */
export const UNSUPPORTED_PROTOCOL_VERSION = -32022
/** The request needs something that its client has not declared; `data.requiredCapabilities` says what. */
export const MISSING_CLIENT_CAPABILITY = -32021
