// A correct server, except for the fault that its argument names.
import { createInterface } from 'node:readline'

const [fault = ''] = process.argv.slice(2)
const is = (name) => fault === name
const tools = [
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'change', inputSchema: { type: 'object' } },
]
const META = 'io.modelcontextprotocol/protocolVersion'

/** The digits of an id that JSON.parse would round. */
const digits = new Map()

function send(message) {
  const text = JSON.stringify({ jsonrpc: '2.0', ...message })
  process.stdout.write(`${text.replace(/"id":"exact"/, () => `"id":${digits.get('exact')}`)}\n`)
}

function refuse(id, code, message) {
  send({ id, error: { code, message } })
}

const failed = (text) => ({ content: [{ type: 'text', text }], isError: true })

const handlers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: /^20(?:24|25)/.test(protocolVersion) ? protocolVersion : '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'faulty', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name }) => {
    process.stderr.write(`called ${name}\n`)
    return { content: [{ type: 'text', text: name }] }
  },
}

/** The requests of 2026-07-28, for faults of a subscription. */
const HINTS = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
const statelessHandlers = {
  'server/discover': () => ({
    ...HINTS,
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true } },
  }),
  'tools/list': () => ({ ...HINTS, tools }),
}

function stateless({ id, method, params }) {
  if (method === 'subscriptions/listen') {
    if (is('refused subscription')) return refuse(id, -32603, 'no')
    if (is('no acknowledgement')) return
    const _meta = { 'io.modelcontextprotocol/subscriptionId': id }
    const { notifications } = params
    send({
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta, notifications },
    })
    return
  }
  const handler = statelessHandlers[method]
  if (handler === undefined) return refuse(id, -32601, 'Method not found')
  send({ id, result: handler() })
}

let refuses = false
let isDeaf = false

function request({ id, method, params = {} }) {
  if (fault.endsWith('subscription') || is('no acknowledgement'))
    return stateless({ id, method, params })
  if (method === 'ping' && (is('no ping') || refuses)) return refuse(id, -32603, 'no')
  if (is('wrong id') && id === Number.MAX_SAFE_INTEGER) return send({ id: 1, result: {} })
  if (method === 'tools/list' && is('no list')) return refuse(id, -32603, 'no')
  if (method === 'tools/list' && is('flood'))
    for (let line = 0; line < 6000; line++) process.stdout.write('x\n')
  if (method === 'tools/list' && is('endless')) {
    const page = tools.map((tool) => ({ ...tool, name: `${tool.name}${Math.random()}` }))
    return send({ id, result: { tools: page, nextCursor: 'more' } })
  }
  if (method === 'tools/call' && !tools.some(({ name }) => name === params.name)) {
    if (is('any tool')) return send({ id, result: { content: [] } })
    if (is('tool error')) return send({ id, result: failed(`Unknown tool: ${params.name}`) })
    if (is('no browser')) return send({ id, result: failed('chromium was not found') })
    return refuse(id, -32602, `Unknown tool: ${params.name}`)
  }
  if (method === 'tools/call' && is('hangs')) isDeaf = true
  const handler = handlers[method]
  const result = handler?.(params)
  if (method === 'tools/call' && (isDeaf || (is('slow tool') && params.name === 'look'))) return
  if (result !== undefined) return send({ id, result })
  if (is('any method')) return send({ id, result: {} })
  if (is('silent') && !(META in (params._meta ?? {}))) return
  if (is('exits')) process.exit(3)
  refuse(id, is('wrong code') ? -32000 : -32601, 'Method not found')
}

function line(text) {
  let message
  try {
    message = JSON.parse(text)
  } catch {
    if (is('fatal input')) process.exit(1)
    return
  }
  const [, exact] = /"id":(\d{16,})/.exec(text) ?? []
  if (!Number.isSafeInteger(Number(exact ?? 0)) && !is('inexact id')) {
    digits.set('exact', exact)
    message.id = 'exact'
  }
  if (isDeaf) return
  if (message?.id !== undefined && message.method !== undefined) request(message)
  if (message?.method === 'notifications/cancelled' && is('slow tool'))
    process.stderr.write(`cancelled ${message.params.requestId}\n`)
  if (message?.method === 'notifications/cancelled' && is('inconsistent')) refuses = true
}

if (is('does not start')) {
  process.stderr.write('no configuration\n')
  process.exit(2)
}
if (is('stray')) console.log('Listening…')
if (is('ignores SIGTERM')) process.on('SIGTERM', () => {})
// A child that would be left behind.
if (is('stays')) setInterval(() => {}, 1000)
if (is('loses')) process.stdin.on('end', () => process.exit())
let lists = 0
const lines = createInterface({ input: process.stdin })
lines.on('line', (text) => {
  // It works on all but the first until its input ends.
  if (is('loses') && text.includes('tools/list') && ++lists > 1) return
  line(text)
})
