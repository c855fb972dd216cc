// Other clients with our server.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Transport2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { newerNode, rejection, script, until } from '../harness.mjs'

const INFO = { name: 'stranger', version: '1.0.0' }
const TOOLS = ['echo', 'sum', 'fail', 'wait', 'work']

export function clientChecks(versions) {
  const official = versions['@modelcontextprotocol/client']
  const older = versions['@modelcontextprotocol/sdk']
  return [
    [`client SDK ${official} legacy`, (t) => official2(t, undefined, '2025-11-25')],
    [`client SDK ${official} auto`, (t) => official2(t, { mode: 'auto' }, '2026-07-28')],
    [
      `client SDK ${official} pinned`,
      (t) => official2(t, { mode: { pin: '2026-07-28' } }, '2026-07-28'),
    ],
    [`client SDK ${older}`, official1],
    [`client AI SDK ${versions['@ai-sdk/mcp']}`, aiSdk],
  ]
}

async function official2(t, versionNegotiation, revision) {
  const transport = new Transport2({
    command: process.execPath,
    args: script('server.mjs'),
    env: t.env,
    stderr: 'pipe',
  })
  const client = new Client2(INFO, versionNegotiation === undefined ? {} : { versionNegotiation })
  await official(t, {
    client,
    transport,
    revision,
    call: (params, options) => client.callTool(params, options),
  })
}

async function official1(t) {
  const transport = new Transport1({
    command: process.execPath,
    args: script('server.mjs'),
    env: t.env,
    stderr: 'pipe',
  })
  const client = new Client1(INFO)
  const call = (params, options) => client.callTool(params, undefined, options)
  await official(t, { client, transport, revision: '2025-11-25', call })
}

/** `end` stops a server that the client has not started itself. */
export async function official(
  t,
  { client, transport, stderr = transport.stderr, revision, call, end = () => {} },
) {
  let log = ''
  const problems = []
  stderr.on('data', (chunk) => (log += String(chunk)))
  Object.assign(client, { onerror: (error) => problems.push(error.message) })
  t.defer(() => client.close())
  await t.must('connect', () => client.connect(transport))
  await t.step('revision', async () => {
    await call({ name: 'echo', arguments: { message: '' } })
    await until(() => log.includes('called in'), 'the tool was called')
    assert.match(log, new RegExp(`called in ${revision}\n`))
    if (client.getNegotiatedProtocolVersion)
      assert.equal(client.getNegotiatedProtocolVersion(), revision)
    assert.deepEqual(client.getServerVersion(), { name: 'interop', version: '1.0.0' })
    return revision
  })
  await t.step('list', async () => {
    const { tools } = await client.listTools()
    assert.deepEqual(
      tools.map(({ name }) => name),
      TOOLS,
    )
  })
  await t.step('call', async () => {
    const { content, isError } = await call({
      name: 'echo',
      arguments: { message: 'Grüße 👋\u2028' },
    })
    assert.deepEqual(content, [{ type: 'text', text: 'Grüße 👋\u2028' }])
    assert.ok(!isError)
  })
  // After tools/list the client validates structured results.
  await t.step('structured', async () => {
    const { structuredContent } = await call({ name: 'sum', arguments: { a: 2, b: 3 } })
    assert.deepEqual(structuredContent, { sum: 5 })
  })
  await t.step('200 concurrent calls', async () => {
    const results = await Promise.all(
      Array.from({ length: 200 }, (_, a) => call({ name: 'sum', arguments: { a, b: 1 } })),
    )
    assert.deepEqual(
      results.map(({ structuredContent }) => structuredContent.sum),
      results.map((_, a) => a + 1),
    )
  })
  await t.step('tool error', async () => {
    const { content, isError } = await call({ name: 'fail', arguments: {} })
    assert.deepEqual(
      { content, isError },
      { content: [{ type: 'text', text: 'As planned.' }], isError: true },
    )
  })
  await t.step('unknown tool', async () => {
    const error = await rejection(call({ name: 'nope', arguments: {} }))
    assert.equal(error.code, -32602)
    assert.match(error.message, /Unknown tool: nope/)
  })
  await t.step('cancel', async () => {
    const controller = new AbortController()
    const pending = rejection(call({ name: 'wait', arguments: {} }, { signal: controller.signal }))
    await until(() => log.includes('waiting'), 'the tool has begun')
    controller.abort('enough')
    await pending
    await until(() => log.includes('cancelled'), 'the tool was told')
    await call({ name: 'echo', arguments: { message: 'still here' } })
  })
  await t.step('progress', async () => {
    const seen = []
    await call({ name: 'work', arguments: {} }, { onprogress: (progress) => seen.push(progress) })
    assert.deepEqual(
      seen.map(({ progress, total, message }) => `${progress}/${total} ${message}`),
      ['1/3 step 1', '2/3 step 2', '3/3 step 3'],
    )
  })
  await t.step('close', async () => {
    await client.close()
    end()
    await t.gone()
    // SDK 1.x reports closing its own stream as an error.
    assert.deepEqual(
      problems.filter((problem) => !problem.includes('AbortError')),
      [],
    )
  })
}

async function aiSdk(t) {
  const child = spawn(newerNode(), [...script('checks/ai-sdk.mjs'), process.execPath], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...t.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.defer(async () => child.kill('SIGKILL'))
  const output = (await child.stdout.setEncoding('utf8').toArray()).join('')
  const { done, failures } = JSON.parse(output)
  t.done.push(...done)
  t.failures.push(...failures)
}
