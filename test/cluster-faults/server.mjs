// A process that shares sessions, events, changes and tasks:   node server.mjs REDIS PREFIX LEASE LEDGER SKEW
//
// A message of its parent, {"kill": STORE.METHOD, "at": N, "phase": PHASE}, kills it (SIGKILL) in the Nth call of a method
// of a store: before the command is sent, when it is sent, or after its reply.
import { createClient } from 'redis'
import { listen } from '../../dist/http.js'
import { createServer, resource, tool } from '../../dist/index.js'
import { redis } from '../../dist/redis.js'
import { tasks } from '../../dist/tasks.js'
import { faultTools } from '../faults/tools.mjs'

const [url, prefix, lease, ledger, skew] = process.argv.slice(2)
if (Number(skew) !== 0) setClock(Number(skew))

/** Sets the clock of this process wrong, by milliseconds. */
function setClock(difference) {
  const Right = Date
  globalThis.Date = class extends Right {
    constructor(...given) {
      super(...(given.length === 0 ? [Right.now() + difference] : given))
    }

    static now() {
      return Right.now() + difference
    }
  }
}

let plan = {}
let calls = 0
process.on('message', (message) => {
  plan = message
  calls = 0
})
// Without its parent it must not stay.
process.once('disconnect', () => process.exit())
const die = () => process.kill(process.pid, 'SIGKILL')

function run(what, action) {
  if (plan.kill !== what || ++calls !== plan.at) return action()
  if (plan.phase === 'before') die()
  if (plan.phase === 'sent') setImmediate(die)
  return Promise.resolve(action()).finally(die)
}

/** The same store, in whose methods the process can be killed. */
function fatal(name, store) {
  return new Proxy(store, {
    get(target, property) {
      const value = Reflect.get(target, property)
      if (property === 'ownership') return fatal('ownership', value)
      if (typeof value !== 'function') return value
      return (...given) => run(`${name}.${String(property)}`, () => value.apply(target, given))
    },
  })
}

const stores = redis(createClient({ url }), {
  prefix,
  address: '127.0.0.1',
  key: 'a key that all processes of a test share',
  lease: Number(lease),
  timeout: Math.max(250, Number(lease) / 4),
})
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const server = createServer({
  name: 'cluster',
  version: '1',
  tools: [
    ...faultTools(ledger),
    tool({ name: 'where', run: () => String(process.pid) }),
    tool({
      name: 'count',
      async run(_, call) {
        for (let count = 1; count <= 10; count++) {
          call.progress(count)
          await pause(15)
        }
        return 'counted'
      },
    }),
    tool({
      name: 'change',
      input: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'] },
      async run({ uri }) {
        server.updated(uri)
        // Acknowledged only when the others will learn of it.
        await stores.changes.publish({ uri })
        return 'changed'
      },
    }),
  ],
  resources: [resource({ uri: 'note:{name}', name: 'note', read: () => 'text' })],
  extensions: [tasks({ store: fatal('tasks', stores.tasks) })],
})
const listening = await listen(server, {
  port: 0,
  keepAlive: 1000,
  stores: {
    ...stores,
    sessions: fatal('sessions', stores.sessions),
    events: fatal('events', stores.events),
  },
})
process.once('SIGTERM', async () => {
  process.stderr.write('SIGTERM has arrived\n')
  await listening.close()
  process.stderr.write('close() has resolved\n')
  process.removeAllListeners('disconnect')
  process.disconnect()
})
process.stdout.write(`${listening.url}\n`)
