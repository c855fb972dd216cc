// Kills a server with a journal of tasks (SIGKILL) at every operation on its file, again and again, and compares what
// it says after each restart with what it has acknowledged before.
//
//   node scripts/faults.mjs [KILLS]     1000 by default, about ten minutes
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const kills = Number(process.argv[2] ?? 1000)
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-faults-'))
/** Operations after which a server is killed at the latest: more than a start and two tasks need. */
const OPERATIONS = 70
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}
const TERMINAL = new Set(['completed', 'failed', 'cancelled'])

const problems = []
/** What the server has acknowledged: tasks by their ids. */
const known = new Map()
/** Those that are still compared after each restart. */
const recent = () => [...known].slice(-20)

class Killed extends Error {}

class Server {
  constructor(last) {
    const args = [join(root, 'test', 'faults', 'server.mjs'), join(folder, 'tasks.journal')]
    this.child = spawn(process.execPath, [...args, join(folder, 'effects'), String(last)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.child.stdin.on('error', () => {})
    this.pending = new Map()
    this.sent = 0
    this.ended = new Promise((resolve) => {
      this.child.once('exit', (code, signal) => {
        if (signal !== 'SIGKILL' && code !== 0) problems.push(`a server exited with code ${code}`)
        for (const { reject } of this.pending.values()) reject(new Killed())
        this.dead = true
        resolve(signal)
      })
    })
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const message = JSON.parse(line)
      this.pending.get(message.id)?.resolve(message)
      this.pending.delete(message.id)
    })
  }

  request(method, params) {
    if (this.dead) return Promise.reject(new Killed())
    const id = ++this.sent
    this.child.stdin.write(
      `${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: META } })}\n`,
    )
    return new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }))
  }
}

/** Compares a task with what is known of it, and continues it until it has ended. */
async function follow(server, taskId) {
  const task = known.get(taskId)
  for (;;) {
    const { result, error } = await server.request('tasks/get', { taskId })
    if (error !== undefined) {
      problems.push(`a task that was acknowledged is gone: ${error.message}`)
      return
    }
    if (
      task.end !== undefined &&
      task.end !== JSON.stringify([result.status, result.result?.content])
    )
      problems.push(`a task that had ended has changed: ${task.end} is now ${result.status}`)
    for (const key of Object.keys(result.inputRequests ?? {})) {
      if (task.answered.has(key)) problems.push('an answer that was acknowledged is lost')
      const inputResponses = { [key]: { action: 'accept', content: { name: 'Ada' } } }
      const answer = await server.request('tasks/update', { taskId, inputResponses })
      if (answer.error === undefined) task.answered.add(key)
      else problems.push(`an answer was refused: ${answer.error.message}`)
    }
    if (TERMINAL.has(result.status)) {
      task.end = JSON.stringify([result.status, result.result?.content])
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

async function round(last) {
  const server = new Server(last)
  try {
    for (const [taskId] of last === 0 ? known : recent()) await follow(server, taskId)
    for (let each = 0; each < 100; each++) {
      const { result } = await server.request('tools/call', { name: 'work', arguments: {} })
      if (result?.resultType !== 'task') problems.push('no task was created')
      known.set(result.taskId, { answered: new Set() })
      await follow(server, result.taskId)
      if (last === 0) break
    }
  } catch (error) {
    if (!(error instanceof Killed)) throw error
  } finally {
    server.child.stdin.end()
  }
  return await server.ended
}

let killed = 0
for (let each = 0; each < kills; each++)
  if ((await round(1 + (each % OPERATIONS))) === 'SIGKILL') killed++
await round(0)

const effects = readFileSync(join(folder, 'effects'), 'utf8').split('\n').filter(Boolean)
if (new Set(effects).size !== effects.length) problems.push('a recorded step was run again')
const ends = [...known.values()].map(({ end }) => end)
if (ends.includes(undefined)) problems.push('a task has not ended')
if (killed !== kills) problems.push(`${killed} of ${kills} servers were killed`)
const completed = ends.filter((end) => end?.includes('Hello, Ada!')).length
if (completed === 0) problems.push('no task was completed')
rmSync(folder, { recursive: true, force: true })
for (const problem of new Set(problems)) process.stdout.write(`FAILED ${problem}\n`)
process.stdout.write(
  `faults: ${killed} kills, ${known.size} tasks, ${completed} completed, ${effects.length} effects, ${problems.length} problems\n`,
)
process.exitCode = problems.length === 0 ? 0 : 1
