// Serves the server of bench/redis.mjs over HTTP and prints the port.
import { listen } from '../../dist/http.js'
import { options, server, stores } from './redis.mjs'

const { idle = 600_000 } = options
const limits = { sessions: 1_000_000, sessionIdleTimeout: idle }
const listening = await listen(server, {
  port: 0,
  limits,
  logLevel: 'error',
  ...(stores && { stores }),
})
process.once('SIGTERM', () => void listening.close())
console.log(listening.port)
