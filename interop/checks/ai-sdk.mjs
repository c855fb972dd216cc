// The AI SDK client with our server. A separate program, since it requires a newer Node.
// The first argument is the Node that runs the server. Prints the results as JSON.
import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createMCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as Transport } from '@ai-sdk/mcp/mcp-stdio'
import { Trial, messageOf, rejection, script, until } from '../harness.mjs'

const t = new Trial()
try {
  await run(process.argv[2])
} catch (error) {
  t.failures.push(messageOf(error))
}
await t.end()
process.stdout.write(JSON.stringify({ done: t.done, failures: t.failures }))

async function run(node) {
  const log = () => readFileSync(t.path('stderr'), 'utf8')
  const stderr = openSync(t.path('stderr'), 'w')
  const transport = new Transport({ command: node, args: script('server.mjs'), env: t.env, stderr })
  t.defer(async () => closeSync(stderr))
  const problems = []
  let client
  await t.must('connect', async () => {
    client = await createMCPClient({
      transport,
      onUncaughtError: (error) => problems.push(messageOf(error)),
    })
    t.defer(() => client.close())
  })
  await t.step('revision', async () => {
    await client.callTool({ name: 'echo', arguments: { message: '' } })
    assert.match(log(), /called in 2026-07-28\n/)
    assert.deepEqual(client.serverInfo, { name: 'interop', version: '1.0.0' })
    return '2026-07-28'
  })
  await t.step('list', async () => {
    const { tools } = await client.listTools()
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['echo', 'sum', 'fail', 'wait', 'work'],
    )
    assert.deepEqual(Object.keys(await client.tools()), ['echo', 'sum', 'fail', 'wait', 'work'])
  })
  await t.step('call', async () => {
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'Grüße 👋' } })
    assert.deepEqual(content, [{ type: 'text', text: 'Grüße 👋' }])
  })
  await t.step('structured', async () => {
    const { structuredContent } = await client.callTool({ name: 'sum', arguments: { a: 2, b: 3 } })
    assert.deepEqual(structuredContent, { sum: 5 })
  })
  await t.step('tool error', async () => {
    const { content, isError } = await client.callTool({ name: 'fail', arguments: {} })
    assert.deepEqual(
      { content, isError },
      { content: [{ type: 'text', text: 'As planned.' }], isError: true },
    )
  })
  await t.step('unknown tool', async () => {
    const error = await rejection(client.callTool({ name: 'nope', arguments: {} }))
    assert.match(error.message, /Unknown tool: nope/)
  })
  // This client does not send notifications/cancelled; only test that the connection stays usable.
  await t.step('cancel (not sent)', async () => {
    const controller = new AbortController()
    const pending = rejection(
      client.callTool({ name: 'wait', arguments: {}, options: { signal: controller.signal } }),
    )
    await until(() => log().includes('waiting'), 'the tool has begun')
    controller.abort(new Error('enough'))
    await pending
    await client.callTool({ name: 'echo', arguments: { message: 'still here' } })
  })
  await t.step('close', async () => {
    assert.deepEqual(problems, []) // it later reports the response to the cancelled call as an error
    await client.close()
    await t.gone()
  })
}
