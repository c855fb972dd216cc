// Runs the official conformance suite: its scenarios for servers against the
// fixture in test/conformance/, over HTTP and over stdio, and its scenarios for
// clients with the client there. Passes if every expected scenario ran with its
// full number of checks, without failures and warnings, if the fixture's texts
// are those that the suite specifies (which it does not compare itself), and if
// each client exited as expected (which it does not check either).
//
//   node scripts/conformance.mjs [http|stdio|client]
//   node scripts/conformance.mjs client FILE    with another client
import { join } from 'node:path'
import { clientLegs } from '../test/conformance/client-legs.mjs'
import { serverLegs } from '../test/conformance/server-legs.mjs'
import { newerNode, print, problems, root, run } from '../test/conformance/suite.mjs'

const LEGS = {
  http: (node) => serverLegs('http', 'http.mjs', node),
  stdio: (node) => serverLegs('stdio', 'stdio-adapter.mjs', node),
  client: (node) => clientLegs(node, file),
}

const [only, file] = process.argv.slice(2)
if (only !== undefined && LEGS[only] === undefined)
  throw new Error(`Unknown argument "${only}"; expected ${Object.keys(LEGS).join(', ')}`)
run(process.execPath, [join(root, 'scripts', 'setup.mjs')], root)
const node = newerNode()
for (const [name, leg] of Object.entries(LEGS))
  if (only === undefined || only === name) await leg(node)
for (const problem of problems) print(`FAILED ${problem}`)
print(problems.length === 0 ? 'conformance: passed' : `conformance: ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
