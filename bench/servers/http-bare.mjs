// The HTTP baseline: a JSON echo on node:http without validation, errors or limits.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(
      (chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)).toString(),
    )
    const result = { content: [{ type: 'text', text: params.arguments.message }], isError: false }
    const body = JSON.stringify({ jsonrpc: '2.0', id, result })
    response.writeHead(200, [
      'Content-Type',
      'application/json',
      'Content-Length',
      String(Buffer.byteLength(body)),
    ])
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
