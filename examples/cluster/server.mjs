// One of several processes that serve the same sessions.   PORT=3001 REDIS_URL=redis://127.0.0.1:6379 node server.mjs
import { createClient } from 'redis'
import { createServer, tool } from 'ccmcp'
import { listen } from 'ccmcp/http'
import { redis } from 'ccmcp/redis'

const { PORT, REDIS_URL, KEY = 'an example; use a secret of your own' } = process.env
const where = tool({ name: 'where', run: () => `process ${process.pid}` })
const server = createServer({ name: 'cluster', version: '1.0.0', tools: [where] })
const client = createClient({ url: REDIS_URL })
const stores = redis(client, { prefix: 'example', address: '127.0.0.1', key: KEY })
const listening = await listen(server, { port: Number(PORT ?? 3000), stores })
console.log(listening.url)
process.once('SIGTERM', () => void listening.close())
