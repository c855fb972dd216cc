// Soak test: an HTTP server under mixed load from clients that behave, abort
// requests, and disconnect. Afterwards memory, open handles and sessions must be
// back to where they were.
//
//   node scripts/soak.mjs [--seconds 120] [--clients 48]
import { fork } from 'node:child_process'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const POST = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const IDLE = 1000

async function serve() {
  const { createServer, tool } = await import('../dist/index.js')
  const { MemoryEventStore, listen } = await import('../dist/http.js')
  const server = createServer({
    name: 'soak',
    version: '1.0.0',
    tools: [
      tool({
        name: 'echo',
        input: { type: 'object', properties: { text: { type: 'string' } } },
        run: ({ text }) => text ?? '',
      }),
      tool({ name: 'big', run: () => 'x'.repeat(300_000) }),
      tool({
        name: 'slow',
        async run(_, call) {
          for (let i = 1; i <= 5 && !call.signal.aborted; i++) {
            call.progress(i, 5)
            await sleep(10)
          }
          return 'done'
        },
      }),
    ],
  })
  const eventStore = new MemoryEventStore()
  const settings = {
    port: 0,
    eventStore,
    keepAlive: 500,
    headersTimeout: 1000,
    requestTimeout: 2000,
    limits: { sessionIdleTimeout: IDLE },
  }
  const listening = await listen(server, settings)
  const changes = setInterval(() => server.tools.update('echo', {}), 100)
  process.on('message', async (message) => {
    if (message === 'end') {
      clearInterval(changes)
      await listening.close(1000)
      process.disconnect()
      return
    }
    for (let i = 0; i < 5; i++) {
      globalThis.gc()
      await sleep(20)
    }
    const { rss, heapUsed } = process.memoryUsage()
    const handles = process
      .getActiveResourcesInfo()
      .filter((name) => name !== 'Immediate' && name !== 'Timeout').length
    process.send({
      heap: heapUsed / 1e6,
      rss: rss / 1e6,
      handles,
      sessions: listening.sessions,
      open: listening.openResponses,
      events: eventStore.size,
    })
  })
  process.send(listening.url)
}

/** Sends a request; `abortAfter` aborts it after that many milliseconds. */
function send(url, { method = 'POST', headers = {}, body, abortAfter, read = true }) {
  return new Promise((resolve) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      let text = ''
      if (read)
        response
          .on('data', (chunk) => (text += chunk))
          .on('end', () =>
            resolve({ status: response.statusCode, headers: response.headers, text }),
          )
      response.on('close', () => resolve({ status: 0, headers: {}, text }))
    })
    request.on('error', () => resolve({ status: 0, headers: {}, text: '' }))
    request.end(body)
    if (abortAfter !== undefined) setTimeout(() => request.destroy(), abortAfter)
  })
}

const statelessRequest = (method, params, more = {}) => ({
  headers: {
    ...POST,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(params.name && { 'mcp-name': params.name }),
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { ...params, _meta: { ...META, progressToken: 1 } },
  }),
  ...more,
})

async function session(url, end) {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'soak', version: '1' },
  }
  const opened = await send(url, {
    headers: POST,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  })
  const headers = { ...POST, 'mcp-session-id': opened.headers['mcp-session-id'] ?? 'none' }
  await send(url, { headers, body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' })
  const listening = send(url, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream' },
    abortAfter: 50 + Math.random() * 100,
  })
  const call = (name, abortAfter) =>
    send(url, {
      headers,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 2,
        method: 'tools/call',
        params: { name, arguments: {}, _meta: { progressToken: 1 } },
      }),
      ...(abortAfter && { abortAfter }),
    })
  await call('echo')
  await call('slow', Math.random() < 0.5 ? 20 : undefined)
  await send(url, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': '0p.0' },
    abortAfter: 100,
  })
  await listening
  if (end) await send(url, { method: 'DELETE', headers })
}

const KINDS = [
  async (url) => {
    for (let i = 0; i < 20; i++) {
      const { text } = await send(
        url,
        statelessRequest('tools/call', { name: 'echo', arguments: { text: `t${i}` } }),
      )
      if (!text.includes(`t${i}`)) throw new Error(`unexpected echo response: ${text}`)
    }
  },
  (url) => send(url, statelessRequest('tools/call', { name: 'slow' })),
  (url) => send(url, statelessRequest('tools/call', { name: 'slow' }, { abortAfter: 15 })),
  (url) =>
    send(url, statelessRequest('tools/call', { name: 'big' }, { read: false, abortAfter: 50 })),
  (url) =>
    send(
      url,
      statelessRequest(
        'subscriptions/listen',
        { notifications: { toolsListChanged: true } },
        { abortAfter: Math.random() * 300 },
      ),
    ),
  (url) => session(url, true),
  (url) => session(url, false),
  (url) => send(url, { headers: POST, body: '{' }),
  (url) =>
    new Promise((resolve) => {
      const socket = connect(new URL(url).port, '127.0.0.1', () =>
        socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{'),
      )
      socket.on('close', resolve).on('error', resolve)
      setTimeout(() => socket.destroy(), Math.random() * 200)
    }),
]

async function load(url, seconds, clients) {
  const end = Date.now() + seconds * 1000
  let count = 0
  await Promise.all(
    [...Array(clients).keys()].map(async () => {
      while (Date.now() < end) {
        await KINDS[Math.floor(Math.random() * KINDS.length)](url)
        count++
      }
    }),
  )
  return count
}

async function main() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '120' },
      clients: { type: 'string', default: '48' },
    },
  })
  const child = fork(fileURLToPath(import.meta.url), [], {
    execArgv: ['--expose-gc'],
    env: { ...process.env, CCMCP_SOAK: 'server' },
  })
  const next = () => new Promise((resolve) => child.once('message', resolve))
  const url = await next()
  const measure = async () => {
    // Wait until the last idle session has expired.
    await sleep(3 * IDLE + 500)
    child.send('measure')
    return next()
  }
  const show = (when, { heap, rss, handles, sessions, open, events }) =>
    console.log(
      `${when}: heap ${heap.toFixed(1)} MB, rss ${rss.toFixed(0)} MB, handles ${handles}, sessions ${sessions}, open ${open}, stored events ${events}`,
    )
  await load(url, Math.min(10, Number(values.seconds) / 4), Number(values.clients)) // warm-up
  const before = await measure()
  show('before', before)
  const count = await load(url, Number(values.seconds), Number(values.clients))
  console.log(`${count} rounds by ${values.clients} clients in ${values.seconds} s`)
  const after = await measure()
  show('after ', after)
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.send('end')
  const code = await exited
  const problems = []
  if (code !== 0) problems.push(`the server exited with code ${code}`)
  if (after.sessions !== 0 || after.open !== 0 || after.events !== 0)
    problems.push('sessions, streams or events are left')
  if (after.handles > before.handles) problems.push('the number of handles has grown')
  if (after.heap > before.heap + 5) problems.push('the heap has grown')
  for (const problem of problems) console.log(`FAILED ${problem}`)
  console.log(problems.length === 0 ? 'soak: passed' : 'soak: failed')
  process.exitCode = problems.length === 0 ? 0 : 1
}

if (process.env.CCMCP_SOAK === 'server') await serve()
else await main()
