// A server for interoperability tests, from the built package.
import { ToolError, createServer, tool } from '../../dist/index.js'

const number = { type: 'number' }
let goOn = () => {}

const tools = [
  tool({
    name: 'echo',
    description: 'Return the message.',
    input: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    run({ message }) {
      goOn()
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
    description: 'Report progress; with `waits`, wait for a call of echo after each step.',
    input: { type: 'object', properties: { waits: { type: 'boolean' } } },
    async run({ waits }, call) {
      for (let step = 1; step <= 3; step++) {
        call.progress(step, 3, `step ${step}`)
        // Some clients lose progress notifications that arrive in the same chunk as the response.
        await new Promise((resolve) => {
          if (waits) goOn = resolve
          else setTimeout(resolve, 250)
        })
      }
      return 'done'
    },
  }),
]

export function interopServer() {
  return createServer({
    name: 'interop',
    version: '1.0.0',
    title: 'Interop',
    instructions: 'Use the tools.',
    tools,
  })
}
