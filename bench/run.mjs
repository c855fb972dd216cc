// Compares ccmcp with the bare loop and other implementations in interleaved
// rounds; prints medians and ratios to the bare loop.
//   node bench/run.mjs [--rounds 7] [--calls 50000] [--only ccmcp,bare] [--markdown]
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Load } from './load.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(here)
const { values } = parseArgs({
  strict: false, // ignore the options of the other benchmark
  options: {
    rounds: { type: 'string', default: '7' },
    calls: { type: 'string', default: '50000' },
    only: { type: 'string' },
    markdown: { type: 'boolean' },
  },
})
const rounds = Number(values.rounds)
const calls = Number(values.calls)

const SUBJECTS = {
  bare: [],
  ccmcp: ['ccmcp'],
  'ccmcp-zod': ['ccmcp', 'zod'],
  tmcp: ['tmcp', '@tmcp/transport-stdio', '@tmcp/adapter-zod', 'zod'],
  'sdk-2': ['@modelcontextprotocol/server', 'zod'],
  'sdk-1': ['@modelcontextprotocol/sdk', 'zod'],
  fastmcp: ['fastmcp', 'zod'],
}
const names =
  values.only === undefined
    ? Object.keys(SUBJECTS)
    : ['bare', ...values.only.split(',').filter((name) => name !== 'bare')]

const say = (text) => process.stderr.write(`${text}\n`)
const median = (list) => {
  const known = list.filter((value) => value !== undefined).sort((one, other) => one - other)
  return known.length === 0 ? undefined : known[Math.floor(known.length / 2)]
}

function prepare() {
  spawnSync(process.execPath, [join(root, 'scripts', 'setup.mjs')], { stdio: ['ignore', 2, 2] })
  const lock = join(here, 'node_modules', '.package-lock.json')
  if (
    existsSync(lock) &&
    statSync(lock).mtimeMs >= statSync(join(here, 'package-lock.json')).mtimeMs
  )
    return
  say('installing the peers…')
  spawnSync('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: here,
    stdio: ['ignore', 2, 2],
  })
}

async function measure(name) {
  const file = join(here, 'servers', `${name}.mjs`)
  const row = {}
  // Starts are short and noisy: take the median of several.
  const starts = []
  for (let i = 0; i < 5; i++) {
    const short = new Load(file)
    starts.push(await short.open())
    await short.close()
  }
  row['start to first response, ms'] = median(starts.map(({ first }) => first))
  row['start to first call, ms'] = median(starts.map(({ firstCall }) => firstCall))
  const load = new Load(file)
  await load.open()
  row['memory at start, MB'] = load.memory(false)
  await load.pipelined(Math.floor(calls / 5)) // warm up the server
  const pipelined = await load.pipelined(calls)
  row['calls per second'] = pipelined?.perSecond
  row['CPU per call, µs'] = pipelined?.cpu
  await load.pingPong(4000) // warm up the load generator
  const times = await load.pingPong(4000)
  row['ping-pong p50, ms'] = times[Math.floor(times.length * 0.5)]
  row['ping-pong p99, ms'] = times[Math.floor(times.length * 0.99)]
  row['peak memory under calls, MB'] = load.memory(true)
  await load.close()
  await warmUp(file, row)
  // In a new process, so that large messages do not affect the figures above.
  const large = new Load(file)
  await large.open()
  await large.large(2 ** 20)
  row['1 MB message, ms'] = median([
    await large.large(2 ** 20),
    await large.large(2 ** 20),
    await large.large(2 ** 20),
  ])
  row['64 MB message, ms'] = await large.large(2 ** 26)
  row['peak memory at 64 MB, MB'] =
    row['64 MB message, ms'] === undefined ? undefined : large.memory(true)
  await large.close()
  return row
}

/** Latency in a new process before V8 has compiled the code, and memory under steady load. */
async function warmUp(file, row) {
  const cold = new Load(file)
  await cold.open()
  const first = await cold.pingPong(2000)
  row['p99 of the first 2,000, ms'] = first[Math.floor(first.length * 0.99)]
  const all = [...first, ...(await cold.pingPong(18_000))].sort((one, other) => one - other)
  row['p99 of the first 20,000, ms'] = all[Math.floor(all.length * 0.99)]
  await cold.close()
  const busy = new Load(file)
  await busy.open()
  await busy.inFlight(30_000, 64)
  row['peak memory, 64 in flight, MB'] = busy.memory(true)
  await busy.close()
}

/** Number of packages and size of a fresh install, in MB. */
function install(name) {
  const packages = SUBJECTS[name]
  if (packages.length === 0) return {}
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-bench-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{"private":true}')
    const npm = (args, cwd) =>
      execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
        cwd,
        encoding: 'utf8',
      })
    const specs = packages.map((each) =>
      each === 'ccmcp'
        ? join(
            folder,
            npm(['pack', '--ignore-scripts', '--pack-destination', folder], root)
              .trim()
              .split('\n')
              .at(-1),
          )
        : `${each}@${versionOf(each)}`,
    )
    npm(['install', ...specs], folder)
    const bytes = (path) =>
      statSync(path).isDirectory()
        ? readdirSync(path).reduce((sum, each) => sum + bytes(join(path, each)), 0)
        : statSync(path).size
    const count = npm(['ls', '--all', '--parseable'], folder).trim().split('\n').length - 1
    return {
      'packages installed': count,
      'install size, MB': bytes(join(folder, 'node_modules')) / 1e6,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const versionOf = (name) =>
  JSON.parse(
    execFileSync('node', ['-p', `JSON.stringify(require('./package.json').devDependencies)`], {
      cwd: here,
      encoding: 'utf8',
    }),
  )[name]

function format(value) {
  if (Number.isInteger(value) || value >= 1000) return Math.round(value).toString()
  return value.toFixed(value >= 10 ? 1 : 3)
}

function show(table) {
  const facts = [...new Set(Object.values(table).flatMap((row) => Object.keys(row)))]
  const cell = (name, fact) => {
    const value = table[name][fact]
    if (value === undefined) return name === 'bare' ? '' : 'fails'
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
  if (values.markdown === true) {
    const [head, ...body] = rows.map((row) => `| ${row.join(' | ')} |`)
    return [head, `|${'---|'.repeat(names.length + 1)}`, ...body].join('\n')
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  return rows
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

prepare()
// Warm up the load generator before the first server is measured.
const rehearsal = new Load(join(here, 'servers', 'bare.mjs'))
await rehearsal.open()
await rehearsal.pingPong(4000)
await rehearsal.inFlight(4000, 64)
await rehearsal.close()
const results = Object.fromEntries(names.map((name) => [name, []]))
for (let round = 1; round <= rounds; round++) {
  for (const name of names) results[name].push(await measure(name))
  say(`round ${round} of ${rounds}`)
}
const table = {}
for (const name of names) {
  const facts = Object.keys(results[name][0])
  table[name] = Object.fromEntries(
    facts.map((fact) => [fact, median(results[name].map((row) => row[fact]))]),
  )
  Object.assign(table[name], install(name))
}
console.log(
  `Node ${process.version}, ${cpus().length} cores, ${rounds} rounds of ${calls} calls; in parentheses: ratio to the bare loop\n`,
)
console.log(show(table))
