import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Connection } from '../../src/stores/redis/connection.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

describe.skipIf(!hasRedis)('a connection to Redis', () => {
  let server: Awaited<ReturnType<typeof sharedServer>>
  beforeAll(async () => {
    server = await sharedServer()
  })
  afterAll(() => server.stop())

  /** A connection, and how many there are of its client. */
  const made = () => {
    const name = newPrefix()
    const connection = new Connection(createClient({ url: server.url, name }), 20_000)
    const count = () =>
      commanding(server.url, async (command) => {
        const list = String(await command('CLIENT', 'LIST'))
        return list.split('\n').filter((line) => line.includes(` name=${name} `)).length
      })
    return { connection, count }
  }

  it('stays open between commands', async () => {
    const { connection, count } = made()
    await connection.command(['PING'])
    expect(await count()).toBe(1)
    connection.close()
    await expect.poll(count).toBe(0)
  })

  it('that was closed does not stay open after later commands', async () => {
    const { connection, count } = made()
    connection.close()
    expect(await Promise.all([connection.command(['PING']), connection.command(['PING'])])).toEqual(
      ['PONG', 'PONG'],
    )
    await expect.poll(count).toBe(0)
    await expect(connection.command(['NO', 'SUCH'])).rejects.toThrow('unknown command')
    await expect.poll(count).toBe(0)
  })

  it('stays open again when it is used again', async () => {
    const { connection, count } = made()
    connection.close()
    connection.open()
    await connection.command(['PING'])
    expect(await count()).toBe(1)
    connection.close()
  })
})

describe('the time limit of a command to Redis', () => {
  afterEach(() => void vi.useRealTimers())

  /** Connections to a server whose handshake and replies take so many milliseconds. */
  const slow = (handshake: number, reply: number) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const after = <Value>(milliseconds: number, value: Value) =>
      new Promise<Value>((resolve) => setTimeout(resolve, milliseconds, value))
    const made: { sent: number; destroyed: boolean }[] = []
    const duplicate = () => {
      const link = { sent: 0, destroyed: false }
      made.push(link)
      return {
        on: () => {},
        connect: () => after(handshake, undefined),
        call: () => {
          link.sent++
          return after(reply, 'PONG')
        },
        disconnect: () => void (link.destroyed = true),
      }
    }
    // As `ioredis` has it.
    const client = { duplicate, call: () => {} }
    return { connection: new Connection(client, 1000), made }
  }
  const outcome = (sent: Promise<unknown>) => sent.catch(({ message }: Error) => message)

  it('begins when the connection is ready', async () => {
    const { connection, made } = slow(1500, 900)
    const first = outcome(connection.command(['PING']))
    await vi.advanceTimersByTimeAsync(1400)
    const second = outcome(connection.command(['PING']))
    await vi.advanceTimersByTimeAsync(1000)
    expect(await Promise.all([first, second])).toEqual(['PONG', 'PONG'])
    expect(made).toEqual([{ sent: 2, destroyed: false }])
  })

  it('ends a connection on which nothing replies', async () => {
    const { connection, made } = slow(1500, 1100)
    const late = outcome(connection.command(['PING']))
    await vi.advanceTimersByTimeAsync(2500)
    expect(await late).toBe('Redis has not replied within 1000 ms')
    expect(made).toEqual([{ sent: 1, destroyed: true }])
  })

  it('is three times as long for the connection itself; then nothing is sent any more', async () => {
    const { connection, made } = slow(3100, 0)
    const early = outcome(connection.command(['PING']))
    await vi.advanceTimersByTimeAsync(2900)
    const late = outcome(connection.command(['PING']))
    await vi.advanceTimersByTimeAsync(100)
    const given = 'Redis cannot be reached: Redis has not replied within 3000 ms'
    expect(await Promise.all([early, late])).toEqual([given, given])
    await vi.advanceTimersByTimeAsync(1000)
    expect(made).toEqual([{ sent: 0, destroyed: true }])
  })
})
