// The official client uses the extension of examples/extension.mjs.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { rejection, script, until } from '../harness.mjs'

const EXAMPLE = fileURLToPath(new URL('../../examples/extension.mjs', import.meta.url))
const ID = 'com.example/quota'
const CHANGED = 'notifications/quota/changed'
const GET = { method: 'quota/get', params: { unit: 'calls' } }
/** A Standard Schema that accepts everything. */
const ANY = { '~standard': { version: 1, vendor: 'interop', validate: (value) => ({ value }) } }

export function extensionChecks(versions) {
  const official = versions['@modelcontextprotocol/client']
  return [
    [`extension SDK ${official} declared`, declared],
    [`extension SDK ${official} not declared`, notDeclared],
  ]
}

/** Starts the example, and connects the official client. */
async function open(t, capabilities) {
  const client = new Client(
    { name: 'stranger', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' }, capabilities },
  )
  t.defer(() => client.close())
  await t.must('connect', () =>
    client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: script('../dist/cli.js', 'serve', EXAMPLE),
        env: t.env,
        stderr: 'pipe',
      }),
    ),
  )
  return client
}

const greet = (client) => client.callTool({ name: 'greet', arguments: {} })

async function declared(t) {
  const client = await open(t, { extensions: { [ID]: {} } })
  await t.step('capabilities', async () =>
    assert.deepEqual(client.getServerCapabilities().extensions, { [ID]: { limit: 1 } }),
  )
  await t.step('method', async () => assert.equal((await client.request(GET, ANY)).used, 0))
  await t.step('listen field', async () => {
    const heard = []
    client.setNotificationHandler(CHANGED, { params: ANY }, ({ used }) => heard.push(used))
    await client.listen({ quotaChanged: true })
    assert.equal((await greet(client)).content[0].text, 'Hello')
    await until(() => heard.length > 0, 'the notification arrives')
    assert.deepEqual(heard, [1])
  })
  await t.step('result type', async () =>
    assert.match((await rejection(greet(client))).message, /quota_exceeded/),
  )
}

async function notDeclared(t) {
  const client = await open(t, {})
  await t.step('method', async () =>
    assert.equal((await rejection(client.request(GET, ANY))).code, -32021),
  )
  await t.step('listen field', async () =>
    assert.equal((await rejection(client.listen({ quotaChanged: true }))).code, -32021),
  )
  await t.step('tools', async () => {
    for (let calls = 0; calls < 3; calls++)
      assert.equal((await greet(client)).content[0].text, 'Hello')
  })
}
