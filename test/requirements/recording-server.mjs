// A server on stdio that records its input: the tool "input" returns it. Writes noise to stderr. The first argument is
// the file that it writes at the end of its input, the second its revision.
import { writeFileSync } from 'node:fs'

const [, , file, revision] = process.argv
const modern = revision === '2026-07-28'
let input = ''
let rest = ''
process.stderr.write('ERROR: this is only a log line\n')
process.on('SIGTERM', () => {
  writeFileSync(file, 'SIGTERM')
  process.exit(1)
})

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}

function respond({ id, method, params }) {
  const described = modern ? { resultType: 'complete' } : {}
  const serverInfo = { name: 'recording', version: '1' }
  if (method === 'initialize' && !modern)
    return send({ id, result: { protocolVersion: revision, capabilities: {}, serverInfo } })
  if (method === 'server/discover' && modern) {
    const result = { ...described, supportedVersions: [revision], capabilities: {} }
    return send({ id, result: { ...result, ttlMs: 0, cacheScope: 'public' } })
  }
  if (method !== 'tools/call')
    return send({ id, error: { code: -32_601, message: 'Method not found' } })
  const { name } = params
  if (name === 'wait') return
  process.stderr.write('ERROR: a call\n')
  const text = name === 'pid' ? String(process.pid) : input
  send({ id, result: { ...described, content: [{ type: 'text', text }] } })
}

process.stdin.setEncoding('utf8').on('data', (chunk) => {
  input += chunk
  const lines = (rest + chunk).split('\n')
  rest = lines.pop()
  for (const line of lines) {
    const message = JSON.parse(line)
    if (message.id !== undefined && message.method !== undefined) respond(message)
  }
})
process.stdin.on('end', () => writeFileSync(file, 'end of input'))
