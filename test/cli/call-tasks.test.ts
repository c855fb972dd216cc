import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { extensionNames } from '../official/schema-validator.js'
import { Child } from '../stdio/child.js'
import { cli, server } from './command.js'

/* `ccmcp tasks`, with a server that runs and without one. */

extensionNames.add('task')

const TASKS = 'io.modelcontextprotocol/tasks'
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions: { [TASKS]: {} } },
}

let folder = ''
let running: Child | undefined
const journal = () => join(folder, 'tasks.journal')

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-tasks-'))
})
afterEach(async () => {
  running?.end()
  await running?.closed()
  running = undefined
  rmSync(folder, { recursive: true, force: true })
})

interface Task {
  taskId: string
  status: string
  statusMessage?: string
}
async function request(child: Child, method: string, params: object): Promise<Task> {
  const id = child.lines.length
  child.send(JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: META } }))
  const { result } = JSON.parse(await child.line(id)) as { result: Task } // the server has no other messages
  return result
}

function start(): Child {
  running = new Child(process.execPath, [server('tasks'), journal()])
  return running
}

async function create(child: Child, name: string, status: string): Promise<string> {
  const { taskId } = await request(child, 'tools/call', { name, arguments: { text: 'secret' } })
  for (;;) {
    const task = await request(child, 'tasks/get', { taskId })
    if (task.status === status && (name !== 'slow' || task.statusMessage !== undefined))
      return taskId
  }
}

const tasks = (...args: string[]) => cli(['tasks', ...args, '--journal', journal()])

it('lists and shows tasks while the server runs, and afterwards; cancels and retries them', async () => {
  const child = start()
  const slow = await create(child, 'slow', 'working')
  await create(child, 'ask', 'input_required')
  await create(child, 'quick', 'completed')
  const listed = await tasks()
  expect(listed.stderr).toBe('')
  const lines = listed.stdout.trimEnd().split('\n')
  expect(lines.map((line) => line.split(/ {2,}/).slice(1, 3))).toEqual([
    ['completed', 'quick'],
    ['input_required', 'ask'],
    ['running', 'slow'],
  ])
  expect(listed.stdout).toContain('attempt 1')
  expect(listed.stdout).not.toContain(slow)
  const [name = ''] = lines[2]?.split(' ') ?? []
  const [parked = ''] = lines[1]?.split(' ') ?? []
  const shown = await tasks('show', name.slice(0, 6))
  expect(shown.stdout).toMatch(/^ {2}steps +first$/m)
  expect(shown.stdout).not.toContain('secret')
  expect((await tasks('show', slow)).stdout).toBe(shown.stdout)
  expect(JSON.parse((await tasks('show', name, '--json')).stdout)).toMatchObject({
    tool: 'slow',
    arguments: { text: 'secret' },
    attempts: 1,
    steps: { first: { value: 1 } },
  })
  expect(await tasks('retry', name)).toMatchObject({ code: 0, stdout: `${name} is run again\n` })
  for (let message = ''; message !== 'attempt 2';)
    message = (await request(child, 'tasks/get', { taskId: slow })).statusMessage ?? ''
  expect(await tasks('retry', parked)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('waits for an answer'),
  })
  expect(await tasks('cancel', name)).toMatchObject({ code: 0, stdout: `${name} is cancelled\n` })
  expect(await request(child, 'tasks/get', { taskId: slow })).toMatchObject({
    status: 'cancelled',
    statusMessage: 'Cancelled by the operator of the server',
  })
  expect(await tasks('cancel', name)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has ended: it is cancelled'),
  })
  child.end()
  await child.closed()
  expect(await tasks('cancel', parked)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No server is using'),
  })
  const { tasks: all } = JSON.parse((await tasks('--json')).stdout) as { tasks: object[] }
  expect(all).toHaveLength(3)
  expect(readdirSync(folder)).toEqual(['tasks.journal'])
})

it('reads a journal without changing it, and without its incomplete end', async () => {
  const child = start()
  await create(child, 'ask', 'input_required')
  child.end()
  await child.closed()
  const torn = `${readFileSync(journal(), 'utf8')}01234567 [{"cha`
  writeFileSync(journal(), torn)
  expect((await tasks()).stdout).toContain('input_required')
  expect(readFileSync(journal(), 'utf8')).toBe(torn)
  writeFileSync(journal(), 'precious notes\n')
  expect(await tasks()).toMatchObject({ code: 1, stderr: expect.stringContaining('is corrupt') })
})

it.each([
  [['show'], 2, 'Missing NAME'],
  [['kill', 'x'], 2, 'Unknown action "kill"'],
  [[], 2, 'There is no journal'],
])('explains what is wrong with %j', async (args, code, message) => {
  expect(await tasks(...args)).toMatchObject({ code, stderr: expect.stringContaining(message) })
})
