import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { FollowedTask } from '../../src/cli/followed-task.js'
import { statusText } from '../../src/cli/status-line.js'
import { connect, http } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { type Call, type Tool, createServer, form, tool } from '../../src/index.js'
import { type TaskStatus, clientTasks, tasks } from '../../src/tasks.js'
import { extensionNames } from '../official/schema-validator.js'
import { Child } from '../stdio/child.js'
import { CLI, cli, server } from './command.js'

/* Tasks on the command line. */

for (const name of ['task', 'tasks/get', 'tasks/update', 'tasks/cancel']) extensionNames.add(name)

const NAME = { type: 'object', properties: { name: { type: 'string' } } } as const
const POLL = { mode: 'must', poll: 10 } as const
let release: (value: string) => void = () => {}
let aborted = 0

const waits: Tool = {
  name: 'wait',
  input: { type: 'object' },
  task: POLL,
  run: (_: unknown, call: Call) =>
    new Promise<string>((resolve, reject) => {
      release = resolve
      call.progress(1, 3, 'digging')
      call.signal.addEventListener('abort', () => {
        aborted++
        reject(call.signal.reason as Error)
      })
    }),
}
const asks = tool({
  name: 'ask',
  task: POLL,
  async run(_, call) {
    const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
    return `Hello, ${who.name}!`
  },
})

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close()
})

/** A server with tasks at a URL. */
async function served(): Promise<string> {
  const server = createServer({
    name: 'x',
    version: '1',
    tools: [waits, asks],
    extensions: [tasks()],
  })
  const listening = await listen(server, { port: 0, log: { write: () => true } })
  open.push(listening)
  return listening.url
}

/** The id of a task that another client has created. */
async function created(url: string): Promise<string> {
  let known: (id: string) => void = () => {}
  const id = new Promise<string>((resolve) => (known = resolve))
  const onStatus = ({ taskId, statusMessage }: TaskStatus) => {
    if (statusMessage !== undefined) known(taskId)
  }
  const client = await connect(http(url), { extensions: [clientTasks({ onStatus })] })
  open.push(client)
  client.callTool('wait').catch(() => {})
  return await id
}

describe('ccmcp call', () => {
  it('waits for the task, and lists tools that need tasks', async () => {
    const url = await served()
    const listed = await cli(['list', url, '--json'])
    expect(listed.stdout).toContain('"wait"')
    const declined = await cli(['call', 'ask', url, '--no-input'])
    expect([declined.code, declined.stderr]).toEqual([1, expect.stringContaining('declined "who"')])
  })

  it('cancels the task on Ctrl-C, and waits for its end', async () => {
    aborted = 0
    const child = new Child(process.execPath, [CLI, 'call', 'wait', await served(), '--verbose'])
    await child.said('"tasks/get"')
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(130)
    expect(child.stderr).toContain('cancelling the task')
    expect(child.stderr).toContain('ccmcp: The task was cancelled')
    expect(child.stderr).toContain('"tasks/cancel"')
    expect(child.stderr).not.toContain('notifications/cancelled')
    expect(aborted).toBe(1)
  })

  it('leaves the task on the second Ctrl-C, and says how to resume it', async () => {
    const command = ['--', process.execPath, server('endless-task')]
    const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...command])
    await child.said('"tasks/get"')
    child.give('SIGINT')
    await child.said('press Ctrl-C again')
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(130)
    expect(child.stderr).toContain(`to wait for it: ccmcp resume 'task 1' -- ${process.execPath} `)
  })

  it('says nothing of a missing response to tasks/cancel when the task was cancelled', async () => {
    const command = ['--', process.execPath, server('endless-task'), 'silent']
    const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...command])
    await child.said('"tasks/get"')
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(130)
    expect(child.stderr).toMatch(/ccmcp: The task was cancelled: digging\n$/)
    expect(child.stderr).not.toContain('could not be cancelled')
  })

  it('says that a task could not be cancelled', async () => {
    const command = ['--', process.execPath, server('endless-task'), 'refuse']
    const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...command])
    await child.said('"tasks/get"')
    child.give('SIGINT')
    await child.said('the task could not be cancelled: not now')
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(130)
  })

  it('does not wait for a task that does not end after SIGTERM', async () => {
    const command = ['--', process.execPath, server('endless-task')]
    const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...command])
    await child.said('"tasks/get"')
    child.give('SIGTERM')
    await child.closed()
    expect(child.code).toBe(143)
    expect(child.stderr).toContain('"tasks/cancel"')
  })
})

it.runIf(spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0)(
  'shows the status message in a terminal',
  async () => {
    const line = `'${process.execPath}' '${CLI}' call wait '${await served()}'`
    const child = new Child('script', ['-qec', line, '/dev/null'], { env: { TERM: 'xterm' } })
    await child.until(() => child.stdout.includes('wait: digging'), 'the status message')
    release('found it')
    await child.until(() => child.stdout.includes('found it'), 'the result')
    await child.closed()
  },
)

describe('ccmcp resume', () => {
  it('shows the status of a task, waits for it, and prints its result', async () => {
    const url = await served()
    const id = await created(url)
    const status = await cli(['resume', id, url, '--status'])
    expect([status.code, status.stdout]).toEqual([0, 'working: digging\n'])
    const json = await cli(['resume', id, url, '--status', '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ taskId: id, status: 'working' })
    const child = new Child(process.execPath, [CLI, 'resume', id, url, '--verbose'])
    await child.said('"tasks/get"')
    release('found it')
    await child.closed()
    expect([child.code, child.stdout.toString()]).toEqual([0, 'found it\n'])
  })

  it('cancels a task; one that is unknown or was cancelled is an error', async () => {
    const url = await served()
    const id = await created(url)
    expect(await cli(['resume', id, url, '--cancel'])).toEqual({ code: 0, stdout: '', stderr: '' })
    const cancelled = await cli(['resume', id, url])
    expect([cancelled.code, cancelled.stderr]).toEqual([1, 'ccmcp: The task was cancelled\n'])
    const unknown = await cli(['resume', 'unknown', url])
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('-32602')])
    const both = await cli(['resume', id, url, '--cancel', '--status'])
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('exclude each other')])
  })
})

it('shows the status message of a task on the status line', () => {
  expect(statusText('dig', 'digging\u001b[2J', 3)).toBe('dig: digging\\u001b[2J, 3 s')
  const followed = new FollowedTask(
    { values: new Map(), positionals: [], pairs: [], command: undefined },
    undefined,
  )
  // Without a task, a signal ends the call as any other.
  expect(followed.interrupted('SIGINT', () => {})).toBe(false)
  expect(followed.show('dig')).toBeUndefined()
})
