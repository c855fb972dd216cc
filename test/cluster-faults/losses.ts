import { InitializedSession, send, statelessRequest } from '../http/caller.js'
import { RedisServer, commanding } from '../redis/redis-server.js'
import { Cluster } from './cluster.js'
import { pause } from './random.js'

/* What is lost where Redis promises less. */

/** Milliseconds for which sessions and tasks are created. */
const DURATION = 3000

interface Weakness {
  /** Options of Redis. */
  readonly options?: string[]
  /** A replica that is late takes over. Otherwise the same server is restarted. */
  readonly failover?: boolean
}

/** Kills Redis and the processes while sessions and tasks are created; returns how many of those acknowledged are lost. */
export async function measureLosses(
  program: string,
  { options = [], failover = false }: Weakness,
): Promise<string> {
  const cluster = await Cluster.start(program, 1, ...options)
  const replica = failover ? await RedisServer.start() : undefined
  try {
    await replicate(cluster, replica)
    const names = await acknowledgeUntil(cluster, DURATION)
    await cluster.redis.kill()
    // A process that lives would store its sessions again.
    for (const each of [...cluster.processes]) await cluster.remove(each, 'SIGKILL')
    if (replica === undefined) await cluster.redis.restart()
    const { url } = replica ?? cluster.redis
    const kept = await commanding(url, (command) =>
      Promise.all(names.map((key) => command('EXISTS', key))),
    )
    return `${kept.filter((each) => each !== 1).length} of ${names.length} sessions`
  } finally {
    await cluster.stop()
    await replica?.stop()
  }
}

/** The replica is stopped for a moment at the end: it is late. */
async function replicate(cluster: Cluster, replica: RedisServer | undefined): Promise<void> {
  if (replica === undefined) return
  await commanding(replica.url, async (command) => {
    await command('REPLICAOF', '127.0.0.1', String(cluster.redis.port))
    for (let info = ''; !info.includes('master_link_status:up'); await pause(20))
      info = String(await command('INFO', 'replication'))
  })
}

/** The keys of the sessions that were acknowledged. */
async function acknowledgeUntil(cluster: Cluster, duration: number): Promise<string[]> {
  const [server] = cluster.processes
  if (server === undefined) throw new Error('no process was started')
  const keys: string[] = []
  const until = performance.now() + duration
  const work = async () => {
    while (performance.now() < until) {
      const client = await InitializedSession.open(server.url, '2025-11-25').catch(() => undefined)
      if (client === undefined) continue
      keys.push(`{${cluster.prefix}}:s:${client.session.slice(0, -20)}`)
    }
  }
  await Promise.all([work(), work(), work(), work()])
  return keys
}
