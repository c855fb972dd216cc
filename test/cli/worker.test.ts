import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createServer, tool } from '../../src/index.js'
import { redis } from '../../src/redis.js'
import { tasks } from '../../src/tasks.js'
import { RawClient } from '../extensions/raw-client.js'
import { hasRedis, newPrefix, sharedServer } from '../redis/redis-server.js'
import { Child } from '../stdio/child.js'
import { CLI, OFFER, cli, server } from './command.js'

describe('ccmcp worker', () => {
  it('rejects a command line, or a server, that it cannot use', async () => {
    const outcome = async (...args: string[]) => {
      const { code, stderr } = await cli(['worker', ...args])
      return `${code} ${stderr}`
    }
    expect(await outcome()).toMatch(/^2 .*Missing FILE/)
    expect(await outcome('./none.js')).toMatch(/^2 ccmcp: Cannot load \.\/none\.js: ENOENT/)
    expect(await outcome(server('memory-tasks'), '--concurrency', '0')).toMatch(
      /^2 .*--concurrency must be an integer of 1 or more/,
    )
    expect(await outcome(server('memory-tasks'), '--drain', 'x')).toMatch(/^2 .*--drain must be/)
    expect(await outcome(server('memory-tasks'))).toMatch(
      /^2 .*Workers need a store of tasks that several processes share/,
    )
    expect(await outcome(server('no-server'))).toMatch(
      /^2 .*exports no server \(it exports name\)\. Export what createServer returns, as default or as "server" \(see/,
    )
    expect(await outcome(server('fails'))).toMatch(/^1 .*Cannot load [^]*Error: it fails/)
    expect(await outcome(server('exits'))).toMatch(
      /^2 .*exited the process while it was loading.*export the server instead\n/,
    )
    expect(await outcome(OFFER)).toMatch(
      /^2 [^]*has no tasks; add tasks\({ store }\) to its "extensions"/,
    )
  })
})

describe.skipIf(!hasRedis)('workers', () => {
  let redisServer: Awaited<ReturnType<typeof sharedServer>>
  let prefix = ''
  const stops: (() => unknown)[] = []
  beforeAll(async () => {
    redisServer = await sharedServer()
  })
  afterAll(() => redisServer.stop())
  afterEach(async () => {
    for (const stop of stops.splice(0).toReversed()) await stop()
  })

  const start = async (name: string, ...args: string[]) => {
    const env = { REDIS: redisServer.url, PREFIX: prefix, NAME: name }
    const child = new Child(process.execPath, [CLI, 'worker', server('shared-tasks'), ...args], {
      env,
    })
    await child.said('running the tasks of')
    return child
  }
  /** A client of a server in this process, which runs no tasks. */
  const front = () => {
    prefix = newPrefix()
    const stores = redis(createClient({ url: redisServer.url }), { prefix, timeout: 60_000 })
    const never = () => 'in the server'
    const client = new RawClient(
      createServer({
        name: 'shared',
        version: '1',
        tools: [
          tool({ name: 'where', task: 'must', run: never }),
          tool({ name: 'wait', task: { mode: 'must', retries: 3, retryDelay: 0 }, run: never }),
        ],
        extensions: [tasks({ store: stores.tasks, workers: false })],
      }),
    )
    stops.push(
      () => stores.close(),
      () => client.close(),
    )
    return client
  }
  const text = (value: string) => ({ result: { content: [{ text: value }] } })

  it('run tasks, and leave them to others at once when they get SIGTERM', async () => {
    const client = front()
    const a = await start('a')
    const first = await client.create('where')
    expect(await client.until(first, 'completed')).toMatchObject(text('a'))
    const waiting = await client.create('wait')
    await a.said('a runs')
    const b = await start('b')
    a.give('SIGTERM')
    // The lease of two minutes has not ended.
    await b.said('b runs')
    await a.closed()
    expect([a.code, a.stdout.toString()]).toEqual([0, ''])
    const key = (child: Child) => /runs (\S+) attempt (\d)/.exec(child.stderr)
    expect(key(b)?.[1]).toBe(key(a)?.[1])
    expect(key(b)?.[2]).toBe('2')
    b.give('SIGUSR2')
    expect(await client.until(waiting, 'completed')).toMatchObject(text('b at last'))
    b.give('SIGINT')
    await b.closed()
    expect(b.code).toBe(0)
  })

  it('wait for running tasks with --drain, and take no more', async () => {
    const client = front()
    const a = await start('a', '--drain', '60', '--concurrency', '8')
    const waiting = await client.create('wait')
    await a.said('a runs')
    const b = await start('b')
    a.give('SIGTERM')
    const ranIn = async () => {
      const { result } = await client.until(await client.create('where'), 'completed')
      return (result as { content: { text: string }[] }).content[0]?.text
    }
    // The signal may take a moment.
    while ((await ranIn()) === 'a');
    for (let count = 0; count < 5; count++) expect(await ranIn()).toBe('b')
    a.give('SIGUSR2')
    expect(await client.until(waiting, 'completed')).toMatchObject(text('a at last'))
    await a.closed()
    expect(a.code).toBe(0)
    b.give('SIGTERM')
    await b.closed()
  })

  it('exit immediately at a second signal', async () => {
    const client = front()
    const a = await start('a', '--drain', '600')
    await client.create('wait')
    await a.said('a runs')
    a.give('SIGTERM')
    a.give('SIGINT')
    await a.closed()
    expect(a.signal ?? a.code).toBe(0)
  })
})
