// Compares ccmcp over HTTP with a bare JSON echo and the official SDKs in
// interleaved rounds; prints medians and ratios to the bare echo.
//   node bench/http.mjs [--rounds 5] [--calls 20000] [--streams 10000] [--only ccmcp,bare]
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { HttpLoad } from './http-load.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const { values } = parseArgs({
  strict: false, // ignore the options of the other benchmark
  options: {
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '20000' },
    streams: { type: 'string', default: '10000' },
    only: { type: 'string' },
  },
})
const [rounds, calls, streams] = [
  Number(values.rounds),
  Number(values.calls),
  Number(values.streams),
]
const LINES = 32
const SUBJECTS = ['bare', 'ccmcp', 'sdk-2', 'sdk-1']
const only = values.only?.split(',')
const names = SUBJECTS.filter(
  (name) => name === 'bare' || only === undefined || only.includes(name),
)

const median = (list) => {
  const known = list.filter((value) => value !== undefined).sort((one, other) => one - other)
  return known[Math.floor(known.length / 2)]
}

function prepare() {
  spawnSync(process.execPath, [join(here, '..', 'scripts', 'setup.mjs')], {
    stdio: ['ignore', 2, 2],
  })
  const lock = join(here, 'node_modules', '.package-lock.json')
  if (
    existsSync(lock) &&
    statSync(lock).mtimeMs >= statSync(join(here, 'package-lock.json')).mtimeMs
  )
    return
  process.stderr.write('installing the peers…\n')
  spawnSync('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: here,
    stdio: ['ignore', 2, 2],
  })
}

async function measure(name, last) {
  const load = new HttpLoad()
  await load.open(join(here, 'servers', `http-${name}.mjs`))
  const legacy = name === 'sdk-1'
  const row = {}
  await load.calls(calls / 2, LINES, legacy) // warm-up
  const { perSecond, p50, p99, cpu } = await load.calls(calls, LINES, legacy)
  Object.assign(row, {
    'calls per second': perSecond,
    'p50, ms': p50,
    'p99, ms': p99,
    'CPU per call, µs': cpu,
  })
  row['peak memory, MB'] = load.memory(true)
  await load.close()
  if (name === 'ccmcp') {
    const fresh = new HttpLoad()
    await fresh.open(join(here, 'servers', 'http-ccmcp.mjs'))
    await fresh.sessions(2000, LINES)
    row['sessions opened per second'] = await fresh.sessions(5000, LINES)
    await fresh.close()
  }
  if (last && (name === 'ccmcp' || name === 'sdk-2')) {
    const fresh = new HttpLoad()
    await fresh.open(join(here, 'servers', `http-${name}.mjs`))
    row[`${streams} idle streams, KB each`] = await fresh.streams(streams)
    await fresh.close()
  }
  return row
}

function format(value) {
  if (value >= 100) return Math.round(value).toString()
  return value.toFixed(value >= 10 ? 1 : 2)
}

function show(table) {
  const facts = [...new Set(names.flatMap((name) => Object.keys(table[name])))]
  const cell = (name, fact) => {
    const value = table[name][fact]
    if (value === undefined) return ''
    const shown = format(value)
    const baseline = table.bare[fact]
    return name === 'bare' || baseline === undefined
      ? shown
      : `${shown} (${(value / baseline).toFixed(2)}×)`
  }
  const rows = [
    ['', ...names],
    ...facts.map((fact) => [fact, ...names.map((name) => cell(name, fact))]),
  ]
  const [head, ...body] = rows.map((row) => `| ${row.join(' | ')} |`)
  return [head, `|${'---|'.repeat(names.length + 1)}`, ...body].join('\n')
}

prepare()
const results = Object.fromEntries(names.map((name) => [name, []]))
for (let round = 1; round <= rounds; round++) {
  for (const name of names) results[name].push(await measure(name, round === rounds))
  process.stderr.write(`round ${round} of ${rounds}\n`)
}
const table = {}
for (const name of names) {
  const facts = new Set(results[name].flatMap((row) => Object.keys(row)))
  table[name] = Object.fromEntries(
    [...facts].map((fact) => [fact, median(results[name].map((row) => row[fact]))]),
  )
}
console.log(
  `Node ${process.version}, ${cpus().length} cores, ${rounds} rounds of ${calls} calls over ${LINES} connections\n`,
)
console.log(show(table))
