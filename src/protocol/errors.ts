/** A handshake request on a connection that has not been initialized. */
export const NOT_INITIALIZED = -32002
/** A request that describes itself names a revision that is not served so; `data.supported` lists those that are. */
export const UNSUPPORTED_PROTOCOL_VERSION = -32022
