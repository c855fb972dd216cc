// Our server with every feature, for other clients. Logs its events to stderr.
import { setTimeout as sleep } from 'node:timers/promises'
import { tool } from '../dist/index.js'
import { serveStdio } from '../dist/stdio.js'
import { everythingServer } from '../test/interop/everything.mjs'

const server = everythingServer()

server.tools.add(
  tool({
    name: 'wait',
    description: 'Wait until it is cancelled.',
    run: (_, { signal }) =>
      new Promise((resolve) => {
        console.error('waiting')
        signal.addEventListener('abort', () => {
          console.error('cancelled')
          resolve()
        })
      }),
  }),
  tool({
    name: 'work',
    description: 'Report progress.',
    async run(_, call) {
      for (let step = 1; step <= 3; step++) {
        call.progress(step, 3, `step ${step}`)
        // The official SDK drops progress that it reads together with the result:
        // https://github.com/modelcontextprotocol/typescript-sdk/issues/2580
        await sleep(50)
      }
      return 'done'
    },
  }),
)

await serveStdio(server)
