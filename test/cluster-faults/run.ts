import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { auditTasks } from '../redis/tasks-audit.js'
import { CASES } from './cases.js'
import { ChangeLedger } from './change-ledger.js'
import { Cluster, running } from './cluster.js'
import { measureLosses } from './losses.js'
import { Findings, LIMIT, SessionLedger } from './ledger.js'
import { Random, pause } from './random.js'
import { auditSessions } from './session-audit.js'
import { TaskLedger } from './task-ledger.js'

/** Processes that serve. */
const SIZE = 3
/** Kills of one cluster: then everything is compared, and the next one begins. */
const KILLS_PER_CLUSTER = 40
const MOST_PROBLEMS = 10
/** Milliseconds for which a run may take. */
const TIME_PER_KILL = 6000

const SETTINGS: readonly (readonly [string, string[]])[] = [
  ['appendfsync always', []],
  ['appendfsync everysec', ['--appendfsync', 'everysec']],
  ['appendonly no, snapshots', ['--appendonly', 'no', '--save', '60 1']],
]

interface Run {
  readonly root: string
  readonly kills: number
  readonly seed: number
}

/** Returns the exit code. */
export async function run({ root, kills, seed }: Run): Promise<number> {
  const random = new Random(seed)
  const findings = new Findings()
  const program = join(root, 'test', 'cluster-faults', 'server.mjs')
  const say = (text: string) => process.stdout.write(`${text}\n`)
  const perCase = new Map<string, number>()
  const began = performance.now()
  const giveUp = (reason: string) => {
    say(`FAILED ${reason} during ${findings.during}; seed ${seed}`)
    for (const each of running) each.destroy()
    process.exit(1)
  }
  const watchdog = setTimeout(
    () => giveUp('the run has taken too long'),
    120_000 + kills * TIME_PER_KILL,
  )
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => giveUp(signal))
  say(`seed ${seed}`)

  for (let round = 0; findings.kills < kills && findings.problems.length < MOST_PROBLEMS;) {
    const cluster = await Cluster.start(program, SIZE)
    const first = findings.kills
    try {
      const most = Math.min(kills, first + KILLS_PER_CLUSTER)
      round = await failing(cluster, findings, random, { round, most, perCase })
    } finally {
      await cluster.stop()
    }
    say(`${findings.kills} kills, ${findings.problems.length} problems`)
  }

  findings.during = '6 failover with replica lag'
  const failover = await measureLosses(program, { failover: true })
  say(
    `6 failover with replica lag: lost ${failover} (reported, not a problem: replication is asynchronous)`,
  )
  findings.during = '12 journal'
  if ((await journal(root)) !== 0) findings.problem('npm run faults 5 has failed')
  findings.during = 'exit (something keeps this process alive)'
  watchdog.unref()

  for (const [name, count] of perCase) say(`${String(count).padStart(5)}  ${name}`)
  const times = findings.recoveries.toSorted((one, other) => one - other).map(Math.round)
  const [half, most] = [0.5, 0.99].map((part) => times[Math.floor(part * times.length)])
  const counts = Object.entries(findings.acknowledged).map(([what, count]) => `${count} ${what}`)
  for (const [what, count] of Object.entries(findings.acknowledged))
    if (count === 0) findings.problem(`no ${what} were acknowledged`)
  say(`acknowledged: ${counts.join(', ')}`)
  say(`recovery: p50 ${half} ms, p99 ${most} ms`)
  const seconds = Math.round((performance.now() - began) / 1000)
  say(
    `faults:cluster: ${findings.kills} kills in ${seconds} s, ${findings.problems.length} problems`,
  )
  if (findings.problems.length === 0) return 0
  say(`To repeat the faults: npm run faults:cluster ${kills} -- --seed ${seed}`)
  return 1
}

interface Rounds {
  readonly round: number
  readonly most: number
  readonly perCase: Map<string, number>
}

/** Fails until there are enough kills, and compares everything. Returns the number of the next round. */
async function failing(
  cluster: Cluster,
  findings: Findings,
  random: Random,
  { round, most, perCase }: Rounds,
): Promise<number> {
  // Clients choose by themselves: the order of faults does not depend on them.
  const choices = new Random(random.between(0, 2 ** 31))
  const sessions = new SessionLedger(cluster, findings, choices)
  const tasks = new TaskLedger(cluster, findings, choices)
  const changes = new ChangeLedger(cluster, findings, choices)
  const stop = new AbortController()
  const repeat = async (work: () => Promise<void>) => {
    for (; !stop.signal.aborted; await pause(20)) await work()
  }
  const clients = [
    ...[1, 2].map(() => repeat(() => sessions.work())),
    ...[1, 2].map(() => repeat(() => tasks.work())),
    repeat(() => changes.work()),
  ]
  for (; findings.kills < most && findings.problems.length < MOST_PROBLEMS; round++) {
    const [name, fail] = CASES[round % CASES.length] ?? ['', async () => 0]
    findings.during = `round ${round}, ${name}`
    perCase.set(name, (perCase.get(name) ?? 0) + 1)
    const victim = random.pick(cluster.serving)
    if (victim === undefined) throw new Error('no process is left')
    const probe = await opened(sessions, victim.url)
    const at = await fail({ cluster, findings, random, victim })
    const missing = Math.max(0, SIZE - cluster.processes.length)
    const starting = Promise.all(Array.from({ length: missing }, () => cluster.add()))
    if (cluster.serving.length === 0) await starting
    if (probe !== undefined) {
      await sessions.served(probe)
      findings.recoveries.push(performance.now() - at)
    }
    await Promise.all([starting, sessions.verify(5), tasks.verify(3), changes.verify()])
    for (const crash of cluster.crashes.splice(0)) findings.problem(`a process crashed: ${crash}`)
  }
  stop.abort()
  await findings.settled('a client', Promise.all(clients)).catch(() => undefined)
  findings.during += ', all'
  await Promise.all([sessions.verify(), tasks.verify(), changes.verify()])
  changes.close()
  const found: string[] = []
  const executed = cluster.redis.executed()
  auditTasks(executed, cluster.prefix, found)
  auditSessions(executed, cluster.prefix, found)
  for (const each of found) findings.problem(each)
  return round
}

async function opened(sessions: SessionLedger, url: string) {
  for (const until = performance.now() + LIMIT; performance.now() < until; await pause(10)) {
    const known = await sessions.open(url)
    if (known !== undefined) return known
  }
  return undefined
}

/** Kills a server with a journal. Resolves with its exit code. */
function journal(root: string): Promise<number | null> {
  const child = spawn(process.execPath, [join(root, 'scripts', 'faults.mjs'), '5'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ending = { destroy: () => void child.kill() }
  running.add(ending)
  return new Promise((resolve) => {
    child.once('exit', (code) => {
      running.delete(ending)
      resolve(code)
    })
  })
}

/** Prints what is lost when Redis is killed, with other settings. */
export async function compareSettings(root: string): Promise<number> {
  const program = join(root, 'test', 'cluster-faults', 'server.mjs')
  for (const [name, options] of SETTINGS)
    process.stdout.write(`${name}: lost ${await measureLosses(program, { options })}\n`)
  return 0
}
