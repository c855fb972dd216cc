// A process that shares its sessions and changes with others.   node changes-server.mjs REDIS PREFIX LEASE
import { createClient } from 'redis'
import { listen } from '../../dist/http.js'
import { createServer, prompt, resource, tool } from '../../dist/index.js'
import { redis } from '../../dist/redis.js'

const [url, prefix, lease] = process.argv.slice(2)
const server = createServer({
  name: 'changing',
  version: '1',
  tools: [
    tool({
      name: 'change',
      input: {
        type: 'object',
        properties: {
          list: { type: 'string' },
          uris: { type: 'array', items: { type: 'string' } },
        },
      },
      run({ list, uris = [] }) {
        if (list !== undefined) server[list].changed()
        for (const uri of uris) server.updated(uri)
        return 'changed'
      },
    }),
  ],
  prompts: [prompt({ name: 'hello', build: () => 'Hello' })],
  resources: [resource({ uri: 'note:{name}', name: 'note', read: () => 'text' })],
})
const stores = redis(createClient({ url }), {
  prefix,
  address: '127.0.0.1',
  key: 'a key that all processes of a test share',
  lease: Number(lease),
  timeout: Math.max(250, Number(lease) / 4),
})
const listening = await listen(server, { port: 0, stores, legacySse: true })
process.once('SIGTERM', () => void listening.close())
process.stdout.write(`${listening.url}\n`)
