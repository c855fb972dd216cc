// Compares what servers do, for docs/comparison.md: the revisions that they serve, a stray console.log, a broken message.
//   node bench/compare.mjs    (after npm run setup, and npm ci in bench/)
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const SUBJECTS = ['ccmcp-zod', 'sdk-2', 'fastmcp']
/** A library in the server that writes to stdout, when it is told to. */
const STRAY = `data:text/javascript,process.on('SIGUSR2',()=>console.log('stray'))`

const server = (name) => join(here, 'servers', `${name}.mjs`)
const request = (id, method, params) => JSON.stringify({ jsonrpc: '2.0', id, method, params })
const OPENING = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'c', version: '1' },
}

function revisions(name) {
  const cli = join(here, '..', 'dist', 'cli.js')
  const command = ['check', '--format', 'json', '--', process.execPath, server(name)]
  const { stdout } = spawnSync(process.execPath, [cli, ...command], { encoding: 'utf8' })
  return JSON.parse(stdout).revisions
}

/** Where the text of a console.log arrives, and what a message that ends too early is answered with. */
async function mistakes(name) {
  const child = spawn(process.execPath, ['--import', STRAY, server(name)])
  const lines = { stdout: [], stderr: [] }
  const waiting = new Set()
  for (const stream of ['stdout', 'stderr'])
    createInterface({ input: child[stream] }).on('line', (line) => {
      lines[stream].push(line)
      for (const look of waiting) look()
    })
  const until = (condition) =>
    new Promise((resolve) => {
      const look = () => condition() && (waiting.delete(look), resolve())
      waiting.add(look)
      look()
    })
  const answered = (id) => lines.stdout.some((line) => line.includes(`"id":${id}`))
  child.stdin.write(`${request(1, 'initialize', OPENING)}\n`)
  await until(() => answered(1))
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
  child.kill('SIGUSR2')
  await until(() => lines.stdout.includes('stray') || lines.stderr.includes('stray'))
  child.stdin.write(`{"jsonrpc":"2.0","id":2,\n${request(3, 'ping')}\n`)
  await until(() => answered(3))
  const error = lines.stdout.find((line) => line.includes('"error"'))
  child.kill('SIGKILL')
  await once(child, 'close')
  return {
    'a stray console.log goes to': lines.stdout.includes('stray') ? 'stdout' : 'stderr',
    'a broken message gets': error === undefined ? 'no response' : JSON.parse(error).error.code,
  }
}

const table = {}
for (const name of SUBJECTS)
  table[name] = { revisions: revisions(name).join(' '), ...(await mistakes(name)) }
console.log(`Node ${process.version}`)
for (const [name, facts] of Object.entries(table)) console.log(name, facts)
