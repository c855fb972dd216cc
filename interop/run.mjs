// Interoperability tests: our server with other clients, our client with other and misbehaving servers.
// Installs them first; the checks themselves use stdio and loopback only.
//
//   node interop/run.mjs [words]     only the checks whose names contain all words
//   node interop/run.mjs --heavy     also hosts of several hundred megabytes
//   node interop/run.mjs --foreign   also servers in Python, Go and Rust, where those are installed
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const DEADLINE = 90_000
const LONGEST = 600

function run(command, args, cwd) {
  // On Windows npm is a .cmd file, which requires a shell.
  const { status } = spawnSync(command, args, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status === 0) return
  process.stderr.write(`interop: "${[command, ...args].join(' ')}" failed\n`)
  process.exit(1)
}

function install(folder) {
  const mark = join(folder, 'node_modules', '.interop-installed')
  if (
    existsSync(mark) &&
    statSync(mark).mtimeMs >= statSync(join(folder, 'package-lock.json')).mtimeMs
  )
    return
  process.stderr.write('interop: installing the strangers…\n')
  run(
    'npm',
    [
      'ci',
      '--include=dev',
      '--include=optional',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ],
    folder,
  )
  writeFileSync(mark, '')
}

const heavy = join(here, 'heavy')
install(here)
if (process.argv.includes('--heavy')) install(heavy)
run(process.execPath, [join(here, '..', 'scripts', 'setup.mjs')], here)

const { Skipped, Trial, messageOf, within } = await import('./harness.mjs')
const { hostChecks } = await import('./checks/hosts.mjs')
const { appChecks } = await import('./checks/apps.mjs')
const { askingChecks } = await import('./checks/asking.mjs')
const { checkChecks } = await import('./checks/check.mjs')
const { clientChecks } = await import('./checks/clients.mjs')
const { extensionChecks } = await import('./checks/extensions.mjs')
const { featureChecks } = await import('./checks/features.mjs')
const { httpChecks } = await import('./checks/http.mjs')
const { httpServerChecks } = await import('./checks/http-servers.mjs')
const { skillsChecks } = await import('./checks/skills.mjs')
const { serverChecks } = await import('./checks/servers.mjs')
const { taskChecks } = await import('./checks/tasks.mjs')
const { wrapChecks } = await import('./checks/wrap.mjs')
const { misbehaviourChecks } = await import('./checks/misbehaviour.mjs')
const { tapChecks } = await import('./checks/tap.mjs')

const versionsIn = (folder) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).devDependencies
const versions = versionsIn(here)
const OPTIONS = new Set(['--heavy', '--foreign'])
const words = process.argv.slice(2).filter((word) => !OPTIONS.has(word))
const { foreignChecks } = await import('./checks/foreign.mjs')
const checks = [
  ...hostChecks(versions, versionsIn(heavy)),
  ...wrapChecks(versions, versionsIn(heavy)),
  ...clientChecks(versions),
  ...featureChecks(versions),
  ...extensionChecks(versions),
  ...skillsChecks(versions),
  ...appChecks(versions),
  ...taskChecks(versions),
  ...askingChecks(versions),
  ...httpChecks(versions, versionsIn(heavy)),
  ...serverChecks(versions),
  ...httpServerChecks(versions),
  ...misbehaviourChecks(),
  ...tapChecks(),
  ...checkChecks(versions),
].filter(([name]) => words.every((word) => name.includes(word)))
if (process.argv.includes('--foreign')) checks.push(...foreignChecks(words))
const count = { ok: 0, FAIL: 0, skip: 0 }

function print(verdict, name, text) {
  count[verdict]++
  process.stdout.write(`${verdict.padEnd(4)} ${name}: ${text}\n`)
}

function inOneLine(text) {
  const line = text.trim().replace(/\s*\n\s*/g, ' | ')
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line
}

async function tryOut(name, check) {
  const trial = new Trial()
  const stray = (error) => trial.failures.push(`nobody caught: ${messageOf(error)}`)
  process.on('unhandledRejection', stray)
  process.on('uncaughtException', stray)
  let skipped
  try {
    await within(check(trial), DEADLINE)
  } catch (error) {
    if (error instanceof Skipped) skipped = error.message
    else trial.failures.push(messageOf(error))
  }
  await trial.end()
  process.off('unhandledRejection', stray)
  process.off('uncaughtException', stray)
  const { done, failures } = trial
  if (skipped !== undefined) print('skip', name, skipped)
  else if (failures.length === 0) print('ok', name, done.join(', '))
  else
    print(
      'FAIL',
      name,
      `${failures.map(inOneLine).join('; ')} (ok: ${done.join(', ') || 'nothing'})`,
    )
}

for (const [name, check] of checks) await tryOut(name, check)
const skips = count.skip === 0 ? '' : `, ${count.skip} skipped`
process.stdout.write(`${count.ok} passed, ${count.FAIL} failed${skips}\n`)
// Handles of a check that timed out must not keep this process alive.
process.exit(count.FAIL === 0 ? 0 : 1)
