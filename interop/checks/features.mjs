// The official clients use every feature of our server, in handshake and stateless revisions.
import assert from 'node:assert/strict'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Transport2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { rejection, script, until } from '../harness.mjs'

const INFO = { name: 'stranger', version: '1.0.0' }
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
const NOTIFICATIONS = {
  'notifications/message': LoggingMessageNotificationSchema,
  'notifications/resources/updated': ResourceUpdatedNotificationSchema,
  'notifications/tools/list_changed': ToolListChangedNotificationSchema,
  'notifications/resources/list_changed': ResourceListChangedNotificationSchema,
  'notifications/prompts/list_changed': PromptListChangedNotificationSchema,
}

export function featureChecks(versions) {
  const official = versions['@modelcontextprotocol/client']
  return [
    [`features SDK ${official} legacy`, (t) => official2(t, undefined, false)],
    [`features SDK ${official} auto`, (t) => official2(t, { mode: 'auto' }, true)],
    [`features SDK ${official} pinned`, (t) => official2(t, { mode: { pin: '2026-07-28' } }, true)],
    [`features SDK ${versions['@modelcontextprotocol/sdk']}`, official1],
  ]
}

async function official2(t, versionNegotiation, modern) {
  const transport = new Transport2({
    command: process.execPath,
    args: script('features.mjs'),
    env: t.env,
    stderr: 'pipe',
  })
  const client = new Client2(INFO, versionNegotiation === undefined ? {} : { versionNegotiation })
  const call = (params, options) => client.callTool(params, options)
  await use(t, {
    client,
    transport,
    modern,
    call,
    on: (method, heard) => client.setNotificationHandler(method, heard),
    notFound: -32602,
  })
}

async function official1(t) {
  const transport = new Transport1({
    command: process.execPath,
    args: script('features.mjs'),
    env: t.env,
    stderr: 'pipe',
  })
  const client = new Client1(INFO)
  const call = (params, options) => client.callTool(params, undefined, options)
  const on = (method, heard) => client.setNotificationHandler(NOTIFICATIONS[method], heard)
  await use(t, { client, transport, modern: false, call, on, notFound: -32002 })
}

const named = (list) => list.map(({ name }) => name)

/** All items of a list, whether or not the client follows cursors itself. */
async function everyPage(list, member) {
  const items = []
  let cursor
  do {
    const page = await list(cursor === undefined ? undefined : { cursor })
    items.push(...page[member])
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return items
}

async function use(t, { client, transport, modern, call, on, notFound }) {
  let log = ''
  const problems = []
  const heard = []
  transport.stderr.on('data', (chunk) => (log += String(chunk)))
  Object.assign(client, { onerror: (error) => problems.push(error.message) })
  for (const method of Object.keys(NOTIFICATIONS))
    on(method, ({ params }) => void heard.push([method, params]))
  const heardOf = (method) =>
    heard.filter(([each]) => each === `notifications/${method}`).map(([, params]) => params)
  t.defer(() => client.close())
  await t.must('connect', () => client.connect(transport))
  await t.step('capabilities', async () => {
    assert.deepEqual(client.getServerCapabilities(), {
      logging: {},
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      completions: {},
    })
    assert.equal(client.getInstructions(), 'Use everything.')
  })
  await t.step('resources', async () => {
    const resources = await everyPage((params) => client.listResources(params), 'resources')
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['config://app', 'bytes://three', 'note://a', 'note://b', 'note://c'],
    )
    assert.equal(resources[0].title, 'App')
    const read = async (uri) => (await client.readResource({ uri })).contents[0]
    assert.equal((await read('config://app')).text, '{"a":1}')
    assert.equal((await read('bytes://three')).blob, 'AQL/')
    const error = await rejection(client.readResource({ uri: 'note://gone' }))
    // SDK 2 maps both codes to one.
    assert.equal(error.code, notFound)
    assert.deepEqual(error.data, { uri: 'note://gone' })
  })
  await t.step('templates', async () => {
    const { resourceTemplates } = await client.listResourceTemplates()
    assert.deepEqual(
      resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      ['note://{name}'],
    )
    assert.equal(
      (await client.readResource({ uri: 'note://x%20y' })).contents[0].text,
      'This is x y.',
    )
  })
  await t.step('prompts', async () => {
    const prompts = await everyPage((params) => client.listPrompts(params), 'prompts')
    assert.deepEqual(named(prompts), ['greet', 'p1', 'p2', 'p3', 'p4', 'p5'])
    const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Alice' } })
    assert.deepEqual(messages, [
      { role: 'user', content: { type: 'text', text: 'Greet Alice, warm.' } },
    ])
    assert.equal((await rejection(client.getPrompt({ name: 'greet', arguments: {} }))).code, -32602)
  })
  await t.step('completion', async () => {
    const complete = async (ref, name, value) =>
      (await client.complete({ ref, argument: { name, value } })).completion
    assert.deepEqual((await complete({ type: 'ref/prompt', name: 'greet' }, 'tone', 'c')).values, [
      'cool',
    ])
    assert.deepEqual(
      (await complete({ type: 'ref/resource', uri: 'note://{name}' }, 'name', 'c')).values,
      ['c', 'cc'],
    )
  })
  await t.step('pages', async () => {
    assert.deepEqual(named(await everyPage((params) => client.listTools(params), 'tools')), [
      'sum',
      'talk',
      'change',
      'fail',
      'wait',
      'work',
    ])
    assert.equal((await rejection(client.listTools({ cursor: 'made up' }))).code, -32602)
  })
  await t.step('structured', async () => {
    assert.deepEqual((await call({ name: 'sum', arguments: { a: 2, b: 3 } })).structuredContent, {
      sum: 5,
    })
  })
  await t.step('log', async () => {
    await call({ name: 'talk', arguments: {} })
    if (!modern) await client.setLoggingLevel('debug')
    await call({
      name: 'talk',
      arguments: {},
      ...(modern ? { _meta: { [LOG_LEVEL]: 'debug' } } : {}),
    })
    const expected = modern ? ['debug', 'warning'] : ['warning', 'debug', 'warning']
    await until(() => heardOf('message').length >= expected.length, 'log messages')
    assert.deepEqual(
      heardOf('message').map(({ level }) => level),
      expected,
    )
    assert.deepEqual(heardOf('message').at(-1).data, { high: true })
    if (modern) assert.notEqual((await rejection(client.setLoggingLevel('debug'))).message, '')
  })
  await t.step('progress', async () => {
    const seen = []
    await call(
      { name: 'work', arguments: {} },
      {
        onprogress: ({ progress, total, message }) => seen.push(`${progress}/${total} ${message}`),
      },
    )
    assert.deepEqual(seen, ['1/3 step 1', '2/3 step 2', '3/3 step 3'])
  })
  await t.step('cancel', async () => {
    const controller = new AbortController()
    const pending = rejection(call({ name: 'wait', arguments: {} }, { signal: controller.signal }))
    await until(() => log.includes('waiting'), 'the tool has begun')
    controller.abort('enough')
    await pending
    await until(() => log.includes('cancelled'), 'the tool was told')
  })
  let subscription
  await t.step('changes', async () => {
    if (modern) {
      subscription = await client.listen({
        toolsListChanged: true,
        resourceSubscriptions: ['config://app'],
      })
      assert.deepEqual(subscription.honoredFilter, {
        toolsListChanged: true,
        resourceSubscriptions: ['config://app'],
      })
    } else await client.subscribeResource({ uri: 'config://app' })
    await call({ name: 'change', arguments: {} })
    await until(
      () => heardOf('tools/list_changed').length === 1 && heardOf('resources/updated').length === 1,
      'a change was told',
    )
    assert.equal(heardOf('resources/updated')[0].uri, 'config://app')
    assert.ok(
      named(await everyPage((params) => client.listTools(params), 'tools')).includes('extra'),
    )
  })
  await t.step('unsubscribe', async () => {
    if (modern) await subscription.close()
    else await client.unsubscribeResource({ uri: 'config://app' })
    await call({ name: 'change', arguments: {} })
    await call({ name: 'sum', arguments: { a: 1, b: 1 } })
    assert.equal(heardOf('resources/updated').length, 1)
  })
  if (modern) await t.step('end of a stream', () => endOfStream(t, client))
  await t.step('close', async () => {
    await client.close()
    await t.gone()
    assert.deepEqual(problems, [])
  })
}

/** On shutdown the server ends its streams first, so that the client sees a graceful end. */
async function endOfStream(t, client) {
  const last = await client.listen({ toolsListChanged: true })
  const pid = t.pids().at(-1)
  process.kill(pid, 'SIGTERM')
  assert.equal(await last.closed, 'graceful')
}
