// Compares ccmcp's HTTP client with a bare fetch loop and the client of the official SDK 2.x, on the same server, in
// interleaved rounds; prints medians and ratios to the bare loop.
//   node bench/http-client.mjs [--rounds 5] [--calls 3000]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { connect, http } from '../dist/client.js'

const here = dirname(fileURLToPath(import.meta.url))
const { values } = parseArgs({
  strict: false, // ignore the options of the other benchmarks
  options: {
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '3000' },
  },
})
const [rounds, calls] = [Number(values.rounds), Number(values.calls)]
const REVISION = '2026-07-28'
const BARE = 'bare fetch'
const info = { name: 'bench', version: '1.0.0' }
const args = { message: 'hello' }

const child = spawn(process.execPath, [join(here, 'servers', 'http-ccmcp.mjs')], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const port = await new Promise((resolve) =>
  createInterface({ input: child.stdout }).once('line', resolve),
)
const url = `http://127.0.0.1:${port}/mcp`

/** What the other clients do at least: one POST with the headers of the revision, and the parsed result. */
function bareFetch() {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': 'tools/call',
    'mcp-name': 'echo',
  }
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': info,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  let id = 0
  return async () => {
    const params = { name: 'echo', arguments: args, _meta }
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params })
    const response = await fetch(url, { method: 'POST', headers, body })
    return (await response.json()).result
  }
}

async function ccmcp(options) {
  const client = await connect(http(url, options), { info, revision: REVISION })
  return () => client.callTool('echo', args)
}

async function sdk2() {
  const client = new Client(info, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return () => client.callTool({ name: 'echo', arguments: args })
}

const subjects = {
  [BARE]: bareFetch(),
  ccmcp: await ccmcp({}),
  'ccmcp, fetch': await ccmcp({ fetch }),
  'SDK 2.x': await sdk2(),
}

/** Calls from several loops: calls per second, and the 99th percentile of their milliseconds. */
async function measure(call, count, loops) {
  const times = []
  let left = count
  const began = performance.now()
  await Promise.all(
    Array.from({ length: loops }, async () => {
      while (left-- > 0) {
        const start = performance.now()
        const { content } = await call()
        times.push(performance.now() - start)
        if (content[0].text !== args.message) throw new Error('Unexpected result')
      }
    }),
  )
  const seconds = (performance.now() - began) / 1000
  times.sort((one, other) => one - other)
  return { perSecond: count / seconds, p99: times[Math.floor(count * 0.99)] }
}

const median = (list) => list.toSorted((one, other) => one - other)[Math.floor(list.length / 2)]

console.log(`Node ${process.version}, ${cpus()[0]?.model}, ${rounds} rounds of ${calls} calls`)
for (const loops of [1, 16]) {
  const found = new Map(Object.keys(subjects).map((name) => [name, []]))
  for (const call of Object.values(subjects)) await measure(call, Math.ceil(calls / 4), loops)
  for (let round = 0; round < rounds; round++)
    for (const [name, call] of Object.entries(subjects))
      found.get(name).push(await measure(call, calls, loops))
  const bare = median(found.get(BARE).map(({ perSecond }) => perSecond))
  console.log(`\n${loops} at a time`.padEnd(19), '   calls/s     ratio   p99 in ms')
  for (const [name, rows] of found) {
    const perSecond = median(rows.map((row) => row.perSecond))
    const p99 = median(rows.map((row) => row.p99))
    console.log(
      name.padEnd(18),
      perSecond.toFixed(0).padStart(10),
      `${(perSecond / bare).toFixed(2)}×`.padStart(10),
      p99.toFixed(2).padStart(11),
    )
  }
}
child.kill('SIGKILL')
process.exit(0)
