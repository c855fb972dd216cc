import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type RedisOptions, redis } from '../../src/redis.js'
import { listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { InitializedSession } from '../http/caller.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* What the events of streams may occupy in Redis, in all and of one principal. */

const TTL = 60_000
/** What a small stream is charged. */
const SMALL = 4696

describe.skipIf(!hasRedis)('events in Redis', () => {
  let server: Awaited<ReturnType<typeof sharedServer>>
  let prefix = ''
  const stops: (() => unknown)[] = []
  beforeAll(async () => {
    server = await sharedServer()
  })
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop()
  })

  function make(options: RedisOptions) {
    prefix = newPrefix()
    const made = redis(createClient({ url: server.url }), { prefix, ...options })
    stops.push(() => made.close())
    const { events } = made
    let number = 0
    return {
      ...made,
      /** Appends an event to a stream of an owner. */
      append: (stream: string, owner?: string, length = 1) =>
        // Each later than the one before, though in the same millisecond.
        events.append(stream, { number: ++number, frame: 'x'.repeat(length) }, TTL + 2 * number, {
          session: 's',
          generation: 0,
          owner,
        }),
      /** The streams that have events. */
      async left(...streams: string[]) {
        const found = await Promise.all(
          streams.map(async (stream) => await events.read(stream, -1)),
        )
        return streams.filter((_, index) => found[index]?.length !== 0)
      },
    }
  }
  const commands = <Result>(
    use: (command: (...parts: string[]) => Promise<unknown>) => Promise<Result>,
  ) => commanding(server.url, use)
  /** What is charged, by field: as an object of texts. */
  const usage = () =>
    commands(async (command) => {
      const reply = (await command('HGETALL', `{${prefix}}:eu`)) as Record<string, string> // as HGETALL replies
      return { ...reply }
    })

  it('are limited in all: the streams that were idle longest are deleted', async () => {
    const { append, left } = make({ maxEventBytes: 3 * SMALL })
    for (const [stream, owner] of [['a'], ['b', 'ada'], ['c', 'bob'], ['a'], ['d']] as const)
      await append(stream, owner)
    expect(await left('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
    await append('d', undefined, SMALL)
    expect(await left('a', 'c', 'd')).toEqual(['a', 'd'])
    // The one that is appended to stays.
    await append('e', undefined, 9 * SMALL)
    expect(await left('a', 'd', 'e')).toEqual(['e'])
    expect(Object.keys(await usage()).toSorted()).toEqual(['b:', 'bytes', 's:e'])
  })

  it('are limited per principal, who evicts only streams of its own', async () => {
    const { append, left } = make({ maxEventBytes: 9 * SMALL, maxEventBytesPerOwner: 2 * SMALL })
    await append('b', 'bob')
    for (const stream of ['a1', 'a2', 'a3']) await append(stream, 'ada')
    for (const stream of ['x1', 'x2', 'x3']) await append(stream)
    const all = ['b', 'a1', 'a2', 'a3', 'x1', 'x2', 'x3']
    expect(await left(...all)).toHaveLength(6)
    expect(await left('b', 'a3', 'x1', 'x2', 'x3')).toHaveLength(5)
    expect(await usage()).toMatchObject({
      bytes: String(6 * SMALL),
      'b:ada': String(2 * SMALL),
      'b:bob': String(SMALL),
      'b:': String(3 * SMALL),
    })
  })

  it('are charged about what they occupy, until they are deleted or have expired', async () => {
    const { append, events } = make({ maxBytesPerStream: 20_000 })
    const memory = () =>
      commands(async (command) => {
        const keys = (await command('KEYS', `{${prefix}}*`)) as string[] // KEYS returns names
        let bytes = 0
        for (const key of keys) bytes += Number(await command('MEMORY', 'USAGE', key))
        return bytes
      })
    for (let count = 0; count < 2000; count++)
      await append(`s${count % 50}`, `o${count % 3}`, count % 700)
    const { bytes, ...parts } = await usage()
    const sum = (start: string) =>
      Object.entries(parts)
        .filter(([field]) => field.startsWith(start))
        .reduce((total, [, text]) => total + Number.parseInt(text, 10), 0)
    expect([sum('b:'), sum('s:')]).toEqual([Number(bytes), Number(bytes)])
    const held = await memory()
    expect(Number(bytes)).toBeGreaterThan(held / 2)
    expect(Number(bytes)).toBeLessThan(held * 2)
    for (let count = 0; count < 25; count++) await events.delete(`s${count}`)
    // As if Redis had deleted the others because they have expired.
    await commands(async (command) => {
      for (let count = 25; count < 50; count++) {
        await command('DEL', `{${prefix}}:e:s${count}`)
        await command('ZADD', `{${prefix}}:ex`, '1', `s${count}`)
      }
    })
    for (let count = 0; count < 2; count++) await append('last', 'ada', 9)
    expect(await usage()).toEqual({
      bytes: String(SMALL),
      'b:ada': String(SMALL),
      's:last': `${SMALL} ada`,
    })
  })

  it('of a session count against its principal', async () => {
    const { events } = make({})
    const told = tool({
      name: 'told',
      run(_, call) {
        call.progress(1, 2)
        return 'done'
      },
    })
    const listening = await listen(createServer({ name: 'x', version: '1', tools: [told] }), {
      port: 0,
      auth: { verify: () => ({ id: 'ada', scopes: [] }) },
      eventStore: events,
    })
    stops.unshift(() => listening.close(0))
    const client = await InitializedSession.open(
      listening.url,
      '2025-11-25',
      {},
      { authorization: 'Bearer t' },
    )
    const progressing = { _meta: { progressToken: 'p' } }
    await client.request('tools/call', { name: 'told', arguments: {}, ...progressing })
    const fields = Object.keys(await usage())
    expect(fields.filter((field) => field.startsWith('b'))).toEqual(['bytes', 'b:ada'])
  })
})
