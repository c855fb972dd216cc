import type { Channel } from '../../src/jsonrpc/channel.js'

/** Channels on which a test plays a server that does things wrong: there, only the client is judged. */
export const hostileServers = new WeakSet<Channel>()
