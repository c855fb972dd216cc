// A server without a library, with three faults that "ccmcp check" finds.
import { createInterface } from 'node:readline'

const results = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'weather', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  // The content must be an array of blocks.
  'tools/call': () => ({ content: 'Sunny' }),
}

const tools = [
  { name: 'today', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  // JSON Schema has no such type.
  { name: 'forecast', inputSchema: { type: 'object', properties: { at: { type: 'date' } } } },
]

// No message: this belongs on stderr.
console.log('Weather is ready')

const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }))

for await (const line of createInterface({ input: process.stdin })) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    send({ id: null, error: { code: -32700, message: 'Parse error' } })
    continue
  }
  const { id, method, params } = message
  if (id === undefined) continue
  const isUnknown = method === 'tools/call' && !tools.some(({ name }) => name === params.name)
  if (isUnknown) send({ id, error: { code: -32602, message: 'Unknown tool' } })
  else if (method in results) send({ id, result: results[method]() })
  else send({ id, error: { code: -32601, message: 'Method not found' } })
}
