// The fixture as a server, over HTTP and over stdio, in the suite's scenarios for servers.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { skillsServerLegs } from './skills-legs.mjs'
import {
  checkScored,
  folder,
  judgeScenario,
  print,
  problems,
  requirements,
  runSuite,
} from './suite.mjs'
import { compareTexts } from './texts.mjs'

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

function judge(transport, revision, results) {
  const scored = requirements(revision, 'server')
  checkScored(revision, 'server', scored, SCORED[revision])
  const expected = new Set([...scored, ...Object.keys(CHECKS[revision])])
  const excluded = []
  let passed = 0
  let checks = 0
  for (const scenario of new Set([...expected, ...results.keys()])) {
    if (SKIPPED.has(scenario) || (transport === 'stdio' && ABOUT_HTTP.has(scenario))) {
      excluded.push(scenario)
      continue
    }
    const ignored = (transport === 'stdio' ? CHECKS_ABOUT_HTTP[scenario] : undefined) ?? []
    excluded.push(...ignored)
    const found = judgeScenario(
      `${transport} ${revision} ${scenario}`,
      results.get(scenario)?.checks,
      (CHECKS[revision][scenario] ?? 2) - ignored.length,
      ({ id }) => ignored.includes(id),
    )
    checks += found.checks
    if (found.ok && scored.includes(scenario)) passed++
  }
  const all = scored.filter((scenario) => !excluded.includes(scenario)).length
  print(
    `${transport} server ${revision}: ${passed} of ${all} scored scenarios, ${checks} checks; excluded: ${excluded.join(', ') || 'none'}`,
  )
}

/** Starts the file, which prints the URL of the fixture, and runs the suite against it. */
export async function serverLegs(transport, file, node) {
  const subject = await start(file)
  try {
    for (const revision of Object.keys(SCORED)) {
      const args = ['--url', subject.url, '--requirements', revision]
      judge(transport, revision, await runSuite(node, 'server', args))
    }
    await skillsServerLegs(transport, subject.url, node)
    for (const [name, difference] of await compareTexts(subject.url))
      problems.push(`${transport} ${name}: ${difference}`)
  } finally {
    await subject.end()
  }
}
