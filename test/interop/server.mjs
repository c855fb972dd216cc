// A server for foreign clients, on the built package.
import { ToolError, createServer, tool } from '../../dist/index.js'
import { serveStdio } from '../../dist/stdio.js'

const number = { type: 'number' }

const tools = [
  tool({
    name: 'echo',
    description: 'Return the message.',
    input: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    run: ({ message }) => message,
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
          console.error(`cancelled: ${signal.reason.message}`)
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
        await new Promise((resolve) => setImmediate(resolve))
      }
      return 'done'
    },
  }),
]

await serveStdio(createServer({ name: 'interop', version: '1.0.0', title: 'Interop', tools }))
