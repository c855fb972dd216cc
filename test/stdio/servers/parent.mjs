// Starts the server of tools.mjs on its own stdin, stdout and stderr, and waits to be killed.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

spawn(process.execPath, [fileURLToPath(new URL('tools.mjs', import.meta.url))], {
  stdio: 'inherit',
})
setInterval(() => {}, 60_000)
