// The official client for tasks uses our server, over stdio and over HTTP.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import {
  createTaskSessionFromClient,
  resultFromTaskOutcome,
} from '@modelcontextprotocol/ext-tasks/client'
import { rejection, script, until } from '../harness.mjs'

const INFO = { name: 'stranger', version: '1.0.0' }
const CAPABILITIES = {
  elicitation: { form: {} },
  extensions: { 'io.modelcontextprotocol/tasks': {} },
}
const VERSION = '2026-07-28'

export function taskChecks(versions) {
  const name = `tasks ext-tasks ${versions['@modelcontextprotocol/ext-tasks']}`
  return [
    [`${name} over stdio`, (t) => official(t, stdioTransport(t))],
    [`${name} over HTTP`, async (t) => official(t, await httpTransport(t))],
  ]
}

function stdioTransport(t) {
  return new StdioClientTransport({
    command: process.execPath,
    args: script('tasks.mjs'),
    env: t.env,
    stderr: 'pipe',
  })
}

/** Starts our server at a URL. */
export async function taskServer(t) {
  const child = spawn(process.execPath, script('tasks.mjs', 'http'), {
    env: { ...process.env, ...t.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.defer(async () => child.kill())
  const { url } = await t.must('start', async () => {
    for await (const line of createInterface({ input: child.stdout })) return { url: line }
  })
  return url
}

async function httpTransport(t) {
  return new StreamableHTTPClientTransport(new URL(await taskServer(t)))
}

/** Sends requests besides the client, which does not let the messages of tasks pass; as the package asks for. */
function rawDispatch(transport) {
  const pending = new Map()
  const receive = transport.onmessage
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- transports have no events
  transport.onmessage = (message, extra) => {
    const resolve = pending.get(message.id)
    if (resolve === undefined || message.method !== undefined) return receive?.(message, extra)
    pending.delete(message.id)
    resolve(
      message.error === undefined
        ? { kind: 'result', result: message.result }
        : { kind: 'error', error: message.error },
    )
  }
  let sent = 0
  return ({ method, params }, { context } = {}) =>
    new Promise((resolve, reject) => {
      const id = `raw-${++sent}`
      pending.set(id, resolve)
      const name = params.name ?? params.taskId
      const headers = {
        'mcp-protocol-version': VERSION,
        'mcp-method': method,
        'mcp-name': name,
        ...context?.headers,
      }
      transport.send({ jsonrpc: '2.0', id, method, params }, { headers }).catch(reject)
    })
}

async function official(t, transport) {
  const client = new Client(INFO, {
    versionNegotiation: { mode: { pin: VERSION } },
    capabilities: CAPABILITIES,
  })
  t.defer(() => client.close())
  await t.must('connect', () => client.connect(transport))
  const asked = []
  const errors = []
  const session = createTaskSessionFromClient(client, {
    endpointId: 'ccmcp',
    rawDispatch: rawDispatch(transport),
    v2RequestFraming: {
      protocolVersion: VERSION,
      clientInfo: INFO,
      clientCapabilities: CAPABILITIES,
    },
    onError: (error) => errors.push(error),
    onInputRequest: async ({ params }, { inputId }) => {
      asked.push(inputId)
      return { action: 'accept', content: { name: params.message.replace('?', '') } }
    },
  })
  t.defer(() => session.close())
  const settled = async (name) => (await (await session.callTool(name, {})).settle()).outcome
  const textOf = (outcome) => resultFromTaskOutcome(outcome).content[0].text

  await t.step('plain', async () => assert.equal(textOf(await settled('plain')), 'plain'))
  await t.step('task', async () => {
    const statuses = []
    const execution = await session.callTool('slow', {})
    assert.equal(execution.kind, 'task')
    const onEvent = ({ task }) => void statuses.push(task?.status)
    const { outcome } = await execution.settle({ onEvent })
    assert.equal(textOf(outcome), 'done')
    assert.ok(statuses.includes('working'))
  })
  await t.step('questions', async () => {
    assert.equal(textOf(await settled('ask')), 'First Last Sure')
    assert.equal(new Set(asked).size, 3)
  })
  await t.step('partial update', async () => {
    const execution = await session.callTool('ask', {})
    const { taskId } = execution.handle
    await execution.detach()
    const task = session.task(taskId)
    const requests = async () => Object.entries((await task.snapshot()).raw.inputRequests ?? {})
    let open = []
    await until(async () => (open = await requests()).length === 2, 'two questions')
    for (const [key, { params }] of open) {
      const content = { name: params.message.replace('?', '') }
      await task.update({ [key]: { action: 'accept', content } })
      assert.ok((await requests()).every(([other]) => other !== key))
    }
    await until(async () => (open = await requests()).length === 1, 'the next question')
    await task.update({ [open[0][0]]: { action: 'accept', content: { name: 'yes' } } })
    assert.equal(textOf(await task.result()), 'First Last yes')
  })
  await t.step('cancel', async () => {
    const execution = await session.callTool('wait', {})
    await execution.cancel()
    assert.equal((await execution.settle()).outcome.status, 'cancelled')
  })
  await t.step('failed', async () => {
    const { status, error } = await settled('fail')
    assert.deepEqual([status, error.code, error.data], ['failed', -32042, { part: 7 }])
  })
  await t.step('isError', async () => {
    const outcome = await settled('wrong')
    assert.deepEqual([outcome.status, outcome.result.isError], ['completed', true])
  })
  await t.step('unknown task', async () =>
    assert.equal((await rejection(session.task('unknown').snapshot())).code, -32602),
  )
  assert.deepEqual(errors, [])
}
