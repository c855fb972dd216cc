// The suite's scenarios for the Skills extension. They belong to no revision, so each is run by its name, and judged here.
import { judgeScenario, print, runSuite } from './suite.mjs'

/** Number of checks per scenario, and the checks that the suite skips where results have no caching hints. */
const SERVER = {
  'sep-2640-skills-enumeration': { '2025-11-25': 30, '2026-07-28': 32 },
  'sep-2640-skills-directory': { '2025-11-25': 7, '2026-07-28': 7 },
  'sep-2640-skills-manifest': { '2025-11-25': 6, '2026-07-28': 6 },
}
const CACHING = new Set([
  'sep-2640-skills-list-cache-attributes',
  'sep-2640-skills-get-cache-attributes',
])

export const CLIENT = [
  'sep-2640-client-no-prefetch',
  'sep-2640-client-verify-digest',
  'sep-2640-client-verify-size',
  'sep-2640-client-verify-frontmatter',
]

/** Runs the scenarios for servers against a URL. */
export async function skillsServerLegs(transport, url, node) {
  for (const revision of ['2025-11-25', '2026-07-28']) {
    let passed = 0
    let checks = 0
    for (const [scenario, { [revision]: expected }] of Object.entries(SERVER)) {
      const args = ['--url', url, '--scenario', scenario, '--spec-version', revision, '--force']
      const results = await runSuite(node, 'server', args)
      const isSkipped = ({ id, status }) =>
        revision === '2025-11-25' && status === 'SKIPPED' && CACHING.has(id)
      const name = `${transport} ${revision} ${scenario}`
      const found = judgeScenario(name, results.get(scenario)?.checks, expected, isSkipped)
      checks += found.checks
      if (found.ok) passed++
    }
    print(`${transport} server skills ${revision}: ${passed} of 3 scenarios, ${checks} checks`)
  }
}
