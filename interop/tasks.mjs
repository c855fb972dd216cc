// Our server with tasks, on stdio or, with the argument "http", at a URL that it prints.
import { RpcError, createServer, form, tool } from '../dist/index.js'
import { listen } from '../dist/http.js'
import { serveStdio } from '../dist/stdio.js'
import { tasks } from '../dist/tasks.js'

const task = { mode: 'must', poll: 50, ttl: 60_000 }
const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
const who = (message) => form({ message, schema })

const server = createServer({
  name: 'tasks',
  version: '1.0.0',
  extensions: [tasks()],
  tools: [
    tool({ name: 'plain', task: 'may', run: () => 'plain' }),
    tool({
      name: 'slow',
      task,
      async run(_, call) {
        call.progress(1, 2, 'half')
        await new Promise((resolve) => setTimeout(resolve, 200))
        return 'done'
      },
    }),
    tool({
      name: 'ask',
      task,
      async run(_, call) {
        const { first, last } = await call.ask({ first: who('First?'), last: who('Last?') })
        const { sure } = await call.ask({ sure: who('Sure?') })
        return `${first.name} ${last.name} ${sure.name}`
      },
    }),
    tool({
      name: 'wait',
      task,
      run: (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        ),
    }),
    tool({
      name: 'fail',
      task,
      run() {
        throw new RpcError(-32042, 'Out of order', { part: 7 })
      },
    }),
    tool({
      name: 'wrong',
      task,
      run: () => ({ content: [{ type: 'text', text: 'no' }], isError: true }),
    }),
  ],
})

if (process.argv.includes('http')) {
  const { url } = await listen(server, { port: 0 })
  console.log(url)
} else await serveStdio(server)
