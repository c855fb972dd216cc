/* Connections of the clients of other packages: node-redis and ioredis, each for one server and for a cluster. */

/** A client of the package `redis` (`createClient`, `createCluster`) or `ioredis` (`Redis`, `Cluster`). */
export interface RedisClient {
  duplicate(...options: never[]): object
}

/** A connection of our own, made from the options of a user's client. */
export interface Link {
  /** Resolves when commands can be sent. May never settle. */
  readonly ready: Promise<unknown>
  readonly isReady: boolean
  /** When it was opened, by the clock of `performance.now`. */
  readonly opened: number
  /** The last error that the client has emitted. */
  readonly lastError: unknown
  /** Sends a command to the process that has `key`. May never settle. */
  send(command: readonly string[], key: string | undefined): Promise<unknown>
  /** Closes the connection at once: commands in progress fail. */
  destroy(): void
}

/** What we use of a duplicate. */
interface NodeRedis {
  connect(): Promise<unknown>
  sendCommand(command: readonly string[]): Promise<unknown>
  destroy(): void
  on(event: 'error' | 'connect', listener: (error: unknown) => void): unknown
}
interface NodeRedisCluster extends Omit<NodeRedis, 'sendCommand'> {
  sendCommand(
    key: string | undefined,
    isReadOnly: boolean,
    command: readonly string[],
  ): Promise<unknown>
}
interface IoRedis {
  connect(): Promise<unknown>
  call(command: string, ...parameters: readonly string[]): Promise<unknown>
  disconnect(): void
  on(event: 'error' | 'connect', listener: (error: unknown) => void): unknown
}

type Kind = 'node-redis' | 'node-redis cluster' | 'ioredis' | 'ioredis cluster'

/** Options of a duplicate: commands fail, instead of waiting, while there is no connection, and are not repeated. */
const NODE_REDIS = { disableOfflineQueue: true, commandOptions: {} }
/** We have time limits of our own, which are longer for commands that wait. */
const NO_TIME_LIMITS = { commandTimeout: undefined, socketTimeout: undefined }
const IOREDIS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  stringNumbers: false,
  ...NO_TIME_LIMITS,
}
const IOREDIS_CLUSTER = {
  lazyConnect: true,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  // A replica may not have what was written last.
  scaleReads: 'master',
  redisOptions: NO_TIME_LIMITS,
}

/** The kind of a client; throws if it is none of ours. */
export function kindOf(client: unknown): Kind {
  const has = (member: string) =>
    typeof (client as Record<string, unknown> | null | undefined)?.[member] === 'function'
  if (typeof client === 'object' && client !== null && has('duplicate')) {
    if (has('call')) return has('nodes') ? 'ioredis cluster' : 'ioredis'
    if (has('sendCommand')) return 'masters' in client ? 'node-redis cluster' : 'node-redis'
  }
  throw new TypeError(
    'redis: expected a client of the package "redis" (createClient, createCluster) or "ioredis" (Redis, Cluster)',
  )
}

/** Opens a connection with the options of a client, which is not used itself. */
export function openLink(client: RedisClient): Link {
  const kind = kindOf(client)
  // `kindOf` has checked what these are.
  const duplicate = client.duplicate as (...options: unknown[]) => unknown
  switch (kind) {
    case 'node-redis': {
      const { options } = client as { options?: { socket?: object } } // of `createClient`
      const socket = { ...options?.socket, socketTimeout: undefined }
      const made = duplicate.call(client, { ...NODE_REDIS, socket }) as NodeRedis
      return linkOf(
        made,
        (command) => made.sendCommand(command),
        () => made.destroy(),
      )
    }
    case 'node-redis cluster': {
      const made = duplicate.call(client, { commandOptions: {} }) as NodeRedisCluster
      const send: Link['send'] = (command, key) => made.sendCommand(key, false, command)
      return linkOf(made, send, () => made.destroy())
    }
    case 'ioredis':
      return ioredisLink(duplicate.call(client, IOREDIS) as IoRedis)
    case 'ioredis cluster':
      return ioredisLink(duplicate.call(client, [], IOREDIS_CLUSTER) as IoRedis)
  }
}

function ioredisLink(made: IoRedis): Link {
  const send: Link['send'] = ([name = '', ...parameters]) => made.call(name, ...parameters)
  return linkOf(made, send, () => made.disconnect())
}

function linkOf(
  made: Pick<NodeRedis, 'connect' | 'on'>,
  send: Link['send'],
  destroy: () => void,
): Link {
  let lastError: unknown
  let isReady = false
  // Without a listener, an error would end the process.
  made.on('error', (error) => (lastError = error))
  const ready = made.connect()
  ready.then(
    () => (isReady = true),
    (error: unknown) => (lastError ??= error),
  )
  const close = () => {
    try {
      destroy()
    } catch {
      // It was closed already.
    }
  }
  return {
    ready,
    opened: performance.now(),
    get isReady() {
      return isReady
    },
    get lastError() {
      return lastError
    },
    send,
    destroy() {
      // node-redis forgets a socket that is being connected: it would stay open, and keep the process alive.
      if (!isReady) made.on('connect', close)
      close()
    },
  }
}
