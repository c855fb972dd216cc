// Our server for other clients, on the built package. Logs its events to stderr.
import { setTimeout as sleep } from 'node:timers/promises'
import { ToolError, createServer, tool } from '../dist/index.js'
import { listen } from '../dist/http.js'
import { serveStdio } from '../dist/stdio.js'

const number = { type: 'number' }

const tools = [
  tool({
    name: 'echo',
    description: 'Return the message.',
    input: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    run({ message }, { client }) {
      console.error(`called in ${client.revision}`)
      return message
    },
  }),
  tool({
    name: 'sum',
    description: 'Add two numbers.',
    input: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
    output: { type: 'object', properties: { sum: number }, required: ['sum'] },
    run: ({ a, b }) => ({ sum: a + b }),
  }),
  tool({
    name: 'fail',
    description: 'Fail.',
    run() {
      throw new ToolError('As planned.')
    },
  }),
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
]

const server = createServer({ name: 'interop', version: '1.0.0', tools })
if (process.argv[2] === 'http') {
  // Exits at the end of stdin, as on stdio.
  const listening = await listen(server, { port: 0 })
  console.error(`serving ${listening.url}`)
  process.stdin.resume().on('end', () => void listening.close(100))
} else await serveStdio(server)
