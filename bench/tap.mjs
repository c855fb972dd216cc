// Compares `ccmcp tap` with an empty pass-through, both in front of the bare server, round by round.
//   node bench/tap.mjs [--rounds 5]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Load } from './load.mjs'

const option = process.argv.indexOf('--rounds')
const rounds = option === -1 ? 5 : Number(process.argv[option + 1])
const path = (name) => fileURLToPath(new URL(name, import.meta.url))
const BARE = path('servers/bare.mjs')
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-bench-'))
let captures = 0

const starts = {
  direct: () => new Load(BARE),
  'pass-through': () => new Load(path('servers/pass-through.mjs'), BARE),
  tap: () =>
    new Load(
      path('../dist/cli.js'),
      'tap',
      '--capture',
      join(folder, `${captures++}.ndjson`),
      '--',
      process.execPath,
      BARE,
    ),
}

async function measure(start) {
  const load = start()
  await load.open()
  await load.pipelined(10_000) // warms up
  const { perSecond } = await load.pipelined(50_000)
  await load.pingPong(1000)
  const times = await load.pingPong(5000)
  const large = await load.large(16 * 1024 * 1024)
  const peak = load.memory(true)
  await load.close()
  return { perSecond, p50: times[2500], p99: times[4950], large, peak }
}

const results = {}
try {
  for (let round = 0; round < rounds; round++)
    for (const [name, start] of Object.entries(starts))
      (results[name] ??= []).push(await measure(start))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

const median = (name, figure) =>
  results[name].map((each) => each[figure]).sort((one, other) => one - other)[rounds >> 1]
const ROWS = [
  ['calls per second', 'perSecond'],
  ['ping-pong p50, ms', 'p50'],
  ['ping-pong p99, ms', 'p99'],
  ['16 MB message, ms', 'large'],
  ['peak memory of the process in between, MB', 'peak'],
]
console.log(`|  | ${Object.keys(starts).join(' | ')} | tap / pass-through |`)
console.log('|---|---|---|---|---|')
for (const [label, figure] of ROWS) {
  const cells = Object.keys(starts).map((name) => median(name, figure).toPrecision(3))
  const ratio = median('tap', figure) / median('pass-through', figure)
  console.log(`| ${label} | ${cells.join(' | ')} | ${ratio.toFixed(2)}× |`)
}
