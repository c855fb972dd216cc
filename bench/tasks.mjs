// Tasks: what they cost where no tool uses them (two servers over stdio, interleaved), and how many are created and
// finished per second, in memory and with a journal.
//   node bench/tasks.mjs [--rounds 7] [--calls 50000] [--tasks 5000]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { memory } from '../dist/client.js'
import { createServer, tool } from '../dist/core.js'
import { JournalTaskStore } from '../dist/journal.js'
import { MemoryTaskStore, tasks } from '../dist/tasks.js'
import { Load } from './load.mjs'

const { values } = parseArgs({
  strict: false, // ignore the options of the other benchmarks
  options: {
    rounds: { type: 'string', default: '7' },
    calls: { type: 'string', default: '50000' },
    tasks: { type: 'string', default: '5000' },
  },
})
const rounds = Number(values.rounds)
const calls = Number(values.calls)
const count = Number(values.tasks)
/** Tasks in progress at the same time. */
const WIDTH = 64

const path = (name) => fileURLToPath(new URL(name, import.meta.url))
const round = (list) => Math.round(median(list)).toLocaleString('en')
const median = (list) => list.toSorted((one, other) => one - other)[list.length >> 1]

/** CPU time of a plain call in microseconds, in a handshake revision and stateless. */
async function plainCalls(file) {
  const load = new Load(file)
  await load.open()
  await load.pipelined(Math.floor(calls / 5)) // warms up
  const handshake = await load.pipelined(calls)
  await load.pipelined(Math.floor(calls / 5), { stateless: true })
  const stateless = await load.pipelined(calls, { stateless: true })
  await load.close()
  return { handshake: handshake?.cpu, stateless: stateless?.cpu }
}

async function compare() {
  const without = []
  const enabled = []
  const measures = [
    async () => without.push(await plainCalls(path('servers/ccmcp.mjs'))),
    async () => enabled.push(await plainCalls(path('servers/ccmcp-tasks.mjs'))),
  ]
  for (let round = 0; round < rounds; round++) {
    for (const measure of measures) await measure()
    measures.reverse() // neither is always the first
  }
  console.log('| CPU per plain call, µs | without tasks | tasks enabled, unused | ratio |')
  console.log('|---|---|---|---|')
  for (const kind of ['handshake', 'stateless']) {
    const of = (list) => list.map((each) => each[kind])
    const ratios = of(enabled).map((cpu, round) => cpu / of(without)[round])
    const cells = [median(of(without)), median(of(enabled))].map((cpu) => cpu.toFixed(1))
    console.log(`| ${kind} | ${cells.join(' | ')} | ${median(ratios).toFixed(2)}× |`)
  }
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}

/** Creates tasks, then polls each until it is completed; returns how many per second, and the CPU time of each with its client. */
async function measure(store) {
  const echo = tool({ name: 'echo', task: 'must', run: () => 'hello' })
  const extensions = [tasks({ store })]
  const server = createServer({ name: 'bench', version: '1.0.0', tools: [echo], extensions })
  const channel = memory(server).open()
  const pending = new Map()
  channel.receive({
    frame(frame) {
      const { id, result, error } = JSON.parse(frame)
      if (error !== undefined) throw new Error(error.message)
      pending.get(id)?.(result)
      pending.delete(id)
    },
    malformed() {},
    closed() {},
  })
  let sent = 0
  const request = (method, params) =>
    new Promise((resolve) => {
      const id = ++sent
      pending.set(id, resolve)
      channel.send(
        JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: META, ...params } }),
      )
    })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const created = []
  let left = count
  const create = async () => {
    while (left-- > 0) {
      const { taskId } = await request('tools/call', { name: 'echo', arguments: {} })
      created.push(taskId)
    }
  }
  const finish = async () => {
    for (let taskId = created.shift(); taskId !== undefined; taskId = created.shift())
      while ((await request('tasks/get', { taskId })).status !== 'completed') await turn()
  }
  const all = (worker) => Promise.all(Array.from({ length: WIDTH }, worker))
  const cpu = process.cpuUsage()
  const began = performance.now()
  await all(create)
  await all(finish)
  const spent = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)
  await channel.close()
  return { perSecond: (count / spent) * 1000, cpu: (user + system) / count }
}

const ROOM = { maxTasks: 1e6, maxBytes: 2 ** 30, maxTasksPerOwner: 1e6, maxBytesPerOwner: 2 ** 30 }

async function throughput() {
  const rates = { 'in memory': [], 'with a journal': [] }
  for (let round = 0; round < rounds; round++) {
    rates['in memory'].push(await measure(new MemoryTaskStore(ROOM)))
    const folder = mkdtempSync(join(tmpdir(), 'ccmcp-bench-'))
    const store = await JournalTaskStore.open(join(folder, 'tasks.journal'), ROOM)
    rates['with a journal'].push(await measure(store))
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
  console.log(
    `\n| ${count} tasks, ${WIDTH} at the same time | created and finished per second | CPU each, µs |`,
  )
  console.log('|---|---|---|')
  for (const [name, list] of Object.entries(rates))
    console.log(
      `| ${name} | ${round(list.map(({ perSecond }) => perSecond))} | ${round(list.map(({ cpu }) => cpu))} |`,
    )
}

await compare()
await throughput()
