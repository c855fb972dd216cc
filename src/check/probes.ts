import { isObject } from '../schema/issue.js'
import type { Reply } from './connection.js'
import { ProcessConnection } from './process-connection.js'
import { sampleArguments } from './sample.js'
import { type Session, codeOf, describeError, noResponse } from './session.js'

/** `http`: Streamable HTTP; `sse`: HTTP+SSE, the transport of the first revision. */
export type Transport = 'stdio' | 'http' | 'sse'

/** One thing that is tried on a connection of its own. */
export interface Probe {
  name: string
  /** The only transport that it is for. */
  transport?: Transport
  /** Whether it can be tried: the server has declared what it needs. */
  applies?(session: Session): boolean
  run(session: Session, options: ProbeOptions): Promise<void>
}

export interface ProbeOptions {
  /** Call listed tools that are not marked as read-only, too. */
  allowCalls: boolean
  /** Requests for the 95th percentile; 0 if there is no budget. */
  samples: number
}

const METHOD_NOT_FOUND = -32601
/** A name that no server has. */
const UNKNOWN = 'ccmcp_check_no_such'
/** Tools that are called. */
const MAX_CALLS = 50

/** Reports a server that no longer responds after what was sent. `isInvalid`: clients must not send that. */
async function checkAlive(session: Session, after: string, isInvalid = false): Promise<boolean> {
  const reply = await session.ping()
  if (reply.kind === 'result') return true
  if (reply.kind === 'error') {
    session.report('inconsistent', `after ${after}: ${describeError(reply.value)}`, reply)
    return false
  }
  const { ended = 'there was no response' } = session.connection
  if (isInvalid) session.report('fatal-input', `after ${after}: ${ended}`, reply)
  else noResponse(session, `a request after ${after}`, reply)
  return false
}

const unknownMethod: Probe = {
  name: 'unknown method',
  async run(session) {
    const reply = await session.request(`${UNKNOWN}/method`)
    if (reply.kind === 'none') return noResponse(session, 'a request with an unknown method', reply)
    if (reply.kind === 'result')
      return session.report(
        'unknown-method-result',
        JSON.stringify(reply.value).slice(0, 200),
        reply,
      )
    if (codeOf(reply.value) !== METHOD_NOT_FOUND)
      session.report('unknown-method-code', describeError(reply.value), reply)
    await checkAlive(session, 'an unknown method')
  },
}

const unknownTool: Probe = {
  name: 'unknown tool',
  applies: (session) => session.has('tools'),
  async run(session) {
    await session.request('tools/list')
    const reply = await session.request('tools/call', { name: UNKNOWN, arguments: {} })
    if (reply.kind === 'none') return noResponse(session, 'a call of an unknown tool', reply)
    checkUnknownTool(session, reply)
    await checkAlive(session, 'a call of an unknown tool')
  },
}

function checkUnknownTool(session: Session, reply: Reply): void {
  const { kind, value } = reply
  if (kind !== 'result') return
  const { isError, content = [] } = isObject(value) ? value : {}
  if (isError !== true)
    return session.report('unknown-tool-result', JSON.stringify(value).slice(0, 200), reply)
  const text = JSON.stringify(content)
  // Any other text is about another failure, such as a missing program, before the tool was looked up.
  if (text.includes(UNKNOWN) || /\btool\b/i.test(text))
    session.report('unknown-tool-error', `isError with ${text.slice(0, 200)}`, reply)
}

const invalidJson: Probe = {
  name: 'invalid JSON',
  async run(session) {
    session.connection.send('{"jsonrpc":"2.0","id":1,')
    if (!(await checkAlive(session, 'a message that is not JSON', true))) return
    session.connection.send('[7, "x", null]')
    if (!(await checkAlive(session, 'a message that is not JSON-RPC', true))) return
    // Neither a method that a server could have, nor a response to a request of it.
    session.connection.notify(`notifications/${UNKNOWN}`)
    await checkAlive(session, 'an unknown notification')
  },
}

/** Ids that every JSON parser can keep. */
const IDS = [
  '0',
  '-1',
  String(Number.MAX_SAFE_INTEGER),
  '"1"',
  '"9007199254740993"',
  JSON.stringify(`ü \u{1f600} "quoted" \\ ${'x'.repeat(200)}`),
]

const ids: Probe = {
  name: 'ids',
  async run(session) {
    const { connection } = session
    for (const id of IDS) {
      const answered = connection.waitFor(({ kind }) => kind === 'response')
      const pending = session.ping({ id })
      if (await answered) connection.abandon(id)
      const reply = await pending
      if (reply.kind !== 'none') continue
      // A response with another id is reported by the rules as one without a request.
      if (connection.unmatched.length === 0)
        noResponse(session, `a request with the id ${id.slice(0, 40)}`, reply)
      return
    }
  },
}

/** Milliseconds to wait for a response that may never come. */
const LATE_RESPONSE_TIMEOUT = 300

const bigId: Probe = {
  name: 'id beyond 2^53',
  async run(session) {
    const { connection } = session
    connection.recording.ignore('orphan-response', 'unsafe-number', 'invalid-id')
    const id = '9007199254740993'
    const method = session.isStateless ? 'server/discover' : 'ping'
    const pending = session.request(method, undefined, { id })
    if (!(await checkAlive(session, `a request with the id ${id}`))) return
    await new Promise((resolve) => {
      setTimeout(resolve, LATE_RESPONSE_TIMEOUT)
    })
    connection.abandon(id)
    const reply = await pending
    const [other] = connection.unmatched
    // Not every JSON parser can read such a number: no response is no worse than a rounded one.
    if (other !== undefined)
      session.report('inexact-id', changeOf(id, other.id), {
        ...reply,
        span: other.span,
        dir: 'out',
      })
    else if (reply.kind === 'none') session.report('inexact-id', `${id} got no response`, reply)
  },
}

function changeOf(id: string, other: string): string {
  if (other === 'null') return `${id} got an error with the id null`
  return `${id} became ${other.slice(0, 40)}`
}

const cancellation: Probe = {
  name: 'cancellation',
  // Over HTTP, a stateless request is cancelled by closing its response.
  applies: ({ isStateless, connection }) => !isStateless || connection instanceof ProcessConnection,
  async run(session) {
    const { connection } = session
    // The notification may cross the response: one for a request that was answered is ignored.
    await session.ping({ id: '"answered"' })
    connection.notify('notifications/cancelled', { requestId: 'answered' })
    if (!(await checkAlive(session, 'the cancellation of an answered request'))) return
    // Of one in progress: a response is allowed, since both may cross.
    connection.recording.ignore('late-response')
    const method = session.has('tools') ? 'tools/list' : 'server/discover'
    const pending = session.request(method, undefined, { id: '"cancelled"' })
    connection.notify('notifications/cancelled', { requestId: 'cancelled' })
    if (!(await checkAlive(session, 'the cancellation of a request'))) return
    void pending
    connection.notify('notifications/cancelled', { requestId: UNKNOWN, reason: 'ccmcp check' })
    await checkAlive(session, 'the cancellation of an unknown request')
  },
}

const listen: Probe = {
  name: 'subscription',
  transport: 'stdio',
  applies: ({ isStateless, capabilities }) =>
    isStateless && isObject(capabilities['tools']) && capabilities['tools']['listChanged'] === true,
  async run(session) {
    const { connection } = session
    const acknowledged = connection.waitFor(
      ({ method }) => method === 'notifications/subscriptions/acknowledged',
    )
    const reply = session.request(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { id: '"listen"' },
    )
    const isEarly = await Promise.race([acknowledged, reply.then(({ kind }) => kind)])
    if (isEarly === false || isEarly === 'none')
      session.report('acknowledgement', `none came within ${connection.timeout / 1000} s`)
    connection.notify('notifications/cancelled', { requestId: 'listen' })
    await checkAlive(session, 'the end of a subscription')
  },
}

const calls: Probe = {
  name: 'calls of tools',
  applies: (session) => session.has('tools'),
  async run(session, { allowCalls }) {
    await session.list()
    const { connection } = session
    const tools = connection.recording.definitions.listing('tools')?.items
    const chosen = [...(tools ?? [])].filter(([, tool]) => allowCalls || isReadOnly(tool))
    for (const [index, [name, tool]] of chosen.slice(0, MAX_CALLS).entries()) {
      const sample = sampleArguments(tool['inputSchema'])
      if (sample === undefined) continue
      const id = `call ${index}`
      const params = { name, arguments: sample }
      const reply = await session.request('tools/call', params, { id: JSON.stringify(id) })
      if (reply.kind !== 'none') continue
      // A tool may take long; but the server must live.
      connection.notify('notifications/cancelled', { requestId: id })
      if (!(await checkAlive(session, `a call of ${name.slice(0, 64)}`))) return
    }
  },
}

function isReadOnly({ annotations }: Readonly<Record<string, unknown>>): boolean {
  return isObject(annotations) && annotations['readOnlyHint'] === true
}

const latency: Probe = {
  name: 'latency',
  async run(session, { samples }) {
    for (let i = 0; i < samples; i++) {
      if ((await session.ping()).kind === 'none') return
      if (session.has('tools')) await session.request('tools/list')
    }
  },
}

/** Requests that are in progress when the input ends. */
const IN_FLIGHT = 8

const endOfInput: Probe = {
  name: 'end of input',
  transport: 'stdio',
  async run(session) {
    const { connection } = session
    if (!(connection instanceof ProcessConnection)) return
    const method = session.has('tools') ? 'tools/list' : undefined
    const replies = Array.from({ length: IN_FLIGHT }, () =>
      method === undefined ? session.ping() : session.request(method),
    )
    connection.endInput()
    const hasExited = await connection.exits()
    if (!hasExited)
      session.report(
        'runs-after-end',
        `it was still running after ${connection.exitTimeout / 1000} s`,
      )
    await connection.close()
    const lost = (await Promise.all(replies)).filter(({ kind }) => kind === 'none')
    const [first] = lost
    if (first !== undefined)
      session.report('lost-at-end', `${lost.length} of ${IN_FLIGHT} got no response`, first)
  },
}

const sigterm: Probe = {
  name: 'SIGTERM',
  transport: 'stdio',
  applies: () => process.platform !== 'win32',
  async run(session) {
    const { connection } = session
    if (!(connection instanceof ProcessConnection)) return
    connection.signal('SIGTERM')
    if (!(await connection.exits()))
      session.report(
        'ignores-sigterm',
        `it was still running after ${connection.exitTimeout / 1000} s`,
      )
  },
}

/** What is tried in each kind of session that the server has, and what only once. */
export const PROBES: readonly Probe[] = [
  unknownMethod,
  unknownTool,
  invalidJson,
  ids,
  bigId,
  cancellation,
  listen,
]
export const FINAL_PROBES: readonly Probe[] = [calls, latency, endOfInput, sigterm]
