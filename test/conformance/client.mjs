// The client of the official conformance suite's scenarios: `node client.mjs URL`. The suite names the scenario and the
// protocol revision in the environment. Unknown scenarios end with exit code 1.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REFUSED, authorizerOf, useTool } from './client-authorization.mjs'
import { skillsScenario } from './client-skills.mjs'

const {
  MCP_CONFORMANCE_SCENARIO: scenario = '',
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision = '2025-11-25',
  MCP_CONFORMANCE_CONTEXT: context = '{}',
  CONFORMANCE_EXITS: exits,
} = process.env

// The suite ignores exit codes.
process.on('exit', (code) => {
  if (exits !== undefined) writeFileSync(join(exits, encodeURIComponent(scenario)), String(code))
})

/** What the client does in each scenario, once it is connected. */
const SCENARIOS = {
  // Its server has no tools.
  initialize: (client) => client.request('tools/list'),

  async tools_call(client) {
    await namesOf(client.tools())
    const { content } = await client.callTool('add_numbers', { a: 2, b: 40 })
    expect(/42/.test(JSON.stringify(content)), 'add_numbers returns the sum')
  },

  async 'elicitation-sep1034-client-defaults'(client) {
    const { isError } = await client.callTool('test_client_elicitation_defaults')
    expect(isError !== true, 'the tool accepts the elicitation')
  },

  async 'sse-retry'(client) {
    const { content } = await client.callTool('test_reconnection')
    expect(content.length > 0, 'the result arrives after the stream was closed')
  },

  // Its server has no tools, and refuses the first request with −32022.
  'request-metadata': (client) => client.request('tools/list'),

  async 'sep-2322-client-request-state'(client) {
    for (const tool of ['echo_state', 'no_state', 'unrelated', 'no_result_type'])
      await client.callTool(`test_mrtr_${tool}`)
  },

  async 'http-standard-headers'(client) {
    for (const name of await namesOf(client.tools())) await client.callTool(name)
    for await (const { uri } of client.resources()) await client.readResource(uri)
    for (const name of await namesOf(client.prompts())) await client.getPrompt(name)
  },

  async 'http-custom-headers'(client) {
    await namesOf(client.tools())
    for (const { name, arguments: args } of JSON.parse(context).toolCalls)
      await client.callTool(name, args)
  },

  async 'http-invalid-tool-headers'(client) {
    for (const name of await namesOf(client.tools())) await client.callTool(name, { region: 'eu' })
  },

  'json-schema-ref-no-deref': (client) => namesOf(client.tools()),

  async 'json-schema-2020-12-preservation'(client) {
    for await (const { name, inputSchema } of client.tools())
      if (name === 'json_schema_2020_12_tool')
        await client.callTool('json_schema_echo', { schema: inputSchema })
  },
}

async function namesOf(list) {
  const names = []
  for await (const { name } of list) names.push(name)
  expect(names.length > 0, 'the list is not empty')
  return names
}

function expect(condition, what) {
  if (!condition) throw new Error(`Expected: ${what}`)
}

/** Accepts a form with the defaults that the server gives, as a user who changes nothing; confirms what has none. */
function elicit({ requestedSchema = {} }) {
  const fields = Object.entries(requestedSchema.properties ?? {})
  const content = fields.map(([name, { default: value = true }]) => [name, value])
  return { action: 'accept', content: Object.fromEntries(content) }
}

const authorizer = await authorizerOf(scenario, context)
const skills = await skillsScenario(scenario)
const run = SCENARIOS[scenario] ?? skills?.run ?? (authorizer === undefined ? undefined : useTool)
if (run === undefined) {
  process.stderr.write(`Unknown scenario: ${scenario}\n`)
  process.exit(1)
}
const { connect, http } = await import('../../dist/client.js')

async function runScenario() {
  const client = await connect(http(process.argv.at(-1), authorizer && { authorizer }), {
    elicit,
    sample: () => ({ model: 'none', role: 'assistant', content: { type: 'text', text: '…' } }),
    roots: () => [],
    extensions: skills?.extensions ?? [],
  })
  try {
    // The client finds out what the server supports; one of the servers chooses an earlier revision.
    const modern = client.revision === '2026-07-28'
    expect(
      modern === (revision === '2026-07-28'),
      `a revision as ${revision}, got ${client.revision}`,
    )
    await run(client)
  } finally {
    await client.close()
  }
}

const refusal = REFUSED.get(scenario)
if (refusal === undefined) await runScenario()
else {
  const error = await runScenario().then(
    () => undefined,
    (thrown) => thrown,
  )
  expect(refusal.test(String(error)), `an error that matches ${refusal}, got ${error}`)
}
