// Our server asks the official clients: by requests in handshake revisions, by input_required results
// in stateless ones.
import assert from 'node:assert/strict'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Transport2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { script } from '../harness.mjs'

const INFO = { name: 'stranger', version: '1.0.0' }
const ALL = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }
const SCHEMAS = {
  'sampling/createMessage': CreateMessageRequestSchema,
  'elicitation/create': ElicitRequestSchema,
  'roots/list': ListRootsRequestSchema,
}

export function askingChecks(versions) {
  const official = versions['@modelcontextprotocol/client']
  return [
    [`asking SDK ${official} legacy`, (t) => official2(t, undefined)],
    [`asking SDK ${official} auto`, (t) => official2(t, { mode: 'auto' })],
    [`asking SDK ${official} pinned`, (t) => official2(t, { mode: { pin: '2026-07-28' } })],
    [`asking SDK ${versions['@modelcontextprotocol/sdk']}`, official1],
  ]
}

async function official2(t, versionNegotiation) {
  const open = (capabilities) => {
    const client = new Client2(INFO, {
      capabilities,
      ...(versionNegotiation === undefined ? {} : { versionNegotiation }),
    })
    const transport = new Transport2({
      command: process.execPath,
      args: script('asking.mjs'),
      env: t.env,
    })
    const answer = (method, handler) => client.setRequestHandler(method, handler)
    return { client, transport, answer, call: (params) => client.callTool(params) }
  }
  await answerInputRequests(t, open, versionNegotiation !== undefined)
}

async function official1(t) {
  const open = (capabilities) => {
    const client = new Client1(INFO, { capabilities })
    const transport = new Transport1({
      command: process.execPath,
      args: script('asking.mjs'),
      env: t.env,
    })
    const answer = (method, handler) => client.setRequestHandler(SCHEMAS[method], handler)
    return { client, transport, answer, call: (params) => client.callTool(params) }
  }
  await answerInputRequests(t, open, false)
}

const textOf = ({ content }) => content[0].text

async function answerInputRequests(t, open, modern) {
  const { client, transport, answer, call } = open(ALL)
  const asked = []
  let action = 'accept'
  answer('elicitation/create', async ({ params }) => {
    asked.push(params.mode ?? 'form')
    return action === 'accept' && params.mode !== 'url'
      ? { action, content: { color: 'green' } }
      : { action }
  })
  answer('sampling/createMessage', async ({ params }) => {
    asked.push('sample')
    return {
      model: 'none',
      role: 'assistant',
      content: { type: 'text', text: `echo ${params.messages[0].content.text}` },
    }
  })
  answer('roots/list', async () => {
    asked.push('roots')
    return { roots: [{ uri: 'file:///work', name: 'work' }] }
  })
  t.defer(() => client.close())
  await t.must('connect', () => client.connect(transport))
  await t.step('form', async () =>
    assert.equal(textOf(await call({ name: 'form', arguments: {} })), 'green'),
  )
  await t.step('url', async () =>
    assert.equal(textOf(await call({ name: 'url', arguments: {} })), 'opened'),
  )
  await t.step('sample', async () =>
    assert.equal(textOf(await call({ name: 'sample', arguments: {} })), 'echo hello'),
  )
  await t.step('roots', async () =>
    assert.equal(textOf(await call({ name: 'roots', arguments: {} })), 'file:///work'),
  )
  await t.step('several, with a step between', async () =>
    assert.equal(textOf(await call({ name: 'several', arguments: {} })), 'green, step 1, echo hi'),
  )
  await t.step('asked for just that', async () =>
    assert.deepEqual(asked, ['form', 'url', 'sample', 'roots', 'form', 'sample']),
  )
  await t.step('declined', async () => {
    action = 'decline'
    assert.equal((await call({ name: 'form', arguments: {} })).isError, true)
  })
  await t.step('not declared', async () => {
    const bare = open({})
    t.defer(() => bare.client.close())
    await bare.client.connect(bare.transport)
    const outcome = await bare.call({ name: 'sample', arguments: {} }).catch((error) => error)
    if (modern) assert.equal(outcome.code, -32021)
    else assert.equal(outcome.isError, true)
  })
}
