import { createClient } from 'redis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Tool, createServer, tool } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/redis.js'
import { type Script, digestOf } from '../../src/stores/redis/script.js'
import { CONFIRM, RENEW } from '../../src/stores/redis/task-scripts.js'
import { tasks } from '../../src/tasks.js'
import { RawClient } from '../extensions/raw-client.js'
import { newTask } from '../stores/task-store-contract.js'
import { RedisServer, canStartRedis, commanding, newPrefix } from './redis-server.js'
import { TcpProxy } from './tcp-proxy.js'

/* A task does not run if its client was told that it was not stored, whatever becomes of commands and replies. */

const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const notStored = {
  code: -32603,
  message: expect.stringContaining('could not be stored') as string,
}
const notKnown = { code: -32603, message: expect.stringContaining('It is not known') as string }

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})
async function startRedis(): Promise<RedisServer> {
  const server = await RedisServer.start()
  stops.push(() => server.stop())
  return server
}

type Client = Parameters<typeof redis>[0]

/** A client of a process of its own. */
function start(
  client: Client,
  prefix: string,
  tools: readonly Tool[],
  workers: boolean,
  more: RedisOptions = {},
) {
  const stores = redis(client, { prefix, lease: 60_000, timeout: 20_000, ...more })
  const extensions = [tasks({ store: stores.tasks, workers })]
  const made = new RawClient(createServer({ name: 'x', version: '1', tools, extensions }))
  stops.push(
    () => stores.close(),
    () => made.close(),
  )
  return made
}

type Send = (command: readonly string[]) => Promise<unknown>

/** A client whose commands pass through a function. */
function intercepted(url: string, pass: (command: readonly string[], send: Send) => unknown) {
  const client = createClient({ url })
  return {
    options: client.options,
    sendCommand: () => {},
    duplicate(options: object) {
      const made = client.duplicate(options)
      const send: Send = (command) => made.sendCommand(command)
      return {
        connect: () => made.connect(),
        destroy: () => made.destroy(),
        on: (event: 'error', listener: () => void) => made.on(event, listener),
        sendCommand: async (command: readonly string[]) => pass(command, send),
      }
    },
  }
}
const isScript = async (script: Script, command: readonly string[]) =>
  command[1] === script.source || command[1] === (await digestOf(script))
const isConfirmation = (command: readonly string[]) => isScript(CONFIRM, command)
const cut = () => {
  throw new Error('Socket closed unexpectedly')
}

/** A tool that is called for tasks, and the calls of its handler. */
function counted() {
  const runs: string[] = []
  const of = (mode: 'must' | 'may') =>
    tool({
      name: mode,
      task: { mode, after: 0 },
      run(_, call) {
        runs.push(mode)
        return `attempt ${call.attempt}`
      },
    })
  return { runs, tools: [of('must'), of('may')] }
}
const called = (name: string) => ({ name, arguments: {} })
const namesOf = (server: RedisServer, prefix: string) =>
  commanding(server.url, (command) => command('KEYS', `{${prefix}}:t:*`))

describe.skipIf(!canStartRedis)('a task in Redis', () => {
  it.each(['lose replies', 'late'] as const)(
    'never runs if the reply to its creation was lost (%s)',
    async (mode) => {
      const server = await startRedis()
      const proxy = await TcpProxy.start(server.port)
      stops.push(() => proxy.stop())
      const prefix = newPrefix()
      const { runs, tools } = counted()
      const plain = counted()
      const front = start(createClient({ url: proxy.url }), prefix, plain.tools, false, {
        timeout: 800,
      })
      const worker = start(createClient({ url: server.url }), prefix, tools, true)
      // So that Redis has the scripts.
      const first = await until(() => front.create('must'))
      await worker.until(first, 'completed')
      proxy.set(mode)
      expect(await front.error('tools/call', called('must'))).toMatchObject(notStored)
      expect(await front.call('may')).toMatchObject({ content: [{ text: 'attempt 1' }] })
      proxy.set('pass')
      // Redis has executed it.
      await until(async () => expect(await namesOf(server, prefix)).toHaveLength(2))
      const last = await until(() => front.create('must'))
      await worker.until(last, 'completed')
      expect([runs, plain.runs]).toEqual([['must', 'must'], ['may']])
    },
  )

  it.each([
    ['the reply to its confirmation is lost', true],
    ['the connection is cut before its confirmation', false],
  ])('runs once if %s', async (_, isExecuted) => {
    const server = await startRedis()
    const prefix = newPrefix()
    const { runs, tools } = counted()
    let lost = 0
    const client = intercepted(server.url, async (command, send) => {
      if (lost >= 2 || !(await isConfirmation(command))) return send(command)
      lost++
      if (isExecuted) await send(command)
      return cut()
    })
    const front = start(client, prefix, tools, false)
    const worker = start(createClient({ url: server.url }), prefix, tools, true)
    for (const name of ['must', 'may']) {
      lost = 0
      await worker.until(await front.create(name), 'completed')
      expect(lost).toBe(2)
    }
    expect(runs).toEqual(['must', 'may'])
    expect(await namesOf(server, prefix)).toHaveLength(2)
  })

  it('may run if no reply to its confirmation arrives: its client is told so', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    const { runs, tools } = counted()
    const client = intercepted(server.url, async (command, send) => {
      const reply = await send(command)
      return (await isConfirmation(command)) ? cut() : reply
    })
    const plain = counted()
    // So long the other process has to claim them, before they are deleted.
    const front = start(client, prefix, plain.tools, false, { lease: 1500 })
    start(createClient({ url: server.url }), prefix, tools, true)
    const errors = ['must', 'may'].map((name) => front.error('tools/call', called(name)))
    for (const error of await Promise.all(errors)) expect(error).toMatchObject(notKnown)
    await until(() => expect(runs.toSorted()).toEqual(['may', 'must']))
    expect(plain.runs).toEqual([])
  })

  it('is deleted if it cannot be confirmed', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    const { runs, tools } = counted()
    const client = intercepted(server.url, async (command, send) =>
      (await isConfirmation(command)) ? cut() : send(command),
    )
    const front = start(client, prefix, tools, true, { lease: 3000, timeout: 750 })
    expect(await front.error('tools/call', called('may'))).toMatchObject(notKnown)
    await until(async () => expect(await namesOf(server, prefix)).toEqual([]))
    expect(runs).toEqual([])
  })

  it('is not stored if Redis has lost it before its confirmation', async () => {
    const server = await startRedis()
    const { tools } = counted()
    const client = intercepted(server.url, async (command, send) => {
      if (await isConfirmation(command)) await send(['FLUSHALL'])
      return send(command)
    })
    const front = start(client, newPrefix(), tools, true)
    expect(await front.error('tools/call', called('must'))).toMatchObject(notStored)
    expect(await front.call('may')).toMatchObject({ content: [{ text: 'attempt 1' }] })
  })

  const storeOf = (client: Client, prefix: string, lease = 60_000) => {
    const stores = redis(client, { prefix, lease, timeout: 20_000 })
    stops.push(() => stores.close())
    return stores.tasks
  }

  it('does not run if its claim has ended before its confirmation is known', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    const other = storeOf(createClient({ url: server.url }), prefix)
    const EXPIRE = `for _, each in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
      redis.call('ZADD', KEYS[1], 1, each) end`
    let isFirst = true
    const client = intercepted(server.url, async (command, send) => {
      if (!isFirst || !(await isConfirmation(command))) return send(command)
      await send(command)
      isFirst = false
      await send(['EVAL', EXPIRE, '1', `{${prefix}}:tw`])
      expect(await other.claim(10)).toMatchObject([{ name: 'a' }])
      return cut()
    })
    const store = storeOf(client, prefix)
    const created = store.create(newTask('a', { claimed: true }))
    await expect(created).rejects.toMatchObject({ stored: 'unknown' })
    expect(await other.holds?.('a')).toBe(true)
  })

  it('stays claimed while the reply to its confirmation is late', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    let renewals = 0
    const client = intercepted(server.url, async (command, send) => {
      const reply = await send(command)
      if (await isScript(RENEW, command)) renewals++
      // A name that is unknown at two renewals is given back before the third one.
      else if (command.includes('late') && (await isConfirmation(command)))
        await until(() => expect(renewals).toBeGreaterThan(2))
      return reply
    })
    const store = storeOf(client, prefix, 1000)
    expect(await store.create(newTask('first', { claimed: true }))).toBe(true)
    expect(await store.create(newTask('late', { claimed: true }))).toBe(true)
    expect(await storeOf(createClient({ url: server.url }), prefix).claim(10)).toEqual([])
    expect(await store.holds?.('late')).toBe(true)
  })

  it('may have run if it has expired before its confirmation is known', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    let isFirst = true
    const client = intercepted(server.url, async (command, send) => {
      if (!(await isConfirmation(command))) return send(command)
      if (isFirst) {
        await send(command)
        isFirst = false
        return cut()
      }
      await until(async () => expect(await namesOf(server, prefix)).toEqual([]))
      return send(command)
    })
    const created = storeOf(client, prefix).create(newTask('a', { expires: Date.now() + 200 }))
    await expect(created).rejects.toMatchObject({ stored: 'unknown' })
  })
})
