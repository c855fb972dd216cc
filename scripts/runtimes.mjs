// Runs the test suite on the oldest supported version of Node and on newer ones, and a smoke test of the built package
// on Bun and Deno. Installs the runtimes from npm into .runtimes/.
//
//   node scripts/runtimes.mjs [--times 10] [name …]     for example: node-24 bun
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const cache = join(root, '.runtimes')
const isWindows = process.platform === 'win32'

/** Each runtime's npm package and version, and how it is tested. */
const RUNTIMES = [
  { name: 'node-20', pkg: 'node', version: '20.19.2', test: suite },
  { name: 'node-22', pkg: 'node', version: '22.23.3', test: suite },
  { name: 'node-24', pkg: 'node', version: '24.21.0', test: suite },
  { name: 'node-26', pkg: 'node', version: '26.10.0', test: suite },
  { name: 'bun', pkg: 'bun', version: '1.4.4', test: smoke },
  { name: 'deno', pkg: 'deno', version: '2.9.6', test: smoke },
]

function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    ...options,
  })
  return { ok: status === 0, output: `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}` }
}

/** Installs the runtime and returns the directory of its executable. */
function install({ name, pkg, version }) {
  const folder = join(cache, `${name}-${version}`)
  const bin = join(folder, 'node_modules', '.bin')
  if (existsSync(join(folder, '.installed'))) return bin
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, dependencies: { [pkg]: version } }),
  )
  const npm = run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    shell: isWindows,
  })
  if (!npm.ok) throw new Error(`npm install ${pkg}@${version} failed:\n${npm.output}`)
  writeFileSync(join(folder, '.installed'), '')
  return bin
}

/** The whole test suite; child processes also use this version of `node`. Repeated, with the files in another order. */
function suite({ bin, seed }) {
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
  const order = times > 1 ? ['--sequence.shuffle.files', `--sequence.seed=${seed}`] : []
  return run(join(bin, 'node'), [vitest, 'run', ...order], { env, shell: isWindows })
}

function smoke({ pkg, bin }) {
  const file = join(root, 'test', 'runtimes', 'smoke.mjs')
  const args = pkg === 'deno' ? ['run', '-A', file] : [file]
  return run(join(bin, pkg), args, { timeout: 120_000, shell: isWindows })
}

const { values, positionals: wanted } = parseArgs({
  options: { times: { type: 'string', default: '1' } },
  allowPositionals: true,
})
const times = Number(values.times)
const unknown = wanted.filter((name) => !RUNTIMES.some((runtime) => runtime.name === name))
if (unknown.length > 0 || !Number.isInteger(times) || times < 1) {
  const names = RUNTIMES.map(({ name }) => name).join(', ')
  process.stderr.write(
    unknown.length > 0
      ? `Unknown runtime: ${unknown.join(', ')}; expected ${names}\n`
      : `--times must be a positive integer, not ${JSON.stringify(values.times)}\n`,
  )
  process.exit(2)
}
let passed = 0
let failed = 0
const chosen = RUNTIMES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
for (const [index, runtime] of Array.from({ length: times }, () => chosen)
  .flat()
  .entries()) {
  const started = performance.now()
  const { ok, output } = runtime.test({ ...runtime, bin: install(runtime), seed: index + 1 })
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  process.stdout.write(
    `${ok ? 'ok    ' : 'FAILED'} ${runtime.name} ${runtime.version} (${seconds} s)\n`,
  )
  if (ok) {
    passed++
    continue
  }
  failed++
  process.stdout.write(`${output.slice(-20_000)}\n`)
}
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
