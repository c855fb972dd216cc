// The baseline of the HTTP tap: forwards requests and responses, without recording or error handling.
//   node http-pass-through.mjs PORT
import { Agent, createServer, request as send } from 'node:http'

const port = Number(process.argv[2])
const agent = new Agent({ keepAlive: true })
const server = createServer((request, response) => {
  const { method, url: path, rawHeaders: headers } = request
  const upstream = send({ host: '127.0.0.1', port, method, path, headers, agent })
  upstream.on('response', (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders)
    answer.pipe(response)
  })
  request.pipe(upstream)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
