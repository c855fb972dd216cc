// A server with tools that behave well and badly. The environment sets it up:
// OPTIONS   options of serveStdio, as JSON
// HANDLES   leaves a timer, a listening socket and a file watch behind
// SIGNALS   tells on stderr about each SIGTERM, SIGINT and end of input
// AGAIN     answers the first signal with a second one
// EXIT      tells its exit code on stderr
// AFTER     prints to stdout when serving has ended
// CATCH     tells on stderr that serving was rejected, and exits with 3
import { spawnSync } from 'node:child_process'
import { Console } from 'node:console'
import { watch, writeSync } from 'node:fs'
import { createServer as listen } from 'node:net'
import { Readable } from 'node:stream'
import { createServer, tool } from '../../../dist/index.js'
import { serveStdio } from '../../../dist/stdio.js'

const { env } = process
const input = { type: 'object' }
const big = 'x'.repeat(100_000)
const after = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
/** Tells the test that the call has begun. */
const begin = (call) => process.stderr.write(`begun ${call.id}\n`)

let release = () => {}

const tools = {
  echo: ({ text }) => text,
  /** Answers late. */
  async wait({ ms }, call) {
    begin(call)
    await after(ms)
    return 'waited'
  },
  /** Answers late, quietly. */
  async nap({ ms }) {
    await after(ms)
    return 'slept'
  },
  /** Answers when `release` is called. */
  hold: () => new Promise((resolve) => (release = () => resolve('held'))),
  release() {
    release()
    return 'released'
  },
  never(_, call) {
    begin(call)
    return new Promise(() => {})
  },
  big: () => big + Math.random(),
  bigAsync: async () => big + Math.random(),
  async bigLate() {
    await after(20)
    return big + Math.random()
  },
  print() {
    console.log('by console.log')
    new Console(process.stdout).log('by a Console')
    process.stdout.write('by write\n')
    process.stdout.end()
    console.info('after end')
    return 'printed'
  },
  pipe: () =>
    new Promise((resolve) =>
      Readable.from(['by pipe\n'])
        .on('end', () => resolve('piped'))
        .pipe(process.stdout),
    ),
  writeAndWait: () =>
    new Promise((resolve) => process.stdout.write('confirmed\n', () => resolve('written'))),
  end() {
    process.stdout.end('last words\n')
    return 'ended'
  },
  endAndWait: () => new Promise((resolve) => process.stdout.end(() => resolve('ended'))),
  /** Writes to descriptor 1 by every way that no guard in JavaScript can see. */
  junk() {
    console.log('junk of console')
    writeSync(1, 'junk of writeSync\n')
    spawnSync('echo', ['junk of a child'], { stdio: 'inherit' })
    const { status } = spawnSync('sh', ['-c', 'cat; echo junk on the wire >&4'], {
      stdio: ['inherit', 'inherit', 'ignore'],
    })
    return status === 0 ? 'a child could write to the wire' : 'done'
  },
  environment: () =>
    `${env.CCMCP_WIRE ?? 'unset'} ${spawnSync('sh', ['-c', 'printf %s "${CCMCP_WIRE-unset}"']).stdout.toString()}`,
}

if (env.HANDLES) {
  setInterval(() => {}, 1000)
  listen().listen(0, '127.0.0.1')
  watch(new URL('.', import.meta.url))
}
if (env.SIGNALS) {
  for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => process.stderr.write(`got ${signal}\n`))
  process.stdin.on('end', () => process.stderr.write('got end\n'))
}
if (env.AGAIN) {
  for (const signal of ['SIGTERM', 'SIGINT'])
    process.once(signal, () => process.kill(process.pid, signal))
}
if (env.EXIT) process.on('exit', (code) => writeSync(2, `exit ${code}\n`))

const server = createServer({
  name: 'tools',
  version: '1.0.0',
  tools: Object.entries(tools).map(([name, run]) => tool({ name, input, run })),
})
const serving = serveStdio(server, JSON.parse(env.OPTIONS ?? '{}'))
if (env.CATCH) {
  serving.catch((error) => {
    process.stderr.write(`rejected with ${error.code}\n`)
    process.exit(3)
  })
} else {
  await serving
}
if (env.AFTER) console.log('served')
