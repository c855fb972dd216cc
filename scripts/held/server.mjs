// A server over HTTP or stdio whose memory is measured. Its only argument is { http } or { stdio }, the options of
// `listen` or `serveStdio`.
import { createServer, resource, tool } from '../../dist/index.js'
import { heldBytes } from './measure.mjs'

const server = createServer({
  name: 'held',
  version: '1.0.0',
  tools: [
    tool({
      name: 'wait',
      input: { type: 'object' },
      run: async (_, { signal }) =>
        await new Promise((resolve) => signal.addEventListener('abort', resolve)),
    }),
  ],
  resources: [resource({ uri: 'note://{+name}', read: () => 'text' })],
})
const { http, stdio } = JSON.parse(process.argv[2])
let url
if (http === undefined) {
  const { serveStdio } = await import('../../dist/stdio.js')
  void serveStdio(server, { logLevel: 'error', ...stdio })
} else {
  const { listen } = await import('../../dist/http.js')
  ;({ url } = await listen(server, { port: 0, logLevel: 'error', requestTimeout: 0, ...http }))
}
process.on('message', async () => process.send({ held: await heldBytes() }))
process.send({ url })
