// The file behind 'ccmcp' and 'ccmcp/stdio'.
import { createServer, serveStdio, tool } from '../../dist/core.js'

const input = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
const echo = tool({
  name: 'echo',
  description: 'Return the message.',
  input,
  run: ({ message }) => message,
})
await serveStdio(createServer({ name: 'bench', version: '1.0.0', tools: [echo] }), {
  maxMessage: 2 ** 28,
})
