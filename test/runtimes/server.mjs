// A small server for the smoke test, over stdio.
import { createServer, tool } from 'ccmcp'
import { serveStdio } from 'ccmcp/stdio'

export const server = createServer({
  name: 'smoke',
  version: '1.0.0',
  tools: [
    tool({
      name: 'add',
      input: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
      run: ({ a, b }) => String(a + b),
    }),
    tool({
      name: 'count',
      run: async (_input, call) => {
        for (let done = 1; done <= 3; done++) {
          call.progress(done, 3)
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
        return 'done'
      },
    }),
  ],
})

if (process.argv[2] === 'stdio') await serveStdio(server)
