import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
