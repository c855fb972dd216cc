// Our client with other servers.
import assert from 'node:assert/strict'
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { RpcError } from '../../dist/client.js'
import { program, rejection, script, until } from '../harness.mjs'
import { UNHURRIED, listOf, observe, textOf } from './observe.mjs'

const NEWEST = '2026-07-28'
const NEWEST_HANDSHAKE = '2025-11-25'

/** The tools of the servers in `servers/`. */
const OURS = {
  tools: ['echo', 'fail', 'wait', 'work'],
  echo: { name: 'echo', args: { message: 'Grüße 👋\u2028' }, text: 'Grüße 👋\u2028' },
  fail: { name: 'fail', text: /As planned\./ },
  slow: { name: 'wait', begun: 'waiting', told: 'cancelled' },
  work: { name: 'work', steps: 3 },
}
const SUM = { name: 'sum', args: { a: 2, b: 3 }, value: { sum: 5 } }

const EVERYTHING = {
  tools: ['echo', 'get-sum', 'get-structured-content', 'trigger-long-running-operation'],
  echo: { name: 'echo', args: { message: 'hi' }, text: 'Echo: hi' },
  structured: { name: 'get-structured-content', args: { location: 'New York' } },
  fail: { name: 'get-sum', args: { a: 'one', b: 2 }, text: /expected number/i },
  slow: { name: 'trigger-long-running-operation', args: { duration: 1, steps: 1 } },
  work: { name: 'trigger-long-running-operation', args: { duration: 0.3, steps: 3 }, steps: 3 },
}

export function serverChecks(versions) {
  const version = (name) => versions[name]
  const official = version('@modelcontextprotocol/server')
  const everything = '@modelcontextprotocol/server-everything'
  const filesystem = '@modelcontextprotocol/server-filesystem'
  return [
    [
      `server SDK ${official}`,
      (t) => foreign(t, script('servers/sdk-2.mjs'), NEWEST, { ...OURS, structured: SUM }),
    ],
    [`server SDK ${official}, handshake asked for`, (t) => insisted(t, '2025-06-18')],
    [`server SDK ${official}, slow to start`, slowToStart],
    [
      `server SDK ${version('@modelcontextprotocol/sdk')}`,
      (t) =>
        foreign(t, script('servers/sdk-1.mjs'), NEWEST_HANDSHAKE, { ...OURS, structured: SUM }),
    ],
    [
      `server tmcp ${version('tmcp')}`,
      (t) =>
        foreign(t, script('servers/tmcp.mjs'), NEWEST, {
          ...OURS,
          structured: SUM,
          slow: { name: 'wait', begun: 'waiting' },
        }),
    ],
    [
      `server fastmcp ${version('fastmcp')}`,
      (t) => foreign(t, script('servers/fastmcp.mjs'), NEWEST_HANDSHAKE, OURS),
    ],
    [
      `server everything ${version(everything)}`,
      (t) => foreign(t, program(everything), NEWEST_HANDSHAKE, EVERYTHING),
    ],
    [`server filesystem ${version(filesystem)}`, (t) => files(t, filesystem)],
  ]
}

async function foreign(t, args, revision, { tools, echo, structured, fail, slow, work }) {
  const server = observe(t, args)
  const { seen } = server
  let client
  await t.must('connect', async () => {
    client = await server.connect(UNHURRIED)
    assert.equal(client.revision, revision)
    assert.equal(typeof client.server?.name, 'string')
    assert.ok(client.capabilities.tools)
    return revision
  })
  await t.step('list', async () => {
    const names = (await listOf(client)).map(({ name }) => name)
    for (const name of tools)
      assert.ok(names.includes(name), `${name} is missing in ${names.join(', ')}`)
    return `(${names.length})`
  })
  await t.step('call', async () => {
    const result = await client.callTool(echo.name, echo.args)
    assert.equal(textOf(result), echo.text)
    assert.ok(!result.isError)
  })
  if (structured !== undefined) {
    await t.step('structured', async () => {
      const { structuredContent } = await client.callTool(structured.name, structured.args)
      assert.equal(typeof structuredContent, 'object')
      if (structured.value !== undefined) assert.deepEqual(structuredContent, structured.value)
    })
  }
  await t.step('tool error', async () => {
    const result = await client.callTool(fail.name, fail.args)
    assert.equal(result.isError, true)
    assert.match(textOf(result), fail.text)
  })
  await t.step('unknown tool', async () => {
    // Some servers return a protocol error, others an error result.
    try {
      const result = await client.callTool('nope')
      assert.equal(result.isError, true)
      return 'as result'
    } catch (error) {
      assert.ok(error instanceof RpcError, String(error))
      return String(error.code)
    }
  })
  await t.step('unknown method', async () => {
    const error = await rejection(client.request('nope/nope'))
    assert.ok(error instanceof RpcError, String(error))
    assert.equal(error.code, -32601)
  })
  if (slow !== undefined) await t.step('cancel', () => cancel(client, seen, slow))
  await t.step('progress', async () => {
    const progress = []
    await client.callTool(work.name, work.args, { onProgress: (each) => progress.push(each) })
    assert.deepEqual(
      progress.map(({ progress, total }) => `${progress}/${total}`),
      Array.from({ length: work.steps }, (_, i) => `${i + 1}/${work.steps}`),
    )
  })
  await t.step('nothing to report', async () => {
    const reports = seen.reports.filter(({ level }) => level !== 'debug')
    assert.deepEqual(reports, [])
  })
  await closeAndReturn(t, server, client, revision)
}

async function cancel(client, seen, { name, args, begun, told }) {
  const controller = new AbortController()
  const pending = rejection(client.callTool(name, args, { signal: controller.signal }))
  if (begun !== undefined) await until(() => seen.log.includes(begun), 'the tool has begun')
  controller.abort(new Error('enough'))
  assert.equal((await pending).message, 'enough')
  assert.ok(seen.out.includes('notifications/cancelled'), 'the server is told')
  if (told === undefined) return '(tool not told)'
  await until(() => seen.log.includes(told), 'the tool was told')
}

/** The process exits with the connection; the second connection reuses the known opening. */
async function closeAndReturn(t, server, client, revision) {
  await t.step('close', async () => {
    const begin = Date.now()
    assert.equal(t.pids().length, 1, 'one process was started')
    await client.close()
    await t.gone(0)
    return `after ${Date.now() - begin} ms`
  })
  await t.step('again', async () => {
    server.seen.out.length = 0
    const second = await server.connect(UNHURRIED)
    assert.equal(second.revision, revision)
    // Without a handshake, capabilities come from server/discover only.
    const expected =
      revision === NEWEST ? ['server/discover'] : ['initialize', 'notifications/initialized']
    assert.deepEqual(server.seen.out, expected)
    await second.close()
    await t.gone(0)
    return revision === NEWEST ? 'without handshake' : 'without probe'
  })
}

/** Requests an older revision from a server that supports both: no probe is sent. */
async function insisted(t, revision) {
  const server = observe(t, script('servers/sdk-2.mjs'))
  const client = await t.must('connect', () => server.connect({ revision }))
  assert.deepEqual(server.seen.out, ['initialize', 'notifications/initialized'])
  assert.equal(client.revision, revision)
  await t.step(revision, async () => {
    assert.equal(textOf(await client.callTool('echo', { message: 'hi' })), 'hi')
  })
}

/** The server starts slowly: probe and initialize are both pending, and the response to the probe is late. */
async function slowToStart(t) {
  const server = observe(t, script('servers/sdk-2.mjs', '1500'))
  let client
  await t.must('connect', async () => {
    client = await server.connect({ probeTimeout: 500 })
    return client.revision
  })
  await t.step('call', async () => {
    assert.equal(textOf(await client.callTool('echo', { message: 'hi' })), 'hi')
  })
}

async function files(t, name) {
  const folder = t.path('files')
  mkdirSync(folder)
  writeFileSync(`${folder}/hello.txt`, 'Grüße')
  const server = observe(t, program(name, realpathSync(folder)))
  let client
  await t.must('connect', async () => {
    client = await server.connect(UNHURRIED)
    assert.equal(client.revision, NEWEST_HANDSHAKE)
    return client.revision
  })
  await t.step('list', async () => {
    const tools = await listOf(client)
    assert.ok(tools.some(({ name }) => name === 'read_text_file'))
    return `(${tools.length})`
  })
  await t.step('call', async () => {
    const result = await client.callTool('read_text_file', {
      path: `${realpathSync(folder)}/hello.txt`,
    })
    assert.equal(textOf(result), 'Grüße')
  })
  await t.step('tool error', async () => {
    const result = await client.callTool('read_text_file', { path: '/etc/hostname' })
    assert.equal(result.isError, true)
    assert.match(textOf(result), /Access denied/)
  })
  await closeAndReturn(t, server, client, NEWEST_HANDSHAKE)
}
