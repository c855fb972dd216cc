// The baseline of the HTTP tap: forwards requests and responses with headers as they are, and ends one side with the other.
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
  upstream.on('error', () => response.destroy())
  response.on('close', () => upstream.destroy())
  request.pipe(upstream)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
