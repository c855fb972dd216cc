// Exits on any request before `initialize`, as servers of some SDKs do. The argument delays its start, in milliseconds.
import { setTimeout as sleep } from 'node:timers/promises'
import { behave, listen } from './bare.mjs'

await sleep(Number(process.argv[2] ?? 0))
let initialized = false
listen((message) => {
  initialized ||= message.method === 'initialize'
  if (!initialized) {
    process.stderr.write(`panic: expected initialize, got ${message.method}\n`)
    process.exit(1)
  }
  behave(message)
})
