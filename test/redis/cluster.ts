import { createClient } from 'redis'
import { type ListenOptions, type Listening, listen } from '../../src/http.js'
import type { Server } from '../../src/index.js'
import { type RedisOptions, type RedisStores, redis } from '../../src/redis.js'

/* Several servers in one process that share sessions, as several processes would. */

export const KEY = 'a key that all processes of a test share'

export class Cluster {
  readonly url: string
  readonly prefix: string
  readonly #options: RedisOptions
  readonly #started: Listening[] = []
  /** What all of them have logged. */
  readonly lines: string[] = []

  constructor(url: string, prefix: string, options: RedisOptions = {}) {
    this.url = url
    this.prefix = prefix
    // Long: any process may stand still for seconds on a busy machine.
    const patient = { lease: 60_000, timeout: 20_000 }
    this.#options = { address: '127.0.0.1', key: KEY, ...patient, ...options }
  }

  /** The stores of one more. */
  stores(more: RedisOptions = {}, url = this.url): RedisStores {
    return redis(createClient({ url }), { prefix: this.prefix, ...this.#options, ...more })
  }

  /** Starts one more. `url` is where it reaches Redis. */
  async start(
    server: Server,
    { url = this.url, ...options }: ListenOptions & { url?: string } = {},
    more: RedisOptions = {},
  ): Promise<Listening> {
    const stores = this.stores(more, url)
    const log = { write: (line: string) => void this.lines.push(line) }
    const listening = await listen(server, { port: 0, stores, log, logLevel: 'info', ...options })
    this.#started.push(listening)
    return listening
  }

  async close(): Promise<void> {
    await Promise.all(this.#started.splice(0).map((each) => each.close(0)))
  }
}
