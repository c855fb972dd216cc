// As ccmcp.mjs, with tasks enabled, which the tool does not use.
import { createServer, serveStdio, tool } from '../../dist/core.js'
import { tasks } from '../../dist/tasks.js'

const input = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
const echo = tool({
  name: 'echo',
  description: 'Return the message.',
  input,
  run: ({ message }) => message,
})
const options = { name: 'bench', version: '1.0.0', tools: [echo], extensions: [tasks()] }
await serveStdio(createServer(options), { maxMessage: 2 ** 28 })
