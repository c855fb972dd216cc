import { createServer, tool } from '../../dist/index.js'
import { listen } from '../../dist/http.js'

const input = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
const echo = tool({
  name: 'echo',
  description: 'Return the message.',
  input,
  run: ({ message }) => message,
})
const limits = { sessions: 1_000_000 }
const { port } = await listen(createServer({ name: 'bench', version: '1.0.0', tools: [echo] }), {
  port: 0,
  limits,
})
console.log(port)
