// A server whose tasks are in Redis:   node tasks-server.mjs REDIS PREFIX LEASE LEDGER PLAN [TIMEOUT]
//
//   {"kill": METHOD, "at": N, "phase": PHASE}   kills the process (SIGKILL) in the Nth call of a method of the store:
//                                               before the command is sent, when it is sent, or after its reply
//   {"exit": false}                             ends only when nothing is left to do
//   {}                                          does nothing
import { appendFileSync } from 'node:fs'
import { createClient } from 'redis'
import { createServer, tool } from '../../dist/index.js'
import { redis } from '../../dist/redis.js'
import { serveStdio } from '../../dist/stdio.js'
import { tasks } from '../../dist/tasks.js'
import { faultTools } from '../faults/tools.mjs'

const [url, prefix, lease, ledger, plan, timeout] = process.argv.slice(2)
const { kill, at = 1, phase, exit = true } = JSON.parse(plan)
const { tasks: store } = redis(createClient({ url }), {
  prefix,
  lease: Number(lease),
  timeout: Number(timeout ?? Math.max(250, Number(lease) / 4)),
  // Those that have ended stay for an hour.
  tasks: { maxTasks: 1e6, maxTasksPerOwner: 1e6, maxBytes: 1e10, maxBytesPerOwner: 1e10 },
})

const die = () => process.kill(process.pid, 'SIGKILL')
let calls = 0
/** A method that is killed as the plan says. */
function fatal(method) {
  return async (...given) => {
    const isFatal = method === kill && ++calls === at
    if (isFatal && phase === 'before') die()
    if (isFatal && phase === 'sent') setImmediate(die)
    const returned = await store[method](...given)
    if (isFatal) die()
    return returned
  }
}

/** Records steps without end, and notes when it is told to stop. */
const tick = tool({
  name: 'tick',
  task: { mode: 'must', retries: 1000, retryDelay: 0 },
  async run(_, call) {
    const note = (...words) => appendFileSync(ledger, `${words.join(' ')}\n`)
    call.signal.addEventListener('abort', () => note('aborted', process.pid, call.attempt))
    note('began', process.pid, call.attempt)
    for (let count = 1; ; count++) {
      await call.step(`${call.attempt}.${count}`, () => count)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  },
})

await serveStdio(
  createServer({
    name: 'faults',
    version: '1',
    tools: [...faultTools(ledger), tick],
    extensions: [
      tasks({
        store: {
          shared: true,
          open: (report) => store.open(report),
          close: () => store.close(),
          create: fatal('create'),
          get: fatal('get'),
          change: fatal('change'),
          claim: fatal('claim'),
          release: fatal('release'),
          subscribe: (changed, missed) => store.subscribe(changed, missed),
        },
      }),
    ],
  }),
  { exit },
)
