import { checkAuthorization } from '../auth/authorization.js'
import { isLoopback } from '../auth/loopback.js'
import { withCode } from '../jsonrpc/errors.js'
import { onAbort } from '../jsonrpc/on-abort.js'
import { atCallOf } from '../runtime.js'
import { checkNames } from '../schema/names.js'
import type { Server } from '../server/server.js'
import type { Endpoint } from '../transports/http/endpoint.js'
import type { Listening, NodeServer } from '../transports/http/node.js'
import { standardError } from '../transports/stdio-log.js'
import { createEndpoint } from './create-endpoint.js'
import {
  DRAIN_TIMEOUT,
  KEEP_ALIVE,
  LISTEN_NAMES,
  type ListenOptions,
  UNSENT_BYTES,
  checkPath,
} from './options.js'

const LOOPBACK = '127.0.0.1'
/** Milliseconds for responses that are sent at the deadline of `close`. */
const FLUSH_TIMEOUT = 100
/** Milliseconds for requests that other processes have passed on before they knew that sessions have moved. */
const HANDOVER = 500

/** Serves MCP over HTTP on a port of this machine. */
export async function listen(server: Server, options: ListenOptions = {}): Promise<Listening> {
  const endpoint = atCallOf(listen, () => createChecked(server, options))
  const { port = 3000, host = LOOPBACK, path = '/mcp', tls, signal } = options
  const node = await start(endpoint, { ...options, port, host })
  let closing: Promise<void> | undefined
  let unlisten: (() => void) | undefined
  const close = (deadline = DRAIN_TIMEOUT) => {
    closing ??= (async () => {
      unlisten?.()
      const end = performance.now() + deadline
      // It listens until calls in progress are completed: a load balancer sees 503, and uses another process.
      node.beginClosing()
      await endpoint.close(deadline)
      // Other processes may pass requests on to this one until they know that it has no sessions any more.
      if (endpoint.isShared && deadline > 0)
        await new Promise((resolve) => setTimeout(resolve, Math.min(deadline, HANDOVER)))
      // The last responses need a moment to be sent.
      await node.closed(Math.max(end - performance.now(), Math.min(deadline, FLUSH_TIMEOUT)))
    })()
    return closing
  }
  if (signal?.aborted === true) void close()
  else if (signal !== undefined) unlisten = onAbort(signal, () => void close())
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${urlHost(host)}:${node.port}${path}`,
    port: node.port,
    get sessions() {
      return endpoint.sessions
    },
    get openResponses() {
      return endpoint.openResponses
    },
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

function createChecked(server: Server, options: ListenOptions): Endpoint {
  checkNames('listen', options, LISTEN_NAMES)
  const {
    host = LOOPBACK,
    path = '/mcp',
    auth,
    allowUnauthenticated,
    log = standardError,
  } = options
  checkAuthorization(auth)
  const local = isLoopback(host)
  if (!local && auth === undefined && allowUnauthenticated !== true)
    throw withCode(
      'UNAUTHENTICATED_BIND',
      new TypeError(
        `listen: ${host} can be reached from other machines without authentication. Set "auth", or "allowUnauthenticated: true" to allow that`,
      ),
    )
  checkPath('listen', path)
  return createEndpoint(server, { ...options, log }, { path, addresses: !local })
}

async function start(
  endpoint: Endpoint,
  options: ListenOptions & { port: number; host: string },
): Promise<NodeServer> {
  try {
    await options.auth?.prepare?.()
    const node = await import('../transports/http/node.js')
    const { port, host, tls, limits } = options
    const started = await node.NodeServer.start({
      port,
      host,
      tls,
      ...timeoutsOf(options),
      maxUnsentBytes: limits?.unsentBytes ?? UNSENT_BYTES,
      endpoint,
      report: (entry) => endpoint.report(entry),
    })
    try {
      endpoint.start({ scheme: tls === undefined ? 'http' : 'https', port: started.port })
    } catch (error) {
      await started.closed(0)
      throw error
    }
    return started
  } catch (error) {
    // Stops the extensions.
    await endpoint.close(0)
    throw error
  }
}

function timeoutsOf({
  keepAlive = KEEP_ALIVE,
  requestTimeout = 30_000,
  headersTimeout = requestTimeout === 0 ? 10_000 : Math.min(10_000, requestTimeout),
  inactivityTimeout = keepAlive === 0 ? 0 : Math.max(45_000, 3 * keepAlive),
}: ListenOptions) {
  return { requestTimeout, headersTimeout, inactivityTimeout }
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
