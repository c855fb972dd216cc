// What tasks and their results hold in memory, and what the memory store charges for them.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const script = fileURLToPath(import.meta.url)
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}

/** Bytes of handlers that run at the same time; then further tasks are queued. */
const RUNNING = 256 * 1024 * 1024

/** What is kept: the tool that makes it, and the arguments of each call. */
const THINGS = {
  'parked task': { tool: 'ask', args: (n) => ({ text: textOf(n, 6000) }), end: 'input_required' },
  'small parked task (at least 4096 bytes)': {
    tool: 'ask',
    args: () => ({}),
    end: 'input_required',
  },
  'parked task with 100 steps': {
    tool: 'ask',
    args: () => ({ steps: 100 }),
    end: 'input_required',
    share: 1 / 10,
  },
  'parked task of small objects': {
    tool: 'ask',
    args: (n) => ({ list: Array.from({ length: 1000 }, (_, each) => ({ n: n + each })) }),
    end: 'input_required',
    share: 1 / 4,
  },
  'task result': { tool: 'echo', args: (n) => ({ text: textOf(n, 6000) }), end: 'completed' },
  'task result beyond Latin-1': {
    tool: 'echo',
    args: (n) => ({ text: `\u20ac${textOf(n, 6000)}` }),
    end: 'completed',
  },
  'running task': { tool: 'run', args: (n) => ({ text: textOf(n, 6000) }), end: 'working' },
  'running task of small objects': {
    tool: 'run',
    args: (n) => ({ list: Array.from({ length: 1000 }, (_, each) => ({ n: n + each })) }),
    end: 'working',
  },
}

function textOf(n, length) {
  return `${n} `.padEnd(length, 'lorem ipsum ')
}

/** In a process of its own, with `--expose-gc`. */
async function measure(thing, wanted) {
  const { createServer, form, tool } = await import('../../dist/index.js')
  const { MemoryTaskStore, tasks } = await import('../../dist/tasks.js')
  const { memory } = await import('../../dist/client.js')
  const { tool: name, args, end, share = 1 } = THINGS[thing]
  const input = {
    type: 'object',
    properties: { text: { type: 'string' }, steps: { type: 'integer' }, list: { type: 'array' } },
  }
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } } }
  const task = { mode: 'must', ttl: 86_400_000 }
  let running = 0
  const handlers = {
    async ask({ steps = 0 }, call) {
      for (let each = 0; each < steps; each++) await call.step(`step ${each}`, () => each)
      await call.ask({ sure: form({ message: 'Remove everything?', schema }) })
    },
    echo: ({ text }) => text,
    run(_, call) {
      running++
      return new Promise((end) => call.signal.addEventListener('abort', end))
    },
  }
  const tools = Object.entries(handlers).map(([its, run]) => tool({ name: its, input, task, run }))
  const [maxTasks, maxBytes] = [1e9, 1e12]
  const store = new MemoryTaskStore({
    maxTasks,
    maxBytes,
    maxTasksPerOwner: maxTasks,
    maxBytesPerOwner: maxBytes,
  })
  const extension = tasks({ store, concurrency: 1e6 })
  const server = createServer({ name: 'held', version: '1.0.0', tools, extensions: [extension] })
  const channel = memory(server).open()
  const waiting = new Map()
  channel.receive({
    frame(frame) {
      const { id, result } = JSON.parse(frame)
      waiting.get(id)?.(result)
      waiting.delete(id)
    },
    malformed() {},
    closed() {},
  })
  let sent = 0
  const request = (method, params) =>
    new Promise((resolve) => {
      const id = ++sent
      waiting.set(id, resolve)
      channel.send(
        JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: META, ...params } }),
      )
    })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const make = async (n) => {
    const { taskId } = await request('tools/call', { name, arguments: args(n) })
    for (let status; status !== end;) ({ status } = await request('tasks/get', { taskId }))
  }
  const measured = async () => {
    for (let each = 0; each < 5; each++) {
      await turn()
      globalThis.gc()
    }
    const { heapUsed, external } = process.memoryUsage()
    return { charged: store.bytes, held: heapUsed + external }
  }
  // What is loaded and compiled by the first ones does not count.
  for (let n = 0; n < 50; n++) await make(n)
  const begun = running
  const before = await measured()
  let count = 0
  if (name === 'run') {
    // Until no more start: then all that run are charged the limit.
    for (; running === begun + count; count++) {
      await make(count)
      await turn()
      await turn()
    }
    count = running
  } else for (const end = Math.ceil(wanted * share); count < end; count++) await make(count)
  const after = await measured()
  const part = name === 'run' ? RUNNING * ((running - begun) / running) : 0
  const charged = Math.round(after.charged - before.charged + part)
  const held = after.held - before.held
  console.log(JSON.stringify({ count: count - begun, charged, held }))
  process.exit()
}

async function row(thing, count) {
  const args = ['--expose-gc', script, '--measure', thing, String(count)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout)
}

/** The same for `held.mjs`: how many are made, except for those that run, which fill their limit. */
const COUNT = 2000
export const rows = Object.fromEntries(
  Object.keys(THINGS).map((thing) => [thing, () => row(thing, COUNT)]),
)

if (process.argv[2] === '--measure') await measure(process.argv[3], Number(process.argv[4]))
