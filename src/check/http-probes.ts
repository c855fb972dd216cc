import { HttpConnection } from './http-connection.js'
import type { Probe } from './probes.js'
import { SseConnection } from './sse-connection.js'

const isLocal = ({ hostname }: URL) => /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)

const notificationStatus: Probe = {
  name: 'status of a notification',
  transport: 'http',
  // Stateless revisions have no notifications of clients over HTTP.
  applies: (session) => !session.isStateless,
  async run(session) {
    const { connection } = session
    if (!(connection instanceof HttpConnection)) return
    const text = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    connection.recording.bytes('in', Buffer.from(`${text}\n`))
    const { status, isEmpty } = await connection.post(text)
    if (status < 300 && (status !== 202 || !isEmpty))
      session.report('http-status', `a notification got ${status}; it must get 202 without a body`)
  },
}

const versionHeader: Probe = {
  name: 'invalid MCP-Protocol-Version',
  transport: 'http',
  applies: (session) => !session.isStateless && session.revision.versionHeader,
  async run(session) {
    const reply = await session.ping({ headers: { 'mcp-protocol-version': 'ccmcp-check' } })
    if (reply.kind === 'result') session.report('version-header', 'ccmcp-check', reply)
  },
}

const contradictingHeader: Probe = {
  name: 'headers that contradict the body',
  transport: 'http',
  applies: (session) => session.isStateless,
  async run(session) {
    const reply = await session.ping({ headers: { 'mcp-method': 'tools/list' } })
    if (reply.kind === 'result')
      session.report('header-not-checked', 'Mcp-Method: tools/list, with another method', reply)
  },
}

const FOREIGN = 'ccmcp-check.example'

const foreignOrigin: Probe = {
  name: 'foreign Origin',
  transport: 'http',
  // Elsewhere, every origin may be allowed on purpose.
  applies: ({ connection }) => connection instanceof HttpConnection && isLocal(connection.url),
  async run(session) {
    const origin = `http://${FOREIGN}`
    const reply = await session.ping({ headers: { origin } })
    if (reply.kind !== 'result') return
    const { connection } = session
    const allowed =
      connection instanceof HttpConnection ? connection.last?.allowedOrigin : undefined
    if (allowed === '*' || allowed === origin)
      return session.report(
        'origin-not-checked',
        `Origin: ${origin}; the response has Access-Control-Allow-Origin: ${allowed}`,
        reply,
      )
    // By DNS rebinding, a page reaches this machine under its own name, which then is the Host.
    const rebound = await session.ping({ headers: { origin, host: FOREIGN } })
    if (rebound.kind === 'result')
      session.report('origin-not-checked', `Origin: ${origin}, and Host: ${FOREIGN}`, rebound)
    else session.report('only-host-checked', `Origin: ${origin}`, reply)
  },
}

const foreignOriginOfStream: Probe = {
  name: 'foreign Origin',
  transport: 'sse',
  applies: ({ connection }) => connection instanceof SseConnection && isLocal(connection.url),
  async run(session) {
    const { connection } = session
    if (!(connection instanceof SseConnection)) return
    const origin = `http://${FOREIGN}`
    const opened = await connection.openStreamWith({ origin })
    if (opened === undefined) return
    const { allowedOrigin } = opened
    if (allowedOrigin === '*' || allowedOrigin === origin)
      return session.report(
        'origin-not-checked',
        `Origin: ${origin}; the event stream has Access-Control-Allow-Origin: ${allowedOrigin}`,
      )
    const rebound = await connection.openStreamWith({ origin, host: FOREIGN })
    if (rebound === undefined) session.report('only-host-checked', `Origin: ${origin}`)
    else session.report('origin-not-checked', `Origin: ${origin}, and Host: ${FOREIGN}`)
  },
}

export const HTTP_PROBES: readonly Probe[] = [
  notificationStatus,
  versionHeader,
  contradictingHeader,
  foreignOrigin,
  foreignOriginOfStream,
]
