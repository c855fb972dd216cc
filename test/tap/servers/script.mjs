// A server that does what its first argument says.
import { closeSync, writeSync } from 'node:fs'
import { spawn } from 'node:child_process'

const actions = {
  /** Returns its input, byte for byte. */
  echo: () => process.stdin.pipe(process.stdout),
  /** Writes every byte value in pieces, and to stderr too. */
  bytes() {
    for (let i = 0; i < 256; i++) writeSync(1, Uint8Array.of(i))
    writeSync(2, Uint8Array.of(0x65, 0xff))
    process.stdin.resume().on('end', () => process.exit(7))
  },
  /** Reports the signals that it gets; ends by itself on the second. */
  signals() {
    let count = 0
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'])
      process.on(signal, () => {
        writeSync(1, `${signal}\n`)
        if (++count === 2) process.exit(5)
      })
    writeSync(1, 'ready\n')
    setInterval(() => {}, 1000)
  },
  /** Is killed by a signal. */
  killed: () => process.kill(process.pid, 'SIGKILL'),
  /** Closes its stdout and runs until its input ends. */
  closes() {
    closeSync(1)
    process.stdin.resume().on('end', () => process.exit(0))
  },
  /** Closes its stdin and runs on. */
  deaf() {
    closeSync(0)
    writeSync(1, 'deaf\n')
    setTimeout(() => {}, 60_000)
  },
  /** Writes a lot and exits without waiting for the reader. */
  flood() {
    process.stdout.write('x'.repeat(Number(process.argv[3])), () => process.exit(3))
  },
  /** Writes more than fits into pipes, and exits on a signal without waiting for the reader. */
  stuck() {
    for (const signal of ['SIGTERM', 'SIGUSR2']) process.on(signal, () => process.exit(3))
    process.stdout.write('x'.repeat(3_000_000))
    setInterval(() => {}, 1000)
  },
  /** Exits while its child goes on writing, until nobody reads. */
  chatter() {
    spawn(process.execPath, ['-e', 'setInterval(() => process.stdout.write("x\\n"), 10)'], {
      stdio: 'inherit',
    })
    writeSync(1, 'ready\n')
    process.exit(4)
  },
  /** Exits while its child keeps the pipes open. */
  parent() {
    const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 20000)'], {
      stdio: 'inherit',
    })
    writeSync(1, `${child.pid}\n`)
    process.exit(4)
  },
}
actions[process.argv[2]]()
