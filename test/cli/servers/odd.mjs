// Initializes, then responds to every request with its argument.
import { createInterface } from 'node:readline'

const result = JSON.parse(process.argv[2])
const opened = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, resources: {}, prompts: {} },
  serverInfo: { name: 'odd', version: '1' },
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'server/discover')
    console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
  else
    console.log(
      JSON.stringify({ jsonrpc: '2.0', id, result: method === 'initialize' ? opened : result }),
    )
})
