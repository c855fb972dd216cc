// A server in a process of its own, with little memory. Says where it listens, and what it holds when it is asked.
import { createServer, resource, tool } from '../../dist/index.js'
import { listen } from '../../dist/http.js'

const server = createServer({
  name: 'small',
  version: '1',
  tools: [tool({ name: 'slow', input: { type: 'object' }, run: () => new Promise(() => {}) })],
  resources: [resource({ uri: 'note://one', read: () => 'one' })],
})
const listening = await listen(server, {
  port: 0,
  logLevel: 'error',
  limits: { pendingBytes: 20_000_000 },
})
process.on('message', () => {
  globalThis.gc()
  process.send({
    heap: process.memoryUsage().heapUsed,
    sessions: listening.sessions,
    open: listening.openResponses,
  })
})
process.send({ url: listening.url })
