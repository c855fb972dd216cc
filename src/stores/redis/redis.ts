import type { ChangeBus } from '../change-bus.js'
import type { EventStore } from '../event-store.js'
import type { SessionStore } from '../session-store.js'
import { ChangeStream } from './change-stream.js'
import { redisChanges } from './changes.js'
import type { TaskStore } from '../task-store.js'
import { Connection } from './connection.js'
import { RedisEventStore } from './event-store.js'
import { Keys } from './keys.js'
import type { RedisClient } from './link.js'
import { RedisOwnership } from './ownership.js'
import { RedisSessionStore } from './session-store.js'
import { SettingsCheck } from './settings.js'
import { type RedisTaskOptions, RedisTaskStore } from './task-store.js'
import { parseUrl } from '../../runtime.js'

export interface RedisOptions {
  /** Start of all keys; the same in all processes of one server, and another one for each server (default `ccmcp`). */
  prefix?: string
  /**
   * Where other processes reach this one: a host, to which the port of `listen` is added, or an origin such as
   * `http://10.0.0.5:3000`. Without it, requests of a session are not passed on: each process takes it over.
   */
  address?: string
  /** A secret of at least 32 characters that all processes share, by which they recognize each other; required with `address`. */
  key?: string
  /** Milliseconds after which the sessions and the running tasks of a process that has failed are taken over (default 10 s). */
  lease?: number
  /** Milliseconds until a command to Redis fails (default 2 s, at most a quarter of `lease`); opening a connection may take three times as long. */
  timeout?: number
  /** Maximum number of events that are stored per stream (default 1000). */
  maxEventsPerStream?: number
  /** Maximum bytes of events that are stored per stream, not counting its newest event (default 1 MiB). */
  maxBytesPerStream?: number
  /** Maximum bytes of all stored events (default 128 MiB). Beyond it, the streams that were idle longest are deleted. */
  maxEventBytes?: number
  /** Maximum bytes of the stored events of one principal (default 32 MiB); callers without authentication have no limit of their own. */
  maxEventBytesPerOwner?: number
  /** Limits on stored tasks: see `RedisTaskOptions`. */
  tasks?: RedisTaskOptions
}

/** What several processes share in Redis. */
export interface RedisStores {
  readonly sessions: SessionStore
  readonly events: EventStore
  readonly changes: ChangeBus
  /** For `tasks({ store })` of `ccmcp/tasks`. */
  readonly tasks: TaskStore
  /** Closes the connections. Not needed for stores that are used by an endpoint: `close` of the endpoint does so. */
  close(): Promise<void>
}

const NAMES: ReadonlySet<string> = new Set([
  'prefix',
  'address',
  'key',
  'lease',
  'timeout',
  'maxEventsPerStream',
  'maxBytesPerStream',
  'maxEventBytes',
  'maxEventBytesPerOwner',
  'tasks',
] satisfies (keyof RedisOptions)[])
const TASK_NAMES: ReadonlySet<string> = new Set([
  'maxTasks',
  'maxBytes',
  'maxTasksPerOwner',
  'maxBytesPerOwner',
] satisfies (keyof RedisTaskOptions)[])
const MIN_KEY = 32
const MIB = 1024 * 1024

/**
 * Stores in Redis 7 or Valkey for servers of several processes. `client` is one of the packages `redis` or `ioredis`. It
 * is not used itself: the stores open connections of their own with its options when they need them.
 */
export function redis(client: RedisClient, options: RedisOptions = {}): RedisStores {
  check(options)
  const { prefix = 'ccmcp', address, key, lease = 10_000 } = options
  const { timeout = Math.min(2000, lease / 4) } = options
  const { maxEventsPerStream = 1000, maxBytesPerStream = MIB } = options
  const { maxEventBytes = 128 * MIB, maxEventBytesPerOwner = 32 * MIB } = options
  const limits = { maxEventsPerStream, maxBytesPerStream, maxEventBytes, maxEventBytesPerOwner }
  checkNumbers({ lease, timeout, ...limits })
  const another = () => new Connection(client, timeout)
  const connection = another()
  const keys = new Keys(prefix)
  const settings = new SettingsCheck()
  const ownership = new RedisOwnership(connection, keys, { address, key, lease, settings })
  // Connections of their own: sessions do not wait for large tasks, and nothing for what waits for changes.
  const tasks = new RedisTaskStore(another(), another(), keys, {
    ...options.tasks,
    lease,
    settings,
  })
  const changes = new ChangeStream(connection, another(), keys, timeout)
  return {
    sessions: new RedisSessionStore(connection, keys, ownership),
    events: new RedisEventStore(connection, keys, limits),
    changes: redisChanges(changes, connection),
    tasks,
    async close() {
      tasks.close()
      await ownership.close()
    },
  }
}

/** Options may be written in JavaScript. */
function checkNames(where: string, options: object, known: ReadonlySet<string>): void {
  for (const name of Object.keys(options))
    if (!known.has(name)) {
      const names = [...known].join(', ')
      const error = new TypeError(`${where}: unknown option "${name}"; the options are ${names}`)
      throw Object.assign(error, { code: 'UNKNOWN_OPTION' })
    }
}

function check(options: RedisOptions): void {
  checkNames('redis', options, NAMES)
  checkNames('redis: "tasks"', options.tasks ?? {}, TASK_NAMES)
  const { address, key } = options
  if (address !== undefined && !isAddress(address))
    throw new TypeError(
      `redis: "address" must be a host such as 10.0.0.5 or an origin such as http://10.0.0.5:3000, not ${JSON.stringify(address)}`,
    )
  if (address !== undefined && key === undefined)
    throw new TypeError('redis: "address" needs "key", a secret that all processes share')
  if (key !== undefined && (typeof key !== 'string' || key.length < MIN_KEY))
    throw new TypeError(`redis: "key" must have at least ${MIN_KEY} characters`)
}

function isAddress(address: unknown): boolean {
  if (typeof address !== 'string') return false
  if (!address.includes('://')) return /^(?:[\w.-]+|\[?[\da-fA-F:.]+\]?)$/.test(address)
  const url = parseUrl(address)
  if (url === undefined) return false
  const { protocol, pathname, search, hash, username, password } = url
  return /^https?:$/.test(protocol) && pathname + search + hash + username + password === '/'
}

function checkNumbers(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers))
    if (!(Number.isFinite(value) && value >= 1))
      throw new TypeError(`redis: "${name}" must be a number of 1 or more, not ${String(value)}`)
}
