// Codex through its app server: connects to the configured server and calls a tool.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const codex = spawn(process.argv[2], ['app-server'], { stdio: ['pipe', 'pipe', 'inherit'] })
const waiting = new Map()
createInterface({ input: codex.stdout }).on('line', (line) => {
  const { id, result, error } = JSON.parse(line)
  waiting.get(id)?.(error ?? result)
})
const send = (message) => codex.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
let last = 0
const request = (method, params) =>
  new Promise((resolve) => {
    waiting.set(++last, resolve)
    send({ id: last, method, params })
  })

await request('initialize', {
  clientInfo: { name: 'interop', title: 'interop', version: '1.0.0' },
  capabilities: null,
})
send({ method: 'initialized' })
const status = await request('mcpServerStatus/list', {})
const { thread } = await request('thread/start', { cwd: process.cwd(), ephemeral: true })
const params = {
  threadId: thread.id,
  server: 'ccmcp',
  tool: 'echo',
  arguments: { message: 'Grüße 👋' },
}
const { content } = await request('mcpServer/tool/call', params)
const names = Object.keys(status.data.find(({ name }) => name === 'ccmcp').tools)
process.stdout.write(JSON.stringify({ names, text: content[0].text }))
codex.stdin.end()
