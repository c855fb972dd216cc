// Runs a command, passes its stdin and stdout on and writes both to files, byte by byte as they come.
//   node stdio.mjs FILE COMMAND ARGS…      writes FILE.in and FILE.out
import { spawn } from 'node:child_process'
import { openSync, writeSync } from 'node:fs'

const [file, command, ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })

function pass(from, to, name) {
  const copy = openSync(`${file}.${name}`, 'w')
  from.on('data', (bytes) => {
    // Synchronously, so that nothing is lost if this process is killed.
    writeSync(copy, bytes)
    if (!to.write(bytes)) from.pause()
  })
  to.on('drain', () => from.resume())
  to.on('error', () => {})
  from.on('end', () => to.end())
}
pass(process.stdin, child.stdin, 'in')
pass(child.stdout, process.stdout, 'out')
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('close', (code, signal) => process.exit(signal === null ? code : 1))
