// Has a child in its own process group: with the argument "inherit" it holds the pipes of its parent.
// A call of the tool "crash" ends the parent alone.
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
