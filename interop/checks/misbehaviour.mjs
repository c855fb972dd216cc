// Our client with misbehaving servers.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChannelClosedError, ConnectionError } from '../../dist/client.js'
import { isAlive, rejection, script, until } from '../harness.mjs'
import { UNHURRIED, listOf, observe, textOf } from './observe.mjs'

/** Short timeouts for servers that do not respond: connecting, the probe, and exiting. */
const IMPATIENT = { timeout: 1000, probeTimeout: 300 }
const PATIENCE = 300
const HANDSHAKE = '2025-11-25'

const DISCOVERIES = {
  'error -32601': { error: { code: -32601, message: 'Method not found' } },
  'error -32602': { error: { code: -32602, message: 'Invalid request parameters', data: '' } },
  'error -32000': { error: { code: -32000, message: 'Bad Request: Server not initialized' } },
  'error -32022 naming handshakes only': {
    error: {
      code: -32022,
      message: 'Unsupported protocol version',
      data: { supported: [HANDSHAKE], requested: '2026-07-28' },
    },
  },
  'a text as result': { result: 'hello' },
  'a list as result': { result: [] },
  'null as result': { result: null },
  'an empty result': { result: {} },
  'versions that are no list': { result: { supportedVersions: '2026-07-28', capabilities: {} } },
}

/** Responses to server/discover that arrive too late. */
const LATE = JSON.stringify({
  result: {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
  },
})

export function misbehaviourChecks() {
  return [
    ['server that never answers', silent],
    ['server that exits with code 3', exits],
    ['error that says each thing once', saysOnce],
    ['server that dies of the probe', diesEarly],
    ['server that dies of the probe, slow to start', diesLate],
    ['server that writes garbage between answers', noisy],
    ['server that prints only text', (t) => printsText(t, [])],
    ['server that prints text and ends', (t) => printsText(t, ['once'])],
    ['server with Content-Length framing', contentLength],
    ['command that is not there', missingCommand],
    ['command that may not be executed', forbiddenCommand],
    ['working folder that is not there', missingFolder],
    ['module that is not there', missingModule],
    ['server with a child', (t) => withChild(t, 'ignore')],
    ['server with a child that holds the pipes', (t) => withChild(t, 'inherit')],
    ['server that crashes in a call', (t) => crashes(t, 'ignore')],
    ['server that crashes in a call while its child holds the pipes', (t) => crashes(t, 'inherit')],
    ['server that ignores end of input and SIGTERM', stubborn],
    ['host that exits without closing', exitingHost],
    ['server with huge results', huge],
    ['server that writes 5 MB to stderr first', chatty],
    ...Object.entries(DISCOVERIES).map(([name, reply]) => [
      `server that answers the probe with ${name}`,
      (t) => fallsBack(t, reply),
    ]),
    ['server that answers the probe with unknown versions only', nothingInCommon],
    ['server that answers the probe after 5 s', late],
  ]
}

async function echoes(client) {
  assert.equal(textOf(await client.callTool('echo', { message: 'hi' })), 'hi')
}

/** Expects connecting to fail with a message that matches all patterns. */
async function fails(server, options, ...patterns) {
  const error = await rejection(server.connect(options))
  assert.ok(error instanceof ConnectionError, String(error))
  for (const pattern of patterns) assert.match(error.message, pattern)
  return error
}

async function silent(t) {
  const server = observe(t, script('servers/silent.mjs'), { exitTimeout: PATIENCE })
  await t.step('error', async () => {
    const begin = Date.now()
    await fails(
      server,
      IMPATIENT,
      /No response within 1000 ms to initialize/,
      /has sent no message/,
    )
    const took = Date.now() - begin
    assert.ok(took >= 1300 && took < 4000, `it took ${took} ms`)
    return `after ${took} ms`
  })
  await t.step('gone', () => t.gone(0))
  // https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation#behavior-requirements
  await t.step('initialize not cancelled', async () => {
    const { id } = server.seen.sent.find(({ method }) => method === 'initialize')
    const cancelled = server.seen.sent.some(
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === id,
    )
    assert.ok(!cancelled, 'clients must not cancel initialize')
  })
}

async function exits(t) {
  const server = observe(t, script('servers/exits.mjs'))
  await t.step('error', async () => {
    const begin = Date.now()
    await fails(server, {}, /exited with code 3/, /no database at 127\.0\.0\.1:5432/)
    assert.ok(Date.now() - begin < 4000, 'it does not wait')
  })
}

async function saysOnce(t) {
  const server = observe(t, script('servers/exits.mjs'))
  await t.step('error', async () => {
    const { message } = await fails(server, {})
    for (const part of ['Server: ', 'exited with code 3', 'no database at']) {
      assert.equal(message.split(part).length - 1, 1, `"${part}" is to be there once:\n${message}`)
    }
  })
}

async function diesEarly(t) {
  const server = observe(t, script('servers/dies-early.mjs'))
  await t.step('connect', async () => {
    const client = await server.connect(UNHURRIED)
    assert.equal(client.revision, HANDSHAKE)
    await echoes(client)
    assert.equal(t.pids().length, 2)
    await client.close()
    return `${client.revision} in a second process`
  })
  await t.step('again', async () => {
    server.seen.out.length = 0
    const client = await server.connect()
    await echoes(client)
    assert.ok(!server.seen.out.includes('server/discover'))
    assert.equal(t.pids().length, 3)
    return 'without probe'
  })
}

/** The server reads the probe after it timed out and initialize was sent, and exits. */
async function diesLate(t) {
  const server = observe(t, script('servers/dies-early.mjs', '1500'))
  await t.step('connect', async () => {
    const client = await server.connect({ probeTimeout: 500 })
    await echoes(client)
    assert.equal(t.pids().length, 2)
    return `${client.revision} in a second process`
  })
}

async function noisy(t) {
  const server = observe(t, script('servers/noisy.mjs'))
  let client
  await t.must('connect', async () => {
    client = await server.connect()
    return client.revision
  })
  await t.step('list, call', async () => {
    assert.equal((await listOf(client)).length, 1)
    await echoes(client)
  })
  await t.step('reports', async () => {
    const reports = () => server.seen.reports.filter(({ level }) => level === 'warning')
    // Two banner lines, and seven lines around each of five messages.
    await until(() => reports().length === 37, '37 reports')
    return String(reports().length)
  })
  await t.step('unmatched responses', async () => {
    assert.ok(server.seen.reports.some(({ id }) => id === 9999))
  })
}

async function printsText(t, args) {
  const server = observe(t, script('servers/text.mjs', ...args), { exitTimeout: PATIENCE })
  await t.step('error', () =>
    fails(server, IMPATIENT, /Server is running\.\.\./, /stdout/, /console\.log/),
  )
}

async function contentLength(t) {
  await t.step('error', async () => {
    await fails(
      observe(t, script('servers/content-length.mjs', 'both'), { exitTimeout: PATIENCE }),
      IMPATIENT,
      /Content-Length framing/,
    )
  })
  await t.step('connect', async () => {
    for (const args of [['both'], []]) {
      const client = await observe(t, script('servers/content-length.mjs', ...args), {
        framing: 'content-length',
      }).connect()
      await echoes(client)
      await client.close()
    }
    return 'with framing content-length'
  })
}

async function missingCommand(t) {
  const server = observe(t, [], { command: '/nowhere/at/all/server' })
  await t.step('error', () => fails(server, {}, /ENOENT/, /absolute path/))
}

async function forbiddenCommand(t) {
  const command = t.path('server.mjs')
  writeFileSync(command, '#!/usr/bin/env node\n')
  chmodSync(command, 0o644)
  const server = observe(t, [], { command })
  await t.step('error', () => fails(server, {}, /EACCES/, /executable/))
}

async function missingFolder(t) {
  const server = observe(t, script('servers/silent.mjs'), { cwd: '/nowhere/at/all' })
  await t.step('error', () => fails(server, {}, /ENOENT/, /working directory/))
}

async function missingModule(t) {
  const server = observe(t, script('servers/not-there.mjs'))
  await t.step('error', () =>
    fails(server, {}, /exited with code 1/, /ERR_MODULE_NOT_FOUND/, /wrong path/),
  )
}

async function withChild(t, pipes) {
  const server = observe(t, script('servers/parent.mjs', pipes), { exitTimeout: PATIENCE })
  const client = await t.must('connect', () => server.connect())
  await t.step('call', () => echoes(client))
  await t.step('close', async () => {
    const begin = Date.now()
    const [parent, child] = t.pids()
    assert.ok(isAlive(parent) && isAlive(child))
    await client.close()
    await t.gone(1000)
    return `after ${Date.now() - begin} ms`
  })
}

async function crashes(t, pipes) {
  const server = observe(t, script('servers/parent.mjs', pipes), { exitTimeout: PATIENCE })
  const client = await t.must('connect', () => server.connect())
  await t.step('call rejected', async () => {
    const begin = Date.now()
    const error = await rejection(client.callTool('crash', {}, { timeout: 4000 }))
    assert.ok(error instanceof ChannelClosedError, String(error))
    assert.match(error.message, /exited with code 7/)
    return `after ${Date.now() - begin} ms`
  })
  await t.step('close', async () => {
    await client.close()
    await t.gone(1000)
  })
}

async function stubborn(t) {
  const server = observe(t, script('servers/stubborn.mjs'), { exitTimeout: PATIENCE })
  const client = await t.must('connect', () => server.connect())
  await t.step('killed', async () => {
    const begin = Date.now()
    await client.close()
    const took = Date.now() - begin
    await t.gone(0)
    assert.match(server.seen.log, /SIGTERM\? no\./)
    assert.ok(took >= 2 * PATIENCE - 20 && took < 2 * PATIENCE + 1000, `it took ${took} ms`)
    return `after ${took} ms`
  })
}

/** A program that exits also stops its servers, even those that ignore signals. */
async function exitingHost(t) {
  await t.step('gone', async () => {
    const env = { ...process.env, ...t.env }
    const host = spawn(process.execPath, script('checks/host.mjs'), {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    t.defer(async () => host.kill('SIGKILL'))
    const [code] = await once(host, 'exit')
    assert.equal(code, 0)
    assert.equal(t.pids().length, 2)
    await t.gone(1000)
  })
}

/** A DiscoverResult means a modern server: there is no fallback to `initialize`. */
async function nothingInCommon(t) {
  const reply = { result: { supportedVersions: ['2099-01-01'], capabilities: {} } }
  const server = observe(t, script('servers/discover.mjs', JSON.stringify(reply)))
  await t.step('error', () => fails(server, {}, /no protocol revision in common.*2099-01-01/))
}

async function huge(t) {
  const client = await t.must('connect', () => observe(t, script('servers/big.mjs')).connect())
  for (const megabytes of [16, 24]) {
    await t.step(`${megabytes} MB`, async () => {
      const begin = Date.now()
      const size = Buffer.byteLength(JSON.stringify(await client.callTool('big', { megabytes })))
      assert.ok(size >= megabytes * 1e6, `${size} bytes`)
      return `in ${Date.now() - begin} ms`
    })
  }
  await t.step('over the limit', async () => {
    const limited = await observe(t, script('servers/big.mjs'), { maxMessage: 1e6 }).connect()
    const error = await rejection(limited.callTool('big', { megabytes: 2 }, { timeout: 4000 }))
    assert.match(error.message, /1000000/)
    await echoes(limited)
    return 'refused'
  })
}

async function chatty(t) {
  const server = observe(t, script('servers/chatty.mjs'))
  const client = await t.must('connect', () => server.connect())
  await t.step('call', () => echoes(client))
  await t.step('stderr', async () => {
    await until(() => server.seen.log.length >= 15e6, 'all of stderr was read')
    return `${Math.round(server.seen.log.length / 1e6)} MB`
  })
}

async function fallsBack(t, reply) {
  const server = observe(t, script('servers/discover.mjs', JSON.stringify(reply)))
  await t.step('connect', async () => {
    const client = await server.connect(UNHURRIED)
    assert.equal(client.revision, HANDSHAKE)
    assert.deepEqual(server.seen.out, [
      'server/discover',
      'initialize',
      'notifications/initialized',
    ])
    await echoes(client)
    assert.equal(t.pids().length, 1)
    return client.revision
  })
}

async function late(t) {
  const server = observe(t, script('servers/discover.mjs', LATE, '5000'))
  let client
  await t.must('connect', async () => {
    client = await server.connect({ probeTimeout: 300 })
    assert.equal(client.revision, HANDSHAKE)
    return client.revision
  })
  await t.step('late response ignored', async () => {
    await until(
      () => server.seen.reports.some(({ message }) => message.includes('unknown id')),
      'the answer came',
      6000,
    )
    await sleep(50)
    assert.equal(client.revision, HANDSHAKE)
    server.seen.out.length = 0
    await echoes(client)
    assert.deepEqual(server.seen.out, ['tools/call'])
  })
}
