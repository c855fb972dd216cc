// A modern server that is slow to start: it answers nothing before its second message has come, and refuses initialize.
import { createInterface } from 'node:readline'

const unread = []
const discovered = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: 'private',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'late', version: '1' } },
}
const results = {
  'server/discover': discovered,
  'tools/call': { resultType: 'complete', content: [{ type: 'text', text: 'hello' }] },
}

function answer({ id, method }) {
  if (id === undefined) return
  const result = results[method]
  const outcome =
    result === undefined
      ? { error: { code: -32601, message: `Method not found: ${method}` } }
      : { result }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
}

let started = false
createInterface({ input: process.stdin }).on('line', (line) => {
  unread.push(JSON.parse(line))
  started ||= unread.length === 2
  if (started) for (const message of unread.splice(0)) answer(message)
})
