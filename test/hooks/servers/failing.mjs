// A server over HTTP all of whose hooks fail in the way that its argument names.
import { listen } from '../../../dist/http.js'
import { createServer, tool } from '../../../dist/index.js'

const fail = {
  throws() {
    throw new Error('boom')
  },
  rejects: () => Promise.reject(new Error('boom')),
  thenable: () => ({
    then() {
      throw new Error('boom')
    },
  }),
}[process.argv[2]]

const server = createServer({
  name: 'failing',
  version: '1.0.0',
  onInitialized: fail,
  tools: [
    tool({ name: 'hidden', visible: fail, run: () => '' }),
    tool({
      name: 'it',
      async run(_, call) {
        call.log.warning('told')
        await new Promise((resolve) => setImmediate(resolve))
        return 'done'
      },
    }),
  ],
})
const listening = await listen(server, {
  port: 0,
  tap: fail,
  log: { write: fail },
  logLevel: 'debug',
  eventStore: { append: fail, read: fail, delete: fail },
  sessionStore: { get: fail, set: fail, delete: fail },
})
process.stdout.write(`${listening.url}\n`)
process.on('SIGTERM', async () => {
  await listening.close()
  process.exit(0)
})
