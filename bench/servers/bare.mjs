// The baseline: a minimal echo server without validation, errors or limits.
// Linear time also for large messages.
const answer = ({ id, method, params }) => {
  if (id === undefined) return ''
  let result = {}
  if (method === 'initialize')
    result = {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'bare', version: '1' },
    }
  if (method === 'tools/call')
    result = { content: [{ type: 'text', text: params.arguments.message }], isError: false }
  return JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n'
}
let parts = []
process.stdin.on('data', (chunk) => {
  let out = ''
  let start = 0
  for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
    parts.push(chunk.subarray(start, end))
    out += answer(JSON.parse((parts.length === 1 ? parts[0] : Buffer.concat(parts)).toString()))
    parts = []
    start = end + 1
  }
  if (start < chunk.length) parts.push(chunk.subarray(start))
  if (out !== '') process.stdout.write(out)
})
