// Tasks of the official Rust SDK: its client with our server, and our client with its server, over stdio.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { connect, stdio } from '../../dist/client.js'
import { clientTasks } from '../../dist/tasks.js'
import { rejection, script, until } from '../harness.mjs'

export function rustTaskChecks(name, program) {
  return [
    [`${name}, its client`, (t) => rustClient(t, program)],
    [`${name}, its server`, (t) => rustServer(t, program)],
  ]
}

/** Connects the two processes, and reads what the client says of each tool. */
async function rustClient(t, program) {
  const env = { ...process.env, ...t.env }
  const server = spawn(process.execPath, script('tasks.mjs'), {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const client = spawn(program, ['client'], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  for (const stream of [server.stdin, client.stdin]) stream.on('error', () => {})
  server.stdout.pipe(client.stdin)
  client.stdout.pipe(server.stdin)
  t.defer(async () => {
    client.kill()
    server.kill()
  })
  let said = ''
  client.stderr.setEncoding('utf8').on('data', (text) => (said += text))
  await t.must('run', () => until(() => client.exitCode !== null, 'the client ends', 20_000))
  const outcomes = {}
  for (const line of said.split('\n')) {
    if (!line.startsWith('{')) continue
    const { tool, outcome } = JSON.parse(line)
    outcomes[tool] = outcome
  }
  const textOf = ({ content }) => content[0].text
  await t.step('plain', async () => assert.deepEqual(outcomes.plain, { plain: true }, said))
  await t.step('task', async () => assert.equal(textOf(outcomes.slow), 'done'))
  await t.step('partial updates', async () => assert.equal(textOf(outcomes.ask), 'First Last Sure'))
  await t.step('cancel', async () => assert.equal(outcomes.wait, 'cancelled'))
  await t.step('failed', async () =>
    assert.deepEqual(outcomes.fail.error, {
      code: -32042,
      message: 'Out of order',
      data: { part: 7 },
    }),
  )
  await t.step('isError', async () => assert.equal(outcomes.wrong.isError, true))
  await t.step('unknown task', async () => assert.equal(outcomes.unknown, -32602))
}

async function rustServer(t, program) {
  const asked = []
  const states = []
  const elicit = ({ message }) => {
    asked.push(message)
    return { action: 'accept', content: { name: message.replace('?', '') } }
  }
  const onStatus = (task) => void states.push(task)
  const client = await t.must('connect', () =>
    connect(stdio(program, ['server'], { env: { ...process.env, ...t.env } }), {
      extensions: [clientTasks({ onStatus })],
      elicit,
    }),
  )
  t.defer(() => client.close())
  await t.step('questions', async () => {
    assert.equal((await client.callTool('ask')).content[0].text, 'First Last')
    assert.deepEqual(new Set(asked), new Set(['First?', 'Last?']))
    assert.equal(asked.length, 2)
    assert.ok(states.some(({ statusMessage }) => statusMessage === 'asking'))
  })
  await t.step('isError', async () => assert.equal((await client.callTool('wrong')).isError, true))
  await t.step('failed', async () =>
    assert.equal((await rejection(client.callTool('fail'))).code, -32042),
  )
  await t.step('cancel', async () => {
    const controller = new AbortController()
    const { signal } = controller
    states.length = 0
    const call = rejection(client.callTool('wait', {}, { signal }))
    await until(() => states.length > 0, 'the task exists')
    controller.abort(new Error('enough'))
    assert.equal((await call).message, 'enough')
    const task = client.task(states[0].taskId)
    await until(async () => (await task.status()).status === 'cancelled', 'it is cancelled')
    assert.equal((await rejection(task.result())).code, 'CANCELLED')
  })
  await t.step('unknown task', async () =>
    assert.equal((await rejection(client.task('unknown').status())).code, -32602),
  )
}
