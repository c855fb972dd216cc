import type { Channel } from '../../src/jsonrpc/channel.js'

/** Channels of test servers that violate the protocol: only messages of the client are validated. */
export const hostileServers = new WeakSet<Channel>()
