// A server over HTTP that logs much, for those who do not read its log.
import { listen } from '../../../dist/http.js'
import { createServer, tool } from '../../../dist/index.js'

const server = createServer({
  name: 'loud',
  version: '1.0.0',
  tools: [
    tool({
      name: 'shout',
      run(_, call) {
        for (let n = 0; n < 2000; n++) call.log.error('x'.repeat(8000))
        return `${process.stderr.writableLength} bytes wait`
      },
    }),
  ],
})

const listening = await listen(server, { port: 0, logLevel: 'debug' })
process.stderr.write(`serving ${listening.url}\n`)
process.on('SIGTERM', async () => {
  await listening.close()
  process.exit(0)
})
