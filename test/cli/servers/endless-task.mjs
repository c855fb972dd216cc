// A server on stdio whose only tool is a task that never ends, whatever the client asks for. With the argument `silent` it
// cancels the task, and does not respond to the request; with `refuse` that is an error.
import { createInterface } from 'node:readline'

const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const task = {
  taskId: 'task 1',
  status: 'working',
  statusMessage: 'digging',
  createdAt: '2026-07-28T10:00:00Z',
  lastUpdatedAt: '2026-07-28T10:00:00Z',
  ttlMs: null,
  pollIntervalMs: 20,
}
const RESULTS = {
  'server/discover': {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'endless', version: '1' } },
  },
  'tools/list': { tools: [], ttlMs: 0, cacheScope: 'private' },
  'tools/call': { ...task, resultType: 'task' },
  'tasks/get': task,
  'tasks/cancel': {},
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'tasks/cancel' && process.argv[2] === 'silent')
    return void (task.status = 'cancelled')
  if (method === 'tasks/cancel' && process.argv[2] === 'refuse')
    return send({ id, error: { code: -32603, message: 'not now' } })
  const result = RESULTS[method]
  if (result === undefined) send({ id, error: { code: -32601, message: 'Method not found' } })
  else send({ id, result: { resultType: 'complete', ...result } })
})
