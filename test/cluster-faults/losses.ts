import { InitializedSession } from '../http/caller.js'
import { RedisServer, commanding } from '../redis/redis-server.js'
import { TcpProxy } from '../redis/tcp-proxy.js'
import { Cluster, running } from './cluster.js'
import { pause } from './random.js'

/* What is lost where Redis promises less. */

/** Milliseconds for which sessions are created, and by which a replica is late. */
const DURATION = 3000
const LAG = 200

interface Weakness {
  /** Options of Redis. */
  readonly options?: string[]
  /** A replica that is late takes over. Otherwise the same server is restarted. */
  readonly failover?: boolean
}

/** Kills Redis and the processes while sessions are created; returns how many of those acknowledged are lost. */
export async function measureLosses(
  program: string,
  { options = [], failover = false }: Weakness,
): Promise<string> {
  const cluster = await Cluster.start(program, 1, ...options)
  const link = await TcpProxy.start(cluster.redis.port)
  const replica = failover ? await RedisServer.start() : undefined
  if (replica !== undefined) running.add(replica)
  try {
    if (replica !== undefined) await replicate(replica, link)
    const keys = await acknowledged(cluster, link)
    // A process that lives would store its sessions again.
    for (const each of cluster.processes.slice()) await cluster.remove(each, 'SIGKILL')
    if (replica === undefined) await cluster.redis.restart()
    const { url } = replica ?? cluster.redis
    const kept = await commanding(url, (command) =>
      Promise.all(keys.map((key) => command('EXISTS', key))),
    )
    return `${kept.filter((each) => each !== 1).length} of ${keys.length} acknowledged sessions`
  } finally {
    await cluster.stop()
    await link.stop()
    await replica?.stop()
    if (replica !== undefined) running.delete(replica)
  }
}

async function replicate(replica: RedisServer, link: TcpProxy): Promise<void> {
  await commanding(replica.url, async (command) => {
    await command('REPLICAOF', '127.0.0.1', String(link.port))
    for (let info = ''; !info.includes('master_link_status:up'); await pause(20))
      info = String(await command('INFO', 'replication'))
  })
}

/** The keys of the sessions that were acknowledged until Redis was killed. The link to a replica fails shortly before. */
async function acknowledged(cluster: Cluster, link: TcpProxy): Promise<string[]> {
  const [server] = cluster.processes
  if (server === undefined) throw new Error('no process was started')
  const keys: string[] = []
  const killed = new AbortController()
  const work = async () => {
    while (!killed.signal.aborted) {
      const client = await InitializedSession.open(server.url, '2025-11-25').catch(() => undefined)
      if (client !== undefined) keys.push(`{${cluster.prefix}}:s:${client.session.slice(0, -20)}`)
    }
  }
  const working = [work(), work(), work(), work()]
  await pause(DURATION)
  link.set('hold')
  await pause(LAG)
  await cluster.redis.kill()
  killed.abort()
  await Promise.all(working)
  return keys
}
