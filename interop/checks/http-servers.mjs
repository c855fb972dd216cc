// Our client with other servers over HTTP.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { connect, http } from '../../dist/client.js'
import { freePort } from '../../scripts/free-port.mjs'
import { program, rejection, script, until } from '../harness.mjs'
import { textOf } from './observe.mjs'

const MODERN = '2026-07-28'
const HANDSHAKE = '2025-11-25'

/** The definitions that the servers in `servers/` and `foreign/` have in common. */
export const COMMON = {
  tools: ['ask', 'echo', 'fail', 'wait', 'work'],
  echo: { name: 'echo', args: { message: 'Grüße 👋\u2028' }, text: 'Grüße 👋\u2028' },
  fail: { name: 'fail', text: /As planned\./ },
  wait: { name: 'wait', begun: 'waiting', told: 'cancelled' },
  work: { name: 'work', steps: 3 },
  ask: { name: 'ask', text: /accept Ada/ },
  resource: { uri: 'note://1', text: 'a note' },
  prompt: { name: 'greet', args: { name: 'Ada' }, text: 'Hello Ada' },
  touch: { name: 'touch' },
}

const EVERYTHING = {
  tools: ['echo', 'get-sum', 'trigger-elicitation-request', 'trigger-sampling-request'],
  echo: { name: 'echo', args: { message: 'hi' }, text: 'Echo: hi' },
  fail: { name: 'get-sum', args: { a: 'one', b: 2 }, text: /expected number/i },
  wait: { name: 'trigger-long-running-operation', args: { duration: 1, steps: 1 } },
  work: { name: 'trigger-long-running-operation', args: { duration: 0.3, steps: 3 }, steps: 3 },
  ask: { name: 'trigger-elicitation-request', text: /Ada/ },
  sample: { name: 'trigger-sampling-request', args: { prompt: 'hi' }, text: /sampled/ },
  resource: { uri: 'demo://resource/dynamic/text/1', text: /./ },
  prompt: { name: 'simple-prompt', text: /./ },
}

export function httpServerChecks(versions) {
  const older = versions['@modelcontextprotocol/sdk']
  const newer = versions['@modelcontextprotocol/server']
  const name = '@modelcontextprotocol/server-everything'
  const everything = versions[name]
  const node = (args, more) => ({ command: process.execPath, args, ...more })
  return [
    [
      `HTTP server SDK ${newer}`,
      (t) => foreignHttp(t, node(script('servers/sdk-2.mjs', 'http')), MODERN, COMMON),
    ],
    [
      `HTTP server SDK ${newer}, handshake asked for`,
      // Its handshake revisions are served without sessions: it can neither ask nor notify.
      (t) =>
        foreignHttp(t, node(script('servers/sdk-2.mjs', 'http'), { pinned: true }), HANDSHAKE, {
          ...COMMON,
          ask: undefined,
          touch: undefined,
          wait: { name: 'wait', begun: 'waiting' },
        }),
    ],
    [
      `HTTP server SDK ${older}`,
      (t) => foreignHttp(t, node(script('servers/sdk-1.mjs', 'http')), HANDSHAKE, COMMON),
    ],
    [
      `HTTP server SDK ${older}, HTTP+SSE`,
      (t) => foreignHttp(t, node(script('servers/sdk-1.mjs', 'sse')), HANDSHAKE, COMMON),
    ],
    [
      `HTTP server everything ${everything}`,
      (t) =>
        foreignHttp(
          t,
          node(program(name, 'streamableHttp'), { path: '/mcp' }),
          HANDSHAKE,
          EVERYTHING,
        ),
    ],
    [
      `HTTP server everything ${everything}, HTTP+SSE`,
      (t) => foreignHttp(t, node(program(name, 'sse'), { path: '/sse' }), HANDSHAKE, EVERYTHING),
    ],
  ]
}

/** Starts a server. It prints its URL, or with `path` serves there on the port in the environment. */
async function start(t, { command, args, path, cwd }) {
  const port = path === undefined ? undefined : await freePort()
  const env = { ...process.env, ...t.env, ...(port && { PORT: String(port) }) }
  const child = spawn(command, args, { env, cwd, stdio: ['pipe', 'ignore', 'pipe'] })
  const seen = { log: '' }
  child.stderr.setEncoding('utf8').on('data', (chunk) => (seen.log += chunk))
  const exited = new Promise((resolve) => child.once('exit', resolve))
  t.defer(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const listening = path === undefined ? /serving (\S+)/ : /(?:listening|running) on port/i
  const url = await t
    .must('listen', async () => {
      await until(() => listening.test(seen.log) || child.exitCode !== null, 'it listens', 14_000)
      assert.equal(child.exitCode, null, seen.log)
    })
    .then(() =>
      path === undefined ? listening.exec(seen.log)[1] : `http://127.0.0.1:${port}${path}`,
    )
  return { url, seen }
}

const OPTIONS = {
  elicit: ({ requestedSchema: { properties = {} } = {} }) => ({
    action: 'accept',
    content: { name: 'Ada', ...('check' in properties && { check: true }) },
  }),
  sample: () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'sampled' },
  }),
  roots: () => [{ uri: 'file:///home/ada' }],
}

const collect = async (list) => {
  const items = []
  for await (const item of list) items.push(item)
  return items
}

function matches(found, expected) {
  if (typeof expected === 'string') assert.equal(found, expected)
  else assert.match(found, expected)
}

/** Connects, uses everything that the server has, and closes. */
export async function foreignHttp(t, server, revision, features) {
  const { url, seen } = await start(t, server)
  const reports = []
  const wanted = server.pinned === true ? { revision } : {}
  let client
  await t.must('connect', async () => {
    client = await connect(http(url), {
      ...OPTIONS,
      ...wanted,
      report: (report) => reports.push(report),
    })
    t.defer(() => client.close())
    assert.equal(client.revision, revision)
    return revision
  })
  await lists(t, client, features)
  await calls(t, client, features)
  if (features.wait !== undefined) await t.step('cancel', () => cancel(client, seen, features.wait))
  if (features.touch !== undefined)
    await t.step('subscribe', async () => {
      const changes = []
      const subscription = await client.subscribe(features.resource.uri, ({ uri }) =>
        changes.push(uri),
      )
      await client.callTool(features.touch.name)
      await until(() => changes.length > 0, 'the change was announced')
      assert.deepEqual(changes, [features.resource.uri])
      await subscription.unsubscribe()
    })
  await t.step('nothing to report', async () => {
    assert.deepEqual(
      reports.filter(({ level }) => level !== 'debug'),
      [],
    )
  })
  await t.step('close', async () => {
    await client.close()
    await rejection(client.callTool(features.echo.name))
  })
}

async function lists(t, client, { tools, resource, prompt }) {
  await t.step('list', async () => {
    const names = (await collect(client.tools())).map(({ name }) => name)
    for (const name of tools)
      assert.ok(names.includes(name), `${name} is missing in ${names.join(', ')}`)
    const resources = await collect(client.resources())
    await collect(client.resourceTemplates())
    const prompts = await collect(client.prompts())
    return `(${names.length}, ${resources.length}, ${prompts.length})`
  })
  await t.step('read', async () => {
    const { contents } = await client.readResource(resource.uri)
    matches(contents[0].text, resource.text)
  })
  await t.step('prompt', async () => {
    const { messages } = await client.getPrompt(prompt.name, prompt.args)
    matches(messages[0].content.text, prompt.text)
  })
}

async function calls(t, client, { echo, fail, work, ask, sample }) {
  await t.step('call', async () => {
    matches(textOf(await client.callTool(echo.name, echo.args)), echo.text)
  })
  await t.step('tool error', async () => {
    const result = await client.callTool(fail.name, fail.args)
    assert.equal(result.isError, true)
    matches(textOf(result), fail.text)
  })
  await t.step('progress', async () => {
    const progress = []
    await client.callTool(work.name, work.args, { onProgress: (each) => progress.push(each) })
    assert.deepEqual(
      progress.map((each) => `${each.progress}/${each.total}`),
      Array.from({ length: work.steps }, (_, index) => `${index + 1}/${work.steps}`),
    )
  })
  if (ask !== undefined)
    await t.step('elicitation', async () => {
      matches(textOf(await client.callTool(ask.name)), ask.text)
    })
  if (sample !== undefined)
    await t.step('sampling', async () => {
      matches(textOf(await client.callTool(sample.name, sample.args)), sample.text)
    })
}

async function cancel(client, seen, { name, args, begun, told }) {
  const controller = new AbortController()
  const pending = rejection(client.callTool(name, args, { signal: controller.signal }))
  if (begun !== undefined) await until(() => seen.log.includes(begun), 'the tool has begun')
  controller.abort(new Error('enough'))
  assert.equal((await pending).message, 'enough')
  if (told === undefined) return '(tool not told)'
  await until(() => seen.log.includes(told), 'the tool was told')
}
