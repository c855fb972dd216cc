// What Redis costs and gives: calls, events and tasks with it and without, in interleaved rounds, and what is left in it
// after everything has expired. Exits with 1 if keys are left.
//   node bench/redis.mjs [--rounds 5] [--calls 10000] [--progress 1000] [--tasks 1000] [--part stateless,expiry]
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Line, request } from './http-load.mjs'
import { Redis, Server, Worker, findRedis } from './redis-processes.mjs'

const { values } = parseArgs({
  strict: false, // ignore the options of the other benchmarks
  options: {
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '10000' },
    progress: { type: 'string', default: '1000' },
    tasks: { type: 'string', default: '1000' },
    part: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const calls = Number(values.calls)
/** Calls with a stream of events. */
const streams = Number(values.progress)
const count = Number(values.tasks)
/** Connections, each with one request at a time. */
const LINES = 32
/** Tasks that one worker runs at the same time. */
const CONCURRENCY = 8
/** Milliseconds between two polls of a task. */
const POLL = 20
/** Milliseconds in which everything expires, and in which it must be gone then. */
const TTL = 10_000
const PATIENCE = 60_000

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time))
const median = (list) => list.toSorted((one, other) => one - other)[list.length >> 1]
const whole = (number) => Math.round(number).toLocaleString('en')
const ratio = (number) => `${number.toFixed(2)}×`

// Requests

const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}'

const callOf = (port, name, given = '') =>
  request(port, 'tools/call', name, `"name":"${name}","arguments":{${given}},${META}`)

const pollOf = (port, taskId) => request(port, 'tasks/get', taskId, `"taskId":"${taskId}",${META}`)

const inSession = (session) => ['MCP-Protocol-Version: 2025-11-25', `Mcp-Session-Id: ${session}`]

/** Sends a request and fails unless it succeeds. */
async function ask(line, bytes) {
  const { head, body } = await line.ask(bytes)
  if (!/^HTTP\/1.1 20[02]/.test(head) || body.includes('"error":'))
    throw new Error(`Unexpected response: ${head}\n${body}`)
  return { head, body }
}

/** Does something on several connections at the same time; each has a number. */
async function onLines(port, use) {
  const lines = Array.from({ length: LINES }, () => new Line(port))
  try {
    return await Promise.all(lines.map(use))
  } finally {
    for (const line of lines) line.end()
  }
}

/** Opens a session per connection. */
function openSessions(port) {
  const hello =
    '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}'
  const opening = request(port, 'initialize', undefined, hello, ['X: y'])
  return onLines(port, async (line) => {
    const { head } = await ask(line, opening)
    const session = /mcp-session-id: (\S+)/i.exec(head)[1]
    const headers = inSession(session)
    await ask(line, notification(port, headers))
    return session
  })
}

function notification(port, headers) {
  const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  const head = [
    'POST /mcp HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Content-Length: ${body.length}`,
    ...headers,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

async function endSession(port, session) {
  const headers = { 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Session-Id': session }
  const { status } = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'DELETE', headers })
  if (status !== 204) throw new Error(`DELETE got ${status}`)
}

// Measurements. Each starts its processes and returns how many per second, and the CPU time of each in microseconds.

/** Runs a load; `run` returns how many it was. */
async function timed(processes, run) {
  const cpu = () => processes.reduce((sum, each) => sum + each.cpu(), 0)
  const before = cpu()
  const began = performance.now()
  const done = await run()
  const seconds = (performance.now() - began) / 1000
  return { perSecond: done / seconds, cpu: ((cpu() - before) / done) * 1e6 }
}

/** Sends `total` requests; `bytesOf` gets the number of the connection. Returns what `countOf` makes of the responses. */
async function send(port, total, bytesOf, countOf = () => 1) {
  let left = total
  let done = 0
  await onLines(port, async (line, index) => {
    const bytes = bytesOf(index)
    while (left-- > 0) {
      const response = await ask(line, bytes)
      done += countOf(response)
    }
  })
  return done
}

async function withProcesses(starting, use) {
  const started = await Promise.allSettled(starting)
  const processes = started.flatMap(({ value }) => value ?? [])
  try {
    const failed = started.find(({ status }) => status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return await use(processes)
  } finally {
    await Promise.all(processes.map((each) => each.close()))
  }
}

const statelessCalls = (options) =>
  withProcesses([new Server().open(options)], async (processes) => {
    const [{ port }] = processes
    const bytes = callOf(port, 'echo', '"message":"hello"')
    await send(port, calls / 2, () => bytes) // warms up
    return timed(processes, () => send(port, calls, () => bytes))
  })

/** Calls in sessions of the first of the servers, sent to the last of them. */
const sessionCalls = (options, servers = 1) =>
  withProcesses(
    Array.from({ length: servers }, () => new Server().open(options)),
    async (processes) => {
      const sessions = await openSessions(processes[0].port)
      const { port } = processes.at(-1)
      const params = '"name":"echo","arguments":{"message":"hello"}'
      const bytesOf = (index) =>
        request(port, 'tools/call', 'echo', params, inSession(sessions[index]))
      await send(port, calls / 2, bytesOf)
      return timed(processes, () => send(port, calls, bytesOf))
    },
  )

const PROGRESS = '"name":"progress","arguments":{},"_meta":{"progressToken":1}'
const progressIn = (port, sessions) => (index) =>
  request(port, 'tools/call', 'progress', PROGRESS, inSession(sessions[index]))
/** Counts the events with an id. */
const eventsOf = ({ body }) => body.toString().match(/^id: ?\S/gm)?.length ?? 0

const events = (options) =>
  withProcesses([new Server().open(options)], async (processes) => {
    const [{ port }] = processes
    const sessions = await openSessions(port)
    const bytesOf = progressIn(port, sessions)
    await send(port, streams / 2, bytesOf)
    const measured = await timed(processes, () => send(port, streams, bytesOf, eventsOf))
    if (!(measured.perSecond > 0)) throw new Error('No event has an id')
    return measured
  })

/** Creates tasks, then polls each until it is completed. */
async function runTasks(port, total, name) {
  const bytes = callOf(port, name)
  const created = []
  let left = total
  await onLines(port, async (line) => {
    while (left-- > 0) created.push(taskIdOf(await ask(line, bytes)))
    for (let taskId = created.shift(); taskId !== undefined; taskId = created.shift())
      await completed(line, port, taskId)
  })
  return total
}

function taskIdOf({ body }) {
  const { taskId } = JSON.parse(body).result
  if (taskId === undefined) throw new Error(`Not a task: ${body}`)
  return taskId
}

async function completed(line, port, taskId) {
  const bytes = pollOf(port, taskId)
  for (;;) {
    const { status } = JSON.parse((await ask(line, bytes)).body).result
    if (status === 'completed') return
    if (status !== 'working') throw new Error(`A task is ${status}`)
    await sleep(POLL)
  }
}

/** Tasks that the server runs, or as many workers if there are any. */
const finishedTasks = (options, name, workers = 0) =>
  withProcesses(
    [
      new Server().open({ ...options, workers: workers === 0 }),
      ...Array.from({ length: workers }, () => new Worker().open(options, CONCURRENCY)),
    ],
    async (processes) => {
      const [{ port }] = processes
      await runTasks(port, count / 4, name)
      return timed(processes, () => runTasks(port, count, name))
    },
  )

async function journalTasks() {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-bench-'))
  const options = { tasks: 'journal', journal: join(folder, 'tasks.journal') }
  try {
    return await finishedTasks(options, 'quick')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

// Comparing

/** Measures subjects in turn and prints each with its ratio to the first, round by round. */
async function compare(what, subjects) {
  const names = Object.keys(subjects)
  const measured = Object.fromEntries(names.map((name) => [name, []]))
  const order = [...names]
  for (let round = 1; round <= rounds; round++) {
    for (const name of order) measured[name].push(await subjects[name]())
    order.reverse() // none is always the first
    process.stderr.write(`${what}: round ${round} of ${rounds}\n`)
  }
  const first = measured[names[0]]
  console.log(`\n| ${what} | per second | ratio | CPU each, µs | ratio |\n|---|---|---|---|---|`)
  for (const name of names) {
    const cells = ['perSecond', 'cpu'].flatMap((kind) => {
      const ratios = measured[name].map((each, round) => each[kind] / first[round][kind])
      return [whole(median(measured[name].map((each) => each[kind]))), ratio(median(ratios))]
    })
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
}

let prefixes = 0
/** Options of servers that share a Redis with nobody else. */
const at = ({ url }, more) => ({ url, prefix: `bench-${prefixes++}`, ...more })

const compareStateless = (everysec) =>
  compare('stateless calls', {
    'without Redis': () => statelessCalls({}),
    'with Redis': () => statelessCalls(at(everysec)),
  })

const compareSessions = (everysec) =>
  compare('calls in sessions', {
    'without Redis': () => sessionCalls({}),
    'of the process': () => sessionCalls(at(everysec)),
    'of another process': () => sessionCalls(at(everysec), 2),
  })

const compareEvents = (everysec, always) =>
  compare('events with ids', {
    'in memory': () => events({}),
    'Redis, everysec': () => events(at(everysec)),
    'Redis, always': () => events(at(always)),
  })

async function compareTasks(everysec, always) {
  const stored = { tasks: 'redis' }
  await compare('tasks', {
    'in memory': () => finishedTasks({ tasks: 'memory' }, 'quick'),
    'with a journal': journalTasks,
    'Redis, everysec, run by the server': () => finishedTasks(at(everysec, stored), 'quick'),
    'Redis, everysec, one worker': () => finishedTasks(at(everysec, stored), 'quick', 1),
    'Redis, everysec, four workers': () => finishedTasks(at(everysec, stored), 'quick', 4),
    'Redis, always, one worker': () => finishedTasks(at(always, stored), 'quick', 1),
    'Redis, always, four workers': () => finishedTasks(at(always, stored), 'quick', 4),
  })
  await compare(`tasks of 20 ms, ${CONCURRENCY} at the same time per worker`, {
    'one worker': () => finishedTasks(at(everysec, stored), 'slow', 1),
    'four workers': () => finishedTasks(at(everysec, stored), 'slow', 4),
  })
}

// Expiry

/** Sessions, half of which are deleted, events, and tasks. */
async function fill(servers) {
  const [{ port }, other] = servers
  for (let times = 0; times < 4; times++) {
    const sessions = await openSessions(port)
    await send(other.port, LINES * 4, progressIn(other.port, sessions))
    const ended = sessions.filter((_, index) => index % 2 === 0)
    await Promise.all(ended.map((session) => endSession(port, session)))
  }
  let left = count
  const bytes = callOf(port, 'quick')
  await onLines(port, async (line) => {
    while (left-- > 0) await ask(line, bytes)
  })
}

/** Waits until Redis has no more keys than that, and returns how many it has. */
async function keysAtMost(redis, limit) {
  const began = performance.now()
  for (;;) {
    const keys = await redis.keys()
    if (keys <= limit || performance.now() - began > TTL + PATIENCE) return keys
    await sleep(100)
  }
}

/** Fills Redis and waits until everything has expired. */
const fillAndExpire = (redis) =>
  withProcesses(
    [1, 2].map(() =>
      new Server().open(at(redis, { prefix: 'all', ttl: TTL, idle: TTL, tasks: 'redis' })),
    ),
    async (servers) => {
      await fill(servers)
      const filled = { keys: await redis.keys(), memory: await redis.memory() }
      // Each server has a key as long as it runs.
      const expired = await keysAtMost(redis, servers.length)
      return { filled, expired, servers: servers.length }
    },
  )

async function expiry(redis) {
  await redis.clear()
  await fillAndExpire(redis) // the scripts are in its memory after that
  const before = { keys: await redis.keys(), memory: await redis.memory() }
  const { filled, expired, servers } = await fillAndExpire(redis)
  const keys = await keysAtMost(redis, 0)
  const after = { keys, memory: await redis.memory() }
  console.log('\n| Redis | keys | used_memory, KB |\n|---|---|---|')
  for (const [name, { keys, memory }] of Object.entries({ before, filled, after }))
    console.log(`| ${name} | ${whole(keys)} | ${whole(memory / 1024)} |`)
  if (expired <= servers && keys === 0) return
  console.log(
    `\nfailed: ${expired} keys while ${servers} servers run, ${keys} when they have ended`,
  )
  process.exitCode = 1
}

const PARTS = {
  stateless: compareStateless,
  sessions: compareSessions,
  events: compareEvents,
  tasks: compareTasks,
  expiry,
}

async function main() {
  if (findRedis() === undefined) {
    console.log('skipped: Redis (install redis-server, or set REDIS_SERVER to its path)')
    return
  }
  console.log(
    `Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}, ${rounds} rounds, ${LINES} connections`,
  )
  const opening = [new Redis().open('everysec'), new Redis().open('always')]
  await withProcesses(opening, async ([everysec, always]) => {
    for (const part of values.part?.split(',') ?? Object.keys(PARTS))
      await PARTS[part](everysec, always)
  })
}

await main()
