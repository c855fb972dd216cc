// A server whose tasks other processes run: REDIS is the URL, PREFIX that of the keys.
import { createClient } from 'redis'
import { createServer, tool } from '../../../dist/index.js'
import { redis } from '../../../dist/redis.js'
import { tasks } from '../../../dist/tasks.js'

const { REDIS, PREFIX, NAME } = process.env
const where = tool({ name: 'where', task: 'must', run: () => NAME })
const wait = tool({
  name: 'wait',
  task: { mode: 'must', retries: 3, retryDelay: 0 },
  run: (_, call) =>
    new Promise((resolve, reject) => {
      process.once('SIGUSR2', () => resolve(`${NAME} at last`))
      call.signal.addEventListener('abort', () => reject(call.signal.reason))
      process.stderr.write(`${NAME} runs ${call.key} attempt ${call.attempt}\n`)
    }),
})
const { tasks: store } = redis(createClient({ url: REDIS }), {
  prefix: PREFIX,
  lease: 120_000,
  timeout: 60_000,
})
export const server = createServer({
  name: 'shared',
  version: '1',
  tools: [where, wait],
  extensions: [tasks({ store, workers: false })],
})
