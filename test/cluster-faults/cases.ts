import { commanding } from '../redis/redis-server.js'
import { type Cluster, LEASE, type ServerProcess } from './cluster.js'
import type { Findings } from './ledger.js'
import { type Random, pause } from './random.js'

/* The faults. Each is made while clients work, and is over when its function returns. */

export interface Fault {
  readonly cluster: Cluster
  readonly findings: Findings
  readonly random: Random
  /** The process that fails. */
  readonly victim: ServerProcess
}

/** Resolves with the moment from which on the cluster should recover. */
type Case = (fault: Fault) => Promise<number>

/** Calls in which a process is killed, and the highest number of the call. */
const CALLS: readonly (readonly [string, number])[] = [
  ['tasks.create', 2],
  ['tasks.change', 8],
  ['tasks.claim', 3],
  ['tasks.get', 8],
  ['sessions.set', 4],
  ['sessions.get', 2],
  ['sessions.delete', 1],
  ['events.append', 8],
  ['events.read', 1],
  ['ownership.claim', 2],
  ['ownership.locate', 4],
  ['ownership.release', 1],
]
const PHASES = ['before', 'sent', 'after']

async function kill({ cluster, findings, victim }: Fault): Promise<number> {
  const at = performance.now()
  if ((await cluster.remove(victim, 'SIGKILL')) === 'SIGKILL') findings.kills++
  return at
}

/** Kills two of three processes. */
async function killTwo(fault: Fault): Promise<number> {
  const both = [killAtCall(fault)]
  const other = otherThan(fault)
  if (other !== undefined) both.push(killAtCall({ ...fault, victim: other }))
  return Math.max(...(await Promise.all(both)))
}

function otherThan({ cluster, random, victim }: Fault): ServerProcess | undefined {
  return random.pick(cluster.serving.filter((each) => each !== victim))
}

/** Kills a process in a call of a store; one that does not make the call is killed in half a second. */
async function killAtCall(fault: Fault): Promise<number> {
  const { random, victim } = fault
  const [call, most] = random.pick(CALLS) ?? ['tasks.change', 1]
  const phase = random.pick(PHASES) ?? 'sent'
  victim.send({ kill: call, at: random.between(1, most), phase })
  await Promise.race([victim.exited, pause(500)])
  return kill(fault)
}

async function stopAndContinue(fault: Fault): Promise<number> {
  const { victim, random } = fault
  victim.pause()
  const at = performance.now()
  await pause(3 * LEASE)
  victim.resume()
  // It may be killed at once, or when it has tried to write.
  await pause(random.between(0, 100))
  await kill(fault)
  return at
}

/** Kills Redis, and one of the processes while it is away. */
async function killRedis(fault: Fault): Promise<number> {
  const { cluster, findings, random } = fault
  await cluster.redis.kill()
  findings.kills++
  await pause(random.between(0, 2 * LEASE))
  if (random.next() < 0.5) await kill(fault)
  await cluster.redis.restart()
  return performance.now()
}

async function loseReplies(fault: Fault): Promise<number> {
  const { victim, random } = fault
  victim.proxy.set('lose replies')
  await pause(random.between(50, 2 * LEASE))
  if (random.next() < 0.5) return kill(fault)
  victim.proxy.set('refuse')
  await pause(20)
  victim.proxy.set('pass')
  const at = performance.now()
  await pause(LEASE)
  await kill(fault)
  return at
}

async function partition(fault: Fault): Promise<number> {
  const { victim, random } = fault
  const mode = random.pick(['hold', 'refuse', 'delay'] as const) ?? 'hold'
  victim.proxy.set(mode)
  await pause(random.between(LEASE / 2, 3 * LEASE))
  if (random.next() < 0.5) return kill(fault)
  victim.proxy.set('pass')
  const at = performance.now()
  await pause(LEASE)
  // Another one, when this one is back.
  await kill({ ...fault, victim: otherThan(fault) ?? victim })
  return at
}

/** What Redis refuses, and how that ends. */
const REFUSALS: readonly (readonly string[][])[] = [
  [
    ['CONFIG', 'SET', 'maxmemory', '1'],
    ['CONFIG', 'SET', 'maxmemory', '0'],
  ],
  [
    ['REPLICAOF', '127.0.0.1', '1'],
    ['REPLICAOF', 'NO', 'ONE'],
  ],
  [['SCRIPT', 'FLUSH'], []],
  [
    ['CONFIG', 'SET', 'requirepass', 'another'],
    ['CONFIG', 'SET', 'requirepass', ''],
  ],
]

async function refuse(fault: Fault): Promise<number> {
  const { cluster, random } = fault
  const [begin = [], end = []] = random.pick(REFUSALS) ?? []
  await commanding(cluster.redis.url, async (command) => {
    await command(...begin)
    // With another password, connections are refused from now on.
    await command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await pause(random.between(0, 2 * LEASE))
    if (end.length > 0) await command(...end)
  })
  return kill(fault)
}

/** Each process ends, after another one was started. */
async function restartAll({ cluster, findings }: Fault): Promise<number> {
  const old = [...cluster.processes]
  await Promise.all(old.map(() => cluster.add()))
  for (const each of old) {
    // A process that does not end by itself is a problem.
    const ending = cluster.remove(each, 'SIGTERM')
    await findings.settled('SIGTERM', ending).catch(() => {
      process.stdout.write(`${each.output}\n`)
      return cluster.remove(each, 'SIGKILL')
    })
  }
  return performance.now()
}

async function skewClock(fault: Fault): Promise<number> {
  const { cluster, random } = fault
  const skewed = await cluster.add(random.next() < 0.5 ? -1 : 1)
  await kill(fault)
  const at = performance.now()
  await pause(2 * LEASE)
  await kill({ ...fault, victim: skewed })
  return at
}

/** Several faults at the same time. */
async function interleave(fault: Fault): Promise<number> {
  const { random } = fault
  const other = otherThan(fault)
  const first = random.pick([killAtCall, stopAndContinue, loseReplies]) ?? killAtCall
  const second = random.pick([killAtCall, partition, loseReplies]) ?? killAtCall
  const both = [first(fault)]
  if (other !== undefined) both.push(second({ ...fault, victim: other }))
  if (random.next() < 0.3) both.push(killRedis(fault))
  return Math.max(...(await Promise.all(both)))
}

/** Nothing stays: every key has a time to live. */
async function findKeysWithoutExpiry(fault: Fault): Promise<number> {
  const { cluster, findings } = fault
  const at = await killTwo(fault)
  const keys = await commanding(cluster.redis.url, async (command) => {
    const names = (await command('KEYS', '*')) as string[] // KEYS returns names
    const times = await Promise.all(names.map((name) => command('PTTL', name)))
    return names.filter((_, index) => times[index] === -1)
  })
  if (keys.length > 0) findings.problem(`keys without a time to live: ${keys.slice(0, 5).join()}`)
  return at
}

/** In the order of a round. The failover (6) and the journal (12) have servers of their own. */
export const CASES: readonly (readonly [string, Case])[] = [
  ['1 kill -9 at every script boundary', killTwo],
  ['2 SIGSTOP for 3 x lease, then SIGCONT', stopAndContinue],
  ['3 kill -9 redis, restart', killRedis],
  ['4 reply lost', loseReplies],
  ['5 partition of one process', partition],
  ['7 OOM, NOSCRIPT, READONLY, AUTH failure', refuse],
  ['8 rolling restart under load', restartAll],
  ['9 clock skew', skewClock],
  ['10 random interleavings', interleave],
  ['11 keys without expiry', findKeysWithoutExpiry],
]
