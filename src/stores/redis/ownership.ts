import type { OwnershipStart, SessionLocation, SessionOwnership } from '../session-ownership.js'
import type { Connection } from './connection.js'
import type { Keys } from './keys.js'
import { asText, asTexts } from './replies.js'
import { type Script, whole } from './script.js'
import type { SettingsCheck } from './settings.js'
import { unref } from '../../runtime.js'

export interface RedisOwnershipOptions {
  /** A host, to which the port of `listen` is added, or an origin; undefined if others cannot reach this process. */
  address: string | undefined
  key: string | undefined
  lease: number
  settings: SettingsCheck
}

/*
 * A process that others can reach has a key with its address and a time to live: its lease. A session belongs to the
 * process that its hash names, for as long as that key exists. So one command renews the lease of all its sessions, and
 * one command releases them.
 */

const CLAIM: Script = {
  source: `
local stored = redis.call('HMGET', KEYS[1], 'g', 'o', 'd')
if not stored[1] or stored[3] or stored[1] ~= ARGV[1] then return 0 end
local owner = stored[2] or ''
if owner ~= ARGV[3] then return 0 end
if owner ~= '' and owner ~= ARGV[4] and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[3]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'g', ARGV[2])
if ARGV[4] == '' then redis.call('HDEL', KEYS[1], 'o') else redis.call('HSET', KEYS[1], 'o', ARGV[4]) end
return 1`,
}

const RELEASE: Script = {
  source: `
local stored = redis.call('HMGET', KEYS[1], 'g', 'o')
if stored[1] == ARGV[1] and stored[2] == ARGV[2] then return redis.call('HDEL', KEYS[1], 'o') end
return 0`,
}

/** Which process serves a session, decided by Redis. */
export class RedisOwnership implements SessionOwnership {
  readonly process: string
  readonly key: string | undefined
  readonly lease: number
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #settings: SettingsCheck
  readonly #given: string | undefined
  #address = ''
  #start: OwnershipStart | undefined
  #term = 0
  /** By the clock of this process, when its lease ends. */
  #until = 0
  #renewing: Promise<boolean> | undefined
  /** Whether the last renewal has failed. Redis may have executed it nevertheless, or may still do so. */
  #failed = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(
    connection: Connection,
    keys: Keys,
    { address, key, lease, settings }: RedisOwnershipOptions,
  ) {
    this.#connection = connection
    this.#settings = settings
    this.#keys = keys
    this.#given = address
    this.key = key
    this.lease = lease
    this.process = address === undefined ? '' : crypto.randomUUID()
  }

  start(options: OwnershipStart): void {
    if (this.#start !== undefined)
      throw new TypeError(
        'redis: these stores are used by another endpoint already. Call redis() for each, with a prefix of its own for each server',
      )
    this.#address = originOf(this.#given, options.listening)
    this.#start = options
    this.#connection.open()
    if (this.#given !== undefined) void this.#keepRenewing()
    void this.#settings.warn(this.#connection, options.report)
  }

  get term(): number | undefined {
    return performance.now() < this.#until ? this.#term : undefined
  }

  renew(): Promise<boolean> {
    if (this.#given === undefined || this.#closed) return Promise.resolve(false)
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined))
    return this.#renewing
  }

  async confirm(name: string, generation: number): Promise<'owned' | 'lost' | 'missing'> {
    const key = this.#keys.session(name)
    const reply = await this.#connection.command(['HMGET', key, 'g', 'o', 'd'], key)
    const [stored, owner = '', deleted] = asTexts(reply)
    if (deleted !== undefined) return 'lost'
    if (stored === undefined) return 'missing'
    return Number(stored) === generation && owner === this.process ? 'owned' : 'lost'
  }

  async locate(name: string): Promise<SessionLocation> {
    const key = this.#keys.session(name)
    const reply = await this.#connection.command(['HMGET', key, 'g', 'o'], key)
    const [generation, owner = ''] = asTexts(reply)
    if (generation === undefined) return { at: 'nowhere' }
    if (owner === '' || owner === this.process) return { at: 'free', owner }
    const address = await this.#addressOf(owner)
    if (address === undefined) return { at: 'free', owner }
    return { at: 'process', process: owner, address }
  }

  async isAlive(process: string): Promise<boolean> {
    return (await this.#addressOf(process)) !== undefined
  }

  async #addressOf(process: string): Promise<string | undefined> {
    const key = this.#keys.process(process)
    return asText(await this.#connection.command(['GET', key], key))
  }

  async claim(name: string, from: number, to: number, owner: string): Promise<boolean> {
    const keys = [
      this.#keys.session(name),
      this.#keys.process(owner),
      this.#keys.process(this.process),
    ]
    const parameters = [String(from), String(to), owner, this.process]
    return Number(await this.#connection.run(CLAIM, keys, parameters)) === 1
  }

  async release(name: string, generation: number): Promise<void> {
    if (this.process === '') return
    const parameters = [String(generation), this.process]
    await this.#connection.run(RELEASE, [this.#keys.session(name)], parameters)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#renewing
    this.#until = 0
    const key = this.#keys.process(this.process)
    try {
      if (this.process !== '') await this.#connection.command(['UNLINK', key], key)
    } catch {
      // The lease ends by itself.
    } finally {
      this.#connection.close()
    }
  }

  /** Renews three times per lease, more often while that fails. */
  async #keepRenewing(): Promise<void> {
    const renewed = await this.renew()
    if (this.#closed) return
    const wait = renewed ? this.lease / 3 : Math.min(this.lease / 6, 1000)
    this.#timer = unref(setTimeout(() => void this.#keepRenewing(), wait))
  }

  async #renew(): Promise<boolean> {
    const key = this.#keys.process(this.process)
    const sent = performance.now()
    const command = ['SET', key, this.#address, 'PX', whole(this.lease), 'GET']
    try {
      const before = asText(await this.#connection.command(command, key))
      // The key may also have been missing when a renewal was executed whose reply nobody has read.
      const hasLapsed = before === undefined || this.#failed || this.term === undefined
      // Counted from before the command: for others, the lease ends later.
      this.#until = sent + this.lease
      this.#failed = false
      if (hasLapsed && ++this.#term > 1) this.#start?.lapsed()
    } catch (error) {
      if (!this.#failed)
        this.#start?.report({
          level: 'error',
          message: 'The lease of this process on its sessions could not be renewed in Redis',
          error,
        })
      this.#failed = true
    }
    return this.term !== undefined
  }
}

/** The origin by which other processes reach this one. */
function originOf(
  address: string | undefined,
  listening: { scheme: string; port: number } | undefined,
): string {
  if (address === undefined) return ''
  if (address.includes('://')) return new URL(address).origin
  if (listening === undefined)
    throw new TypeError(
      `redis: "address" must be an origin such as http://10.0.0.5:3000 without "listen", not ${JSON.stringify(address)}`,
    )
  const host = address.includes(':') && !address.startsWith('[') ? `[${address}]` : address
  return new URL(`${listening.scheme}://${host}:${listening.port}`).origin
}
