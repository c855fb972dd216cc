// The server of bench/redis.mjs, which `ccmcp worker` can run, too. Its options are JSON in the variable BENCH:
//   url      of Redis; without it, nothing is shared
//   prefix   of the keys
//   tasks    where tasks are: redis, memory, journal; without it, there are none
//   journal  path of the journal
//   workers  whether this process runs tasks
//   ttl      milliseconds until a task expires
//   idle     milliseconds until a session expires
import { createClient } from 'redis'
import { createServer, tool } from '../../dist/index.js'
import { JournalTaskStore } from '../../dist/journal.js'
import { redis } from '../../dist/redis.js'
import { MemoryTaskStore, tasks } from '../../dist/tasks.js'

export const options = JSON.parse(process.env.BENCH)
const { url, prefix, workers = true, ttl = 3_600_000 } = options
const ROOM = { maxTasks: 1e6, maxBytes: 2 ** 30, maxTasksPerOwner: 1e6, maxBytesPerOwner: 2 ** 30 }
/** Progress notifications of one call. */
const STEPS = 10

const input = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
const echo = tool({ name: 'echo', input, run: ({ message }) => message })
const progress = tool({
  name: 'progress',
  run(_, call) {
    for (let step = 1; step <= STEPS; step++) call.progress(step)
    return 'hello'
  },
})
const task = { mode: 'must', ttl }
const quick = tool({ name: 'quick', task, run: () => 'hello' })
const slow = tool({
  name: 'slow',
  task,
  run: () => new Promise((resolve) => setTimeout(resolve, 20, 'hello')),
})

const shared = {
  prefix,
  address: '127.0.0.1',
  key: 'a key that all processes share, for a benchmark',
}
export const stores =
  url === undefined ? undefined : redis(createClient({ url }), { ...shared, tasks: ROOM })

function taskStore() {
  if (options.tasks === 'redis') return stores.tasks
  if (options.tasks === 'journal') return JournalTaskStore.open(options.journal, ROOM)
  return new MemoryTaskStore(ROOM)
}

const hasTasks = options.tasks !== undefined
export const server = createServer({
  name: 'bench',
  version: '1.0.0',
  tools: hasTasks ? [echo, progress, quick, slow] : [echo, progress],
  extensions: hasTasks ? [tasks({ store: await taskStore(), workers })] : [],
})
