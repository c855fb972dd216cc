// A process that shares its sessions with others.   node server.mjs REDIS PREFIX LEASE NAME
import { createClient } from 'redis'
import { listen } from '../../dist/http.js'
import { createServer, resource, tool } from '../../dist/index.js'
import { redis } from '../../dist/redis.js'

const [url, prefix, lease, name] = process.argv.slice(2)
const never = () => new Promise(() => {})
const server = createServer({
  name: 'shared',
  version: '1',
  tools: [
    tool({ name: 'where', run: () => name }),
    tool({ name: 'quiet', run: never }),
    tool({
      name: 'wait',
      run(_, call) {
        call.progress(1)
        return never()
      },
    }),
    tool({
      name: 'tick',
      async run(_, call) {
        for (let count = 1; !call.signal.aborted; count++) {
          call.progress(count)
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      },
    }),
  ],
  resources: [resource({ uri: 'note:it', name: 'it', read: () => 'text' })],
})
const stores = redis(createClient({ url }), {
  prefix,
  address: '127.0.0.1',
  key: 'a key that all processes of a test share',
  lease: Number(lease),
  timeout: Math.max(250, Number(lease) / 4),
})
const listening = await listen(server, { port: 0, stores })
process.once('SIGTERM', () => void listening.close())
process.stdout.write(`${listening.url}\n`)
