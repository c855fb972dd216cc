// How cost grows with the amount of work, from 100 to 10,000 of everything: ccmcp, the official SDK v2 where it has the
// same, and a bare loop for messages. Prints the exponents between neighbouring points (1 is linear) and the fitted ones.
//   npm run bench:growth -- [--quick] [--rounds 5] [--only TEXT,…] [--write]
// --quick: 100 and 1,000, one round. --write: also writes the pictures and the table of docs/performance.md.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { draw, duration } from './growth/picture.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(here)
const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    write: { type: 'boolean' },
  },
})
const sizes = values.quick ? [100, 1000] : [100, 300, 1000, 3000, 10_000]
const rounds = Number(values.rounds ?? (values.quick ? 1 : 5))
const least = values.quick ? 200 : 1000
/** Milliseconds for all sizes of one curve, in one round. */
const TIMEOUT = 300_000
/** Heap below this is noise. */
const LEAST_BYTES = 100_000
const PAGE = join(root, 'docs', 'performance.md')

const say = (line) => process.stderr.write(`${line}\n`)
const median = (list) => list.toSorted((one, other) => one - other)[list.length >> 1]

function prepare() {
  spawnSync(process.execPath, [join(root, 'scripts', 'setup.mjs')], { stdio: ['ignore', 2, 2] })
  const lock = join(here, 'node_modules', '.package-lock.json')
  const wanted = join(here, 'package-lock.json')
  if (existsSync(lock) && statSync(lock).mtimeMs >= statSync(wanted).mtimeMs) return
  say('installing the peers…')
  const options = ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  spawnSync('npm', ['ci', ...options], { cwd: here, stdio: ['ignore', 2, 2] })
}

/** One round of a curve, in a process of its own: a point for each size. What takes too long has fewer. */
function measure(name, subject) {
  const file = join(here, 'growth', 'measure.mjs')
  const { most = Infinity } = CURVES[name]
  const wanted = sizes.filter((n) => n <= most).join(',')
  const args = ['--expose-gc', file, name, subject, wanted, String(least)]
  const stdio = ['ignore', 'pipe', 'inherit']
  const { stdout, status } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    stdio,
    timeout: TIMEOUT,
  })
  if (status !== 0) say(`${name}, ${subject}: not measured for every size`)
  return stdout
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line))
}

/** The exponent that fits the points best; undefined for fewer than two. */
function fitted(points, member) {
  const logs = points
    .filter((point) => point[member] > 0)
    .map((point) => [Math.log(point.n), Math.log(point[member])])
  if (logs.length < 2) return undefined
  const mean = (index) => logs.reduce((sum, log) => sum + log[index], 0) / logs.length
  const [x, y] = [mean(0), mean(1)]
  const above = logs.reduce((sum, log) => sum + (log[0] - x) * (log[1] - y), 0)
  return above / logs.reduce((sum, log) => sum + (log[0] - x) ** 2, 0)
}

function summary(all) {
  const points = sizes.flatMap((n) => {
    const found = all.flat().filter((point) => point.n === n)
    if (found.length === 0) return []
    const of = (member) => median(found.map((point) => point[member]))
    return [{ n, time: of('time'), longest: of('longest'), bytes: of('bytes') }]
  })
  const heavy = points.filter(({ bytes }) => bytes >= LEAST_BYTES)
  return { points, exponent: fitted(points, 'time'), memory: fitted(heavy, 'bytes') }
}

const shown = (exponent) => (exponent === undefined ? '' : exponent.toFixed(2))

function print(name, subjects, turns) {
  console.log(`\n${name}`)
  for (const [subject, { points, exponent, memory }] of Object.entries(subjects)) {
    const cells = points.map(({ n, time }, index) => {
      const before = points[index - 1]
      const local = before && Math.log(time / before.time) / Math.log(n / before.n)
      return `${n}: ${duration(time)}${local === undefined ? '' : ` (${local.toFixed(2)})`}`
    })
    const last = points.at(-1)
    const notes = [`fitted ${shown(exponent)}`]
    if (memory !== undefined)
      notes.push(`heap ${(last.bytes / 1e6).toFixed(1)} MB, fitted ${shown(memory)}`)
    if (turns) notes.push(`longest turn ${duration(last.longest)}`)
    console.log(`  ${subject.padEnd(6)} ${cells.join('  ')}  ${notes.join('; ')}`)
  }
}

/** The rows of docs/performance.md. */
function table(results, turns) {
  const cost = (summed) => {
    if (summed === undefined) return ''
    const last = summed.points.at(-1)
    const n = last.n === sizes.at(-1) ? '' : ` (${last.n.toLocaleString('en')})`
    return `${duration(summed.points[0].time)}, ${duration(last.time)}${n}, **${shown(summed.exponent)}**`
  }
  const rows = Object.entries(results).map(([name, { ccmcp, sdk, bare }]) => {
    const longest = turns.has(name) ? duration(ccmcp.points.at(-1).longest) : ''
    const compared = bare === undefined ? cost(sdk) : `${cost(sdk)}; bare ${cost(bare)}`
    return `| ${name} | ${cost(ccmcp)} | ${compared} | ${shown(ccmcp.memory)} | ${longest} |`
  })
  return ['| | ccmcp | SDK v2 | heap | longest turn |', '|---|---|---|---|---|', ...rows].join('\n')
}

function write(results, turns) {
  for (const theme of ['light', 'dark'])
    writeFileSync(join(root, 'docs', `growth-${theme}.svg`), draw(results, theme))
  const page = readFileSync(PAGE, 'utf8')
  const date = new Date().toISOString().slice(0, 10)
  const head = `Measured on ${date} with Node ${process.version} on ${cpus().length} cores, ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}.`
  const block = /(<!-- growth -->)[^]*?(<!-- \/growth -->)/
  if (!block.test(page)) throw new Error('docs/performance.md has no place for the table')
  const made = `\n\n${head}\n\n${table(results, turns)}\n\n`
  writeFileSync(
    PAGE,
    page.replace(block, (_, before, after) => before + made + after),
  )
  execFileSync(join(root, 'node_modules', '.bin', 'oxfmt'), [PAGE], { cwd: root })
}

prepare()
const { CURVES } = await import('./growth/curves.mjs')
const only = values.only?.split(',') ?? ['']
const names = Object.keys(CURVES).filter((name) => only.some((part) => name.includes(part)))
const measured = Object.fromEntries(names.map((name) => [name, {}]))
const subjectsOf = (name) => ['ccmcp', 'sdk', 'bare'].filter((each) => each in CURVES[name])
for (let round = 1; round <= rounds; round++) {
  for (const name of names)
    for (const subject of subjectsOf(name))
      (measured[name][subject] ??= []).push(measure(name, subject))
  say(`round ${round} of ${rounds}`)
}
const results = {}
for (const name of names) {
  const subjects = Object.entries(measured[name]).map(([subject, all]) => [subject, summary(all)])
  results[name] = Object.fromEntries(subjects.filter(([, { points }]) => points.length > 1))
  print(name, results[name], CURVES[name].turns)
}
if (values.write) write(results, new Set(names.filter((name) => CURVES[name].turns)))
