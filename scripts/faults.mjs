// Kills a server with a journal of tasks (SIGKILL) at every operation on its files, again and again, and compares what it
// says after each restart with what it has acknowledged before. Then the same with a full disk, and with two servers.
//
//   node scripts/faults.mjs [KILLS]     1000 by default, about fifteen minutes
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { auditJournal } from '../test/faults/journal-audit.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const kills = Number(process.argv[2] ?? 1000)
/** Tasks on one journal before the next one is begun: one with many is rarely compacted. */
const MOST_KNOWN = 30
/** Tasks that a server gets before it is ended because it has not been killed. */
const MOST_TASKS = 16
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}
const TERMINAL = new Set(['completed', 'failed', 'cancelled'])
const KINDS = ['ask', 'retried', 'endless']

const WRITE = ['before', 'first', 'half', 'last', 'after']
const AROUND = ['before', 'after']
/** Each kind of operation, when the process is killed in it, and how often one process may do it. */
const OPERATIONS = [
  ['write', WRITE, 60],
  ['sync', AROUND, 60],
  ['compact', WRITE, 1],
  ['compact-sync', AROUND, 2],
  ['compact-rename', AROUND, 1],
  ['lock', WRITE, 1],
  ['link', AROUND, 1],
]
/** Those that happen only when a journal is created. */
const CREATION = [
  ['create', WRITE],
  ['create-sync', AROUND],
  ['rename', AROUND],
]
/** Those that happen only after a write was cut. */
const CUT = [
  ['cut', AROUND],
  ['cut-sync', AROUND],
]

/** Kills at every operation: the first ones cover all kinds and phases, the others all positions. */
function* targets() {
  for (let at = 1; ; at++) {
    for (const [kind, phases, most] of OPERATIONS)
      for (const [index, phase] of phases.entries())
        // Early and late ones in turn: those after a compaction are late.
        yield { kill: kind, at: 1 + ((at - 1 + 13 * index) % most), phase }
    for (const [kind, phases] of CUT)
      for (const phase of phases) {
        yield { kill: 'write', at: 2 + (at % 10), phase: 'half' }
        yield { kill: kind, at: 1, phase }
      }
    for (const [kind, phases] of CREATION)
      for (const phase of phases)
        yield { fresh: true, kill: kind, at: kind === 'create-sync' ? 1 + (at % 2) : 1, phase }
  }
}

const problems = []
const killed = new Map()
const totals = {
  kills: 0,
  journals: 0,
  tasks: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  effects: 0,
  repeated: 0,
  missed: 0,
}

class Ended extends Error {}

/** A journal, and what servers have acknowledged of it. */
class Journal {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-faults-'))
  path = join(this.folder, 'tasks.journal')
  ledger = join(this.folder, 'ledger')
  known = new Map()
  lives = 0
  #ended = 0

  /** Those that are compared after each restart; all are at the end. */
  get recent() {
    return [...this.known].slice(-6)
  }

  audit(complete = false) {
    const tasks = auditJournal(this.path, problems)
    if (!complete) return
    for (const { state } of tasks.values())
      if (!TERMINAL.has(state.status) && state.status !== 'input_required')
        problems.push(`a task is ${state.status} though no server runs it`)
  }

  end() {
    if (this.#ended++ > 0) return
    totals.journals++
    for (const { end } of this.known.values()) {
      totals.tasks++
      if (end === undefined) problems.push('a task has not ended')
      else totals[JSON.parse(end)[0]]++
    }
    if (existsSync(this.ledger)) this.#checkLedger()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** A step that was recorded is never run again; one without a record only if the tool is retried. */
  #checkLedger() {
    const recorded = new Set()
    const seen = new Set()
    for (const line of readFileSync(this.ledger, 'utf8').split('\n').filter(Boolean)) {
      const [what, key, step] = line.split(' ')
      const name = `${key} ${step}`
      if (what === 'recorded') recorded.add(name)
      else {
        totals.effects++
        if (recorded.has(name)) problems.push('a recorded step was run again')
        if (seen.has(name)) totals.repeated++
        seen.add(name)
      }
    }
  }
}

class Server {
  constructor(journal, plan) {
    const program = join(root, 'test', 'faults', 'server.mjs')
    const args = [program, journal.path, journal.ledger, JSON.stringify(plan)]
    this.child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] })
    this.child.stdin.on('error', () => {})
    this.pending = new Map()
    this.sent = 0
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        if (signal !== 'SIGKILL' && code !== 0) problems.push(`a server exited with code ${code}`)
        for (const { reject } of this.pending.values()) reject(new Ended())
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

  request(method, params = {}) {
    if (this.dead) return Promise.reject(new Ended())
    const id = ++this.sent
    this.child.stdin.write(
      `${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: META } })}\n`,
    )
    return new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }))
  }

  call(name) {
    return this.request('tools/call', { name, arguments: {} })
  }

  stop() {
    this.child.stdin.end()
    return this.ended
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** What a full disk refuses is not acknowledged, and is tried again. */
async function insist(server, method, params) {
  for (;;) {
    const { result, error } = await server.request(method, params)
    if (error === undefined) return result
    if (!error.message.includes('could not be stored')) return { error }
    await pause(20)
  }
}

/** Compares a task with what is known of it, and continues it until it has ended. */
async function follow(server, journal, taskId) {
  const task = journal.known.get(taskId)
  for (;;) {
    const { result, error } = await server.request('tasks/get', { taskId })
    if (error !== undefined)
      return void problems.push(`a task that was acknowledged is gone: ${error.message}`)
    const end = JSON.stringify([result.status, result.result?.content ?? result.error])
    if (task.end !== undefined && task.end !== end) problems.push(`${task.end} has become ${end}`)
    if (task.cancelled && result.status !== 'cancelled')
      problems.push(`a cancelled task is ${result.status}`)
    if (TERMINAL.has(result.status)) return void (task.end = end)
    for (const key of Object.keys(result.inputRequests ?? {})) {
      if (task.answered.has(key)) problems.push('an answer that was acknowledged is lost')
      const inputResponses = { [key]: { action: 'accept', content: { name: 'Ada' } } }
      const answer = await insist(server, 'tasks/update', { taskId, inputResponses })
      if (answer.error === undefined) task.answered.add(key)
      else problems.push(`an answer was refused: ${answer.error.message}`)
    }
    if (task.kind === 'endless') {
      const answer = await insist(server, 'tasks/cancel', { taskId })
      // It may have failed because the server was restarted.
      if (answer.error === undefined)
        task.cancelled =
          (await server.request('tasks/get', { taskId })).result?.status === 'cancelled'
      else problems.push(`tasks/cancel was refused: ${answer.error.message}`)
    }
    await pause(1)
  }
}

async function create(server, journal, kind) {
  const result = await insist(server, 'tools/call', { name: kind, arguments: {} })
  if (result.resultType !== 'task')
    return void problems.push(`no task was created: ${JSON.stringify(result)}`)
  journal.known.set(result.taskId, { kind, answered: new Set() })
  await follow(server, journal, result.taskId)
}

/** One server on a journal, until it is killed or has got all its tasks. */
async function live(journal, plan, { all = false, most = MOST_TASKS } = {}) {
  const server = new Server(journal, plan)
  journal.lives++
  try {
    for (const [taskId] of all ? journal.known : journal.recent)
      await follow(server, journal, taskId)
    for (let each = 0; each < most; each++)
      await create(server, journal, KINDS[(each + journal.lives) % KINDS.length])
  } catch (error) {
    if (!(error instanceof Ended)) throw error
  }
  const signal = await server.stop()
  journal.audit()
  return signal
}

/** The last server on a journal is not killed: every task has its one end. */
async function finish(journal) {
  await live(journal, {}, { all: true, most: 3 })
  journal.audit(true)
  journal.end()
}

async function killAll() {
  let journal = new Journal()
  for (const { fresh = false, ...plan } of targets()) {
    if (totals.kills >= kills) break
    if (fresh || (journal.known.size > MOST_KNOWN && !String(plan.kill).startsWith('cut'))) {
      await finish(journal)
      journal = new Journal()
    }
    if ((await live(journal, plan)) === 'SIGKILL') {
      totals.kills++
      const what = `${String(plan.kill)} ${String(plan.phase)}`
      killed.set(what, (killed.get(what) ?? 0) + 1)
    } else totals.missed++
    if (totals.missed > 50 + kills) problems.push('too many servers were not killed')
    if (problems.length > 50) break
  }
  await finish(journal)
}

/** The disk is full from one write on, for some writes: nothing is lost, and everything goes on afterwards. */
async function fullDisks(count) {
  const all = Array.from({ length: count }, async (_, index) => {
    const journal = new Journal()
    const signal = await live(journal, { full: 1 + index, times: 1 + (index % 4) }, { most: 6 })
    if (signal !== null) problems.push('a server with a full disk was killed')
    await finish(journal)
  })
  await Promise.all(all)
  // A disk that stays full: tools that may be tasks are called plainly, those that must be get an error.
  const journal = new Journal()
  const server = new Server(journal, { full: 1, times: 1_000_000 })
  const plain = await server.call('may')
  if (plain.result?.content?.[0]?.text !== 'Done')
    problems.push(`a full disk: ${JSON.stringify(plain)}`)
  const refused = await server.call('ask')
  if (!refused.error?.message.includes('could not be stored'))
    problems.push(`a full disk: ${JSON.stringify(refused)}`)
  await server.stop()
  journal.end()
}

/** A second server has no tasks; when the first one is killed, it takes them over. */
async function twoServers() {
  const journal = new Journal()
  const first = new Server(journal, {})
  const { result } = await first.call('ask')
  const { taskId } = result
  journal.known.set(taskId, { kind: 'ask', answered: new Set() })
  while ((await first.request('tasks/get', { taskId })).result.status === 'working') await pause(1)
  const second = new Server(journal, {})
  const discovered = async () => {
    const { capabilities } = (await second.request('server/discover')).result
    return capabilities.extensions !== undefined
  }
  if (await discovered()) problems.push('two servers: the second one declares tasks')
  const tools = (await second.request('tools/list')).result.tools.map(({ name }) => name)
  if (tools.join() !== 'may') problems.push(`two servers: the second one lists ${tools}`)
  const plain = await second.call('may')
  if (plain.result?.content?.[0]?.text !== 'Done')
    problems.push('two servers: `may` was not called plainly')
  if ((await second.call('ask')).error?.code !== -32603)
    problems.push('two servers: `must` was not refused')
  first.child.kill('SIGKILL')
  await first.ended
  for (let each = 0; !(await discovered()); each++) {
    if (each > 400)
      return void problems.push('two servers: the second one has not taken the journal over')
    await pause(50)
  }
  await follow(second, journal, taskId)
  await second.stop()
  await finish(journal)
}

await killAll()
await twoServers()
await fullDisks(kills < 100 ? 2 : 24)

if (totals.completed === 0) problems.push('no task was completed')
if (totals.kills < kills) problems.push(`only ${totals.kills} of ${kills} servers were killed`)
for (const problem of new Set(problems)) process.stdout.write(`FAILED ${problem}\n`)
for (const [what, count] of [...killed].toSorted(([one], [other]) => (one < other ? -1 : 1)))
  process.stdout.write(`${String(count).padStart(5)}  ${what}\n`)
process.stdout.write(
  `faults: ${totals.kills} kills on ${totals.journals} journals (${totals.missed} not reached), ${totals.tasks} acknowledged tasks: ${totals.completed} completed, ${totals.failed} failed, ${totals.cancelled} cancelled; ${totals.effects} effects, ${totals.repeated} of them repeated before they were recorded; ${problems.length} problems\n`,
)
process.exitCode = problems.length === 0 ? 0 : 1
