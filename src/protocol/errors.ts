/** A handshake request on a connection that has not been initialized (also: no such resource, before the newest revision). */
export const NOT_INITIALIZED = -32002
