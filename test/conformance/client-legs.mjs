// client.mjs as a client, over HTTP, in the suite's scenarios for clients. The suite starts one process per scenario.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { authorizationScenarios } from './client-authorization.mjs'
import { CLIENT as SKILLS } from './skills-legs.mjs'
import {
  checkScored,
  folder,
  judgeScenario,
  print,
  problems,
  requirements,
  runSuite,
} from './suite.mjs'

/** Number of scored scenarios, as counted by the suite. */
const SCORED = { '2025-11-25': 18, '2026-07-28': 32 }
/**
 * Per scenario, the number of successful checks: the suite accepts a client that does nothing in some of them. `exit` is
 * the expected exit code of the client, if not 0; `skipped` is a check that may be skipped.
 */
const SCENARIOS = {
  '2025-11-25': {
    initialize: { checks: 1 },
    tools_call: { checks: 2 },
    'elicitation-sep1034-client-defaults': { checks: 5 },
    'sse-retry': { checks: 3 },
    'json-schema-2020-12-preservation': { checks: 9 },
    ...authorizationScenarios('2025-11-25'),
  },
  '2026-07-28': {
    tools_call: { checks: 2 },
    'request-metadata': { checks: 8 },
    'sep-2322-client-request-state': { checks: 5 },
    'http-standard-headers': { checks: 9, skipped: 'sep-2243-client-includes-standard-headers' },
    'http-custom-headers': { checks: 18 },
    'http-invalid-tool-headers': { checks: 12 },
    'json-schema-ref-no-deref': { checks: 1 },
    'json-schema-2020-12-preservation': { checks: 9 },
    ...authorizationScenarios('2026-07-28'),
  },
  backcompat: authorizationScenarios('backcompat'),
  // Of an extension: each is run by its name.
  skills: Object.fromEntries(SKILLS.map((scenario) => [scenario, { checks: 1 }])),
}
/** The exit code that the client has recorded; a client that was killed has recorded none. */
function exitCode(exits, scenario) {
  try {
    return Number(readFileSync(join(exits, encodeURIComponent(scenario)), 'utf8'))
  } catch {
    return undefined
  }
}

/** Judges one scenario; returns the number of its successful checks, and whether it passed. */
function judgeClient(revision, scenario, result, exits) {
  const name = `client ${revision} ${scenario}`
  const row = SCENARIOS[revision][scenario]
  if (row === undefined) problems.push(`${name}: it is not in SCENARIOS of client-legs.mjs`)
  const { checks: atLeast = 1, exit = 0, skipped } = row ?? {}
  const isSkipped = ({ id, status }) => status === 'SKIPPED' && id === skipped
  const { ok, checks } = judgeScenario(name, result?.checks, atLeast, isSkipped)
  const code = exitCode(exits, scenario)
  if (code === exit) return { ok, checks }
  problems.push(
    `${name}: the client exited with code ${code}, expected ${exit}: ${result?.stderr?.slice(0, 1000)}`,
  )
  return { ok: false, checks }
}

function judge(revision, results, exits) {
  const isScored = revision in SCORED
  const scored = isScored ? requirements(revision, 'client') : []
  if (isScored) checkScored(revision, 'client', scored, SCORED[revision])
  const all = new Set([...scored, ...Object.keys(SCENARIOS[revision]), ...results.keys()])
  let passed = 0
  let total = 0
  for (const scenario of all) {
    const { ok, checks } = judgeClient(revision, scenario, results.get(scenario), exits)
    total += checks
    if (ok && scored.includes(scenario)) passed++
  }
  const score = isScored ? `${passed} of ${scored.length} scored scenarios, ` : ''
  print(`client ${revision}: ${score}${all.size} scenarios in all, ${total} checks`)
}

/** The arguments of each run of the suite for a row of SCENARIOS. */
function runsOf(revision) {
  if (revision === 'skills')
    return SKILLS.map((scenario) => [
      '--scenario',
      scenario,
      '--spec-version',
      '2026-07-28',
      '--force',
    ])
  return [[revision in SCORED ? '--requirements' : '--suite', revision]]
}

/** Runs the suite with the client in `file`. */
export async function clientLegs(node, file = join(folder, 'client.mjs')) {
  for (const revision of Object.keys(SCENARIOS)) {
    const exits = mkdtempSync(join(tmpdir(), 'ccmcp-conformance-exits-'))
    try {
      const results = new Map()
      for (const own of runsOf(revision)) {
        const args = ['--command', `${process.execPath} ${file}`, ...own, '--timeout', '60000']
        const found = await runSuite(node, 'client', args, { CONFORMANCE_EXITS: exits })
        for (const [scenario, result] of found) results.set(scenario, result)
      }
      judge(revision, results, exits)
    } finally {
      rmSync(exits, { recursive: true, force: true })
    }
  }
}
