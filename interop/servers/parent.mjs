// Starts a child in its process group; with the argument "inherit" the child holds the parent's pipes.
// The tool "crash" exits the parent only.
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { behave, listen } from './bare.mjs'

const child = spawn('sleep', ['1000'], { stdio: process.argv[2] })
child.unref()
appendFileSync(process.env.INTEROP_PIDS, `${child.pid}\n`)
listen((message) => {
  if (message.params?.name === 'crash') process.exit(7)
  behave(message)
})
