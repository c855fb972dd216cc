// A server that starts a daemon, which inherits its pipes and outlives it.
import { spawn } from 'node:child_process'
import { createServer, tool } from '../../../dist/index.js'
import { serveStdio } from '../../../dist/stdio.js'

const daemon = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 120_000)'], {
  detached: true,
  stdio: 'inherit',
})
daemon.unref()
const pid = tool({ name: 'pid', run: () => String(daemon.pid) })
await serveStdio(createServer({ name: 'daemon', version: '1.0.0', tools: [pid] }))
