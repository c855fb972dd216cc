// One of several processes that serve the same sessions and tell each other of changes.   PORT=3001 REDIS_URL=redis://127.0.0.1:6379 node server.mjs
import { createClient } from 'redis'
import { createServer, resource, tool } from 'ccmcp'
import { listen } from 'ccmcp/http'
import { redis } from 'ccmcp/redis'

const { PORT, REDIS_URL, KEY = 'an example; use a secret of your own' } = process.env
const where = tool({ name: 'where', run: () => `process ${process.pid}` })
const write = tool({
  name: 'write',
  run() {
    // Clients of all processes are notified. The contents should be where all processes find them.
    server.updated('note://shared')
    return `written by process ${process.pid}`
  },
})
const note = resource({ uri: 'note://shared', read: () => 'text' })
const server = createServer({
  name: 'cluster',
  version: '1.0.0',
  tools: [where, write],
  resources: [note],
})
const client = createClient({ url: REDIS_URL })
const stores = redis(client, { prefix: 'example', address: '127.0.0.1', key: KEY })
const listening = await listen(server, { port: Number(PORT ?? 3000), stores })
console.log(listening.url)
process.once('SIGTERM', () => void listening.close())
