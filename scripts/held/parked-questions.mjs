// What calls hold that wait for an answer of a client that has gone away, and what is charged for it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(import.meta.url)
const POST = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
}
/** The budget of requests in progress that is filled to see what each is charged. */
const BUDGET = 1024 * 1024
/** Calls of one session; more are refused. */
const PER_SESSION = 8000
/** Requests that are sent at the same time. */
const AT_ONCE = 50

/** In a process of its own: a server that asks, with as much memory for requests in progress as it is told. */
async function serve() {
  const { createServer, form, tool } = await import('../../dist/index.js')
  const { MemoryEventStore, listen } = await import('../../dist/http.js')
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } } }
  const ask = tool({
    name: 'ask',
    run: async (_, call) => {
      await call.ask({ sure: form({ message: 'Remove everything?', schema }) })
      return 'done'
    },
  })
  const server = createServer({ name: 'asking', version: '1.0.0', tools: [ask] })
  const eventStore = new MemoryEventStore()
  const pendingBytes = Number(process.argv[3])
  const limits = { pendingBytes, pendingBytesPerClient: pendingBytes }
  const { url } = await listen(server, { port: 0, logLevel: 'error', eventStore, limits })
  process.on('message', async () => {
    // What closed connections hold is freed in several turns.
    for (let i = 0; i < 5; i++) {
      globalThis.gc()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const { heapUsed, external } = process.memoryUsage()
    process.send({ held: heapUsed + external, stored: eventStore.size })
  })
  process.send({ url })
}

/** Starts the server, and ends it after `use`. */
async function withServer(pendingBytes, use) {
  const child = fork(script, ['--serve', String(pendingBytes)], { execArgv: ['--expose-gc'] })
  const next = async () => (await once(child, 'message'))[0]
  try {
    const { url } = await next()
    const measure = () => (child.send('measure'), next())
    return await use(url, measure)
  } finally {
    child.kill('SIGKILL')
  }
}

/** Sends a message; resolves with the response and, of a stream, its first event. Then the client goes away. */
function send(url, message, session) {
  const headers = session === undefined ? POST : { ...POST, 'Mcp-Session-Id': session }
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      const done = (text) => {
        resolve({ status: response.statusCode, headers: response.headers, text })
        sent.destroy()
      }
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
        if (/^data: \{/m.test(text)) done(text)
      })
      response.on('end', () => done(text))
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ jsonrpc: '2.0', ...message }))
  })
}

async function openSession(url) {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'client', version: '1.0.0' },
  }
  const { headers } = await send(url, { id: 0, method: 'initialize', params })
  const session = headers['mcp-session-id']
  await send(url, { method: 'notifications/initialized' }, session)
  return session
}

/** Parks calls, each of which waits for its question; returns how many there are. */
async function park(url, count) {
  let session
  let parked = 0
  while (parked < count) {
    if (parked % PER_SESSION === 0) session = await openSession(url)
    const batch = Math.min(AT_ONCE, count - parked)
    const params = { name: 'ask', arguments: {} }
    const asked = await Promise.all(
      Array.from({ length: batch }, (_, i) =>
        send(url, { id: parked + i + 1, method: 'tools/call', params }, session),
      ),
    )
    const waiting = asked.filter(({ text }) => text.includes('"elicitation/create"')).length
    parked += waiting
    if (waiting < batch) break
  }
  return parked
}

export async function parkedQuestions(wanted) {
  const fitting = await withServer(BUDGET, (url) => park(url, Infinity))
  return withServer(1024 * BUDGET, async (url, measure) => {
    // What is loaded by the first question does not count.
    await park(url, 2)
    const before = await measure()
    const count = await park(url, wanted)
    const after = await measure()
    const charged = Math.round((count * BUDGET) / fitting) + after.stored - before.stored
    return { count, charged, held: after.held - before.held }
  })
}

export const rows = { 'parked question': () => parkedQuestions(8000) }

if (process.argv[2] === '--serve') await serve()
