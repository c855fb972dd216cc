import type { SessionRecord, SessionStore } from '../session-store.js'
import type { Connection } from './connection.js'
import type { Keys } from './keys.js'
import type { RedisOwnership } from './ownership.js'
import { asTexts } from './replies.js'
import { type Script, whole } from './script.js'

/*
 * A session is a hash: `g` generation, `s` state, `n` the generation and sequence of the last `set`, `o` the process that
 * owns it; or after its end only `d`, so that a late `set` does not revive it. It always has a time to live. A `set` that
 * arrives late overwrites neither a newer state nor, within its generation, the owner: the process may have released the
 * session since.
 */

const SET: Script = {
  source: `
local stored = redis.call('HMGET', KEYS[1], 'g', 'd', 'n')
if stored[2] or (stored[1] and tonumber(stored[1]) > tonumber(ARGV[1])) then return 0 end
if ARGV[5] == '' then redis.call('HDEL', KEYS[1], 'n') else
  local generation, sequence = string.match(stored[3] or '', '^(%d+):(%d+)$')
  if generation == ARGV[1] and tonumber(sequence) > tonumber(ARGV[5]) then return 1 end
  redis.call('HSET', KEYS[1], 'n', ARGV[1] .. ':' .. ARGV[5])
end
redis.call('HSET', KEYS[1], 'g', ARGV[1], 's', ARGV[2])
if stored[1] ~= ARGV[1] then
  if ARGV[4] == '' then redis.call('HDEL', KEYS[1], 'o') else redis.call('HSET', KEYS[1], 'o', ARGV[4]) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`,
}

const DELETE: Script = {
  source: `
local stored = redis.call('HGET', KEYS[1], 'g')
if stored and ARGV[2] ~= '' and tonumber(stored) > tonumber(ARGV[2]) then return 0 end
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'd', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`,
}

/** Stores sessions in Redis. */
export class RedisSessionStore implements SessionStore {
  readonly ownership: RedisOwnership
  readonly #connection: Connection
  readonly #keys: Keys

  constructor(connection: Connection, keys: Keys, ownership: RedisOwnership) {
    this.#connection = connection
    this.#keys = keys
    this.ownership = ownership
  }

  async get(name: string): Promise<SessionRecord | undefined> {
    const key = this.#keys.session(name)
    const reply = await this.#connection.command(['HMGET', key, 'g', 's'], key)
    const [generation, state] = asTexts(reply)
    if (generation === undefined || state === undefined) return undefined
    return { generation: Number(generation), state }
  }

  async set(name: string, record: SessionRecord, ttl: number): Promise<boolean> {
    const { generation, state, sequence } = record
    const parameters = [
      String(generation),
      state,
      whole(ttl),
      this.ownership.process,
      sequence === undefined ? '' : String(sequence),
    ]
    return Number(await this.#connection.run(SET, [this.#keys.session(name)], parameters)) === 1
  }

  async delete(name: string, ttl: number, generation?: number): Promise<boolean> {
    const parameters = [whole(ttl), generation === undefined ? '' : String(generation)]
    return Number(await this.#connection.run(DELETE, [this.#keys.session(name)], parameters)) === 1
  }
}
