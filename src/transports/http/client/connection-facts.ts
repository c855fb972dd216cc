import type { ConnectionFacts } from '../../../jsonrpc/channel.js'
import { sessionNameOf } from '../session-id.js'

/** The connection to a server at a URL. Of a session id like ours, only the part that may be logged. */
export function httpConnection(url: URL, session?: string): ConnectionFacts {
  const { hostname, port, protocol } = url
  const standard = protocol === 'https:' ? 443 : 80
  return {
    transport: 'tcp',
    protocol: 'http',
    server: { address: hostname, port: port === '' ? standard : Number(port) },
    session: session === undefined ? undefined : sessionNameOf(session) || session,
  }
}
