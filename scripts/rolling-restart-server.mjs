// One of the processes of rolling-restart.mjs.   PORT=… REDIS_URL=… node scripts/rolling-restart-server.mjs
import { createClient } from 'redis'
import { listen } from '../dist/http.js'
import { createServer, form, resource, tool } from '../dist/index.js'
import { redis } from '../dist/redis.js'

const { PORT, REDIS_URL } = process.env
const contents = createClient({ url: REDIS_URL })
contents.on('error', (error) => console.error(error.message))
await contents.connect()

const input = {
  type: 'object',
  properties: { number: { type: 'number' }, waits: { type: 'boolean' } },
  required: ['number', 'waits'],
}
const echo = tool({ name: 'echo', input, run: ({ number }) => String(number) })
/** Asks its client for a number. If a call of this client waits for the answer, the question says in which process. */
const question = tool({
  name: 'question',
  input,
  async run({ number, waits }, call) {
    const schema = {
      type: 'object',
      properties: { number: { type: 'number' } },
      required: ['number'],
    }
    const message = JSON.stringify({ number, ...(waits && { pid: process.pid }) })
    const { answer } = await call.ask({ answer: form({ message, schema }) })
    return String(answer.number)
  },
})
/** Changes what all processes read, and announces it. The result is its new number. */
const change = tool({
  name: 'change',
  input: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'] },
  async run({ uri }) {
    const number = await contents.incr(uri)
    if (uri === 'note://tools') server.tools.changed()
    else server.updated(uri)
    return String(number)
  },
})
const note = resource({
  uri: 'note://{name}',
  name: 'note',
  read: async ({ name }) => (await contents.get(`note://${name}`)) ?? '0',
})
const server = createServer({
  name: 'rolling',
  version: '1.0.0',
  tools: [echo, question, change],
  resources: [note],
  // A question of one process may be answered in another.
  state: { keys: ['a key that all processes of this script share'] },
})
const stores = redis(createClient({ url: REDIS_URL }), {
  prefix: 'rolling',
  address: '127.0.0.1',
  key: 'a key that all processes of this script share',
})
const listening = await listen(server, { port: Number(PORT), stores })
console.log(listening.url)
process.once('SIGTERM', async () => {
  // Like the grace period of an orchestrator.
  await listening.close(30_000)
  await contents.close()
})
