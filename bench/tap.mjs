// Compares `ccmcp tap` with an empty pass-through of the same structure, in front of the bare servers, on stdio and over
// HTTP, in interleaved rounds. CPU time is that of the process in between; unlike throughput and latency it hardly
// depends on what else the machine does.
//   node bench/tap.mjs [--rounds 7] [--only stdio|http]
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { HttpLines } from './http-load.mjs'
import { Load } from './load.mjs'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, only: { type: 'string' } },
})
const rounds = Number(values.rounds)
const path = (name) => fileURLToPath(new URL(name, import.meta.url))
const CLI = path('../dist/cli.js')
const BARE = path('servers/bare.mjs')
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-bench-'))
let captures = 0
const capture = () => ['--capture', join(folder, `${captures++}.ndjson`)]
const env = { ...process.env }
// On Node 20 this adds 50 ms to every start.
delete env.NODE_EXTRA_CA_CERTS

/** CPU time of a process so far, with all its threads, in microseconds. */
function cpuOf(pid) {
  let total = 0
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [spent] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')
    total += Number(spent) / 1000
  }
  return total
}

/** The result of `run` and the CPU time of a process meanwhile, for each of `count`. */
async function withCpu(pid, count, run) {
  const before = cpuOf(pid)
  const result = await run()
  return { result, cpu: (cpuOf(pid) - before) / count }
}

const STDIO = {
  direct: () => new Load(BARE),
  'pass-through': () => new Load(path('servers/pass-through.mjs'), BARE),
  tap: () => new Load(CLI, 'tap', ...capture(), '--', process.execPath, BARE),
}

async function measureStdio(start) {
  const load = start()
  await load.open()
  await load.pipelined(10_000) // warms up
  const many = await withCpu(load.pid, 50_000, () => load.pipelined(50_000))
  await load.pingPong(1000)
  const single = await withCpu(load.pid, 5000, () => load.pingPong(5000))
  const large = await withCpu(load.pid, 1, () => load.large(16 * 1024 * 1024))
  const peak = load.memory(true)
  await load.close()
  return {
    'calls per second, pipelined': many.result.perSecond,
    'CPU of such a call, µs': many.cpu,
    'latency p50, µs': single.result[2500] * 1000,
    'latency p99, µs': single.result[4950] * 1000,
    'CPU of a single call, µs': single.cpu,
    '16 MB message, ms': large.result,
    'CPU of such a message, ms': large.cpu / 1000,
    'peak memory, MB': peak,
  }
}

/** Starts a program that prints its URL or port. */
async function started(...args) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env })
  const line = await new Promise((resolve) =>
    createInterface({ input: child.stdout }).once('line', resolve),
  )
  const port = Number(/^\d+$/.test(line) ? line : new URL(line).port)
  const stop = () =>
    new Promise((resolve) => {
      child.once('exit', resolve)
      child.kill('SIGKILL')
    })
  return { port, stop, pid: child.pid }
}

const HTTP = {
  direct: undefined,
  'pass-through': (port) => started(path('servers/http-pass-through.mjs'), String(port)),
  tap: (port) => started(CLI, 'tap', `http://127.0.0.1:${port}/mcp`, ...capture()),
}

async function measureHttp(start) {
  const server = await started(path('servers/http-bare.mjs'))
  const between = await start?.(server.port)
  const { port, pid } = between ?? server
  const lines = new HttpLines(port)
  await lines.calls(3000, 16) // warms up
  const many = await withCpu(pid, 10_000, () => lines.calls(10_000, 16))
  const single = await withCpu(pid, 3000, () => lines.calls(3000, 1))
  const large = await withCpu(pid, 1, () => lines.large(16 * 1024 * 1024))
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  await between?.stop()
  await server.stop()
  return {
    'calls per second, 16 connections': many.result.perSecond,
    'CPU of such a call, µs': many.cpu,
    'latency p50, µs': single.result.p50 * 1000,
    'latency p99, µs': single.result.p99 * 1000,
    'CPU of a single call, µs': single.cpu,
    '16 MB message, ms': large.result,
    'CPU of such a message, ms': large.cpu / 1000,
    'peak memory, MB': peak / 1024,
  }
}

function median(list) {
  return list.toSorted((one, other) => one - other)[list.length >> 1]
}

async function compare(title, starts, measure) {
  const results = Object.fromEntries(Object.keys(starts).map((name) => [name, []]))
  for (let round = 0; round < rounds; round++)
    for (const [name, start] of Object.entries(starts)) results[name].push(await measure(start))
  const names = Object.keys(starts)
  console.log(`\n| ${title} | ${names.join(' | ')} | tap / pass-through |`)
  console.log('|---|---|---|---|---|')
  for (const figure of Object.keys(results.tap[0])) {
    const cells = names.map((name) => median(results[name].map((each) => each[figure])))
    // Of each round, since the load of the machine changes.
    const ratios = results.tap.map((each, i) => each[figure] / results['pass-through'][i][figure])
    const shown = cells.map((cell) => cell.toPrecision(3))
    console.log(`| ${figure} | ${shown.join(' | ')} | ${median(ratios).toFixed(2)}× |`)
  }
}

try {
  if (values.only !== 'http') await compare('stdio', STDIO, measureStdio)
  if (values.only !== 'stdio') await compare('HTTP', HTTP, measureHttp)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
