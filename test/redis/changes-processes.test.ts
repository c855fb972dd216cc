import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import {
  Client as OfficialClient,
  StreamableHTTPClientTransport as OfficialTransport,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { connect, http } from '../../src/client.js'
import { InitializedSession, send, statelessRequest } from '../http/caller.js'
import { hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* Changes in one process, and clients of another. */

const LISTS = ['tools', 'prompts', 'resources'] as const
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })

describe.skipIf(!hasRedis)('changes in another process', () => {
  let redis: Awaited<ReturnType<typeof sharedServer>>
  const children: ChildProcess[] = []
  const closes: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    redis = await sharedServer()
  })
  afterAll(() => redis.stop())
  afterEach(async () => {
    await Promise.all(closes.splice(0).map((close) => close()))
    await Promise.all(children.splice(0).map((child) => end(child, 'SIGKILL')))
  })

  async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await exited
  }

  /** By default, with time limits that a busy machine does not exceed. */
  async function start(prefix: string, started = children, lease = 80_000) {
    const program = fileURLToPath(new URL('changes-server.mjs', import.meta.url))
    const child = spawn(process.execPath, [program, redis.url, prefix, String(lease)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    started.push(child)
    child.stderr.resume()
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.once('data', (line: Buffer) => resolve(line.toString().trim()))
      child.once('exit', () => reject(new Error('a process has ended')))
    })
    return { url, child }
  }

  async function change(url: string, input: { list?: string; uris?: string[] }): Promise<void> {
    const { status } = await send(
      url,
      statelessRequest('tools/call', { name: 'change', arguments: input }),
    )
    expect(status).toBe(200)
  }

  /** A client that writes down what it hears, and subscribes to a resource in its own spelling. */
  type Connected = { heard: string[]; subscribe(uri: string): Promise<unknown> }

  async function ours(url: string, revision: string): Promise<Connected> {
    const heard: string[] = []
    const target = revision === '2024-11-05' ? new URL('/sse', url) : url
    const client = await connect(http(target), { revision })
    closes.push(() => client.close())
    // In one turn: on one stream.
    const subscribe = (uri: string) =>
      Promise.all([
        client.subscribe(uri, (event) => heard.push(event.uri)),
        ...LISTS.map((list) => client.watch(list, () => void heard.push(list))),
      ])
    return { heard, subscribe }
  }

  async function sdk1(url: string): Promise<Connected> {
    const heard: string[] = []
    const client = new Client({ name: 'official', version: '1' })
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('tools'))
    client.setNotificationHandler(
      PromptListChangedNotificationSchema,
      () => void heard.push('prompts'),
    )
    client.setNotificationHandler(
      ResourceListChangedNotificationSchema,
      () => void heard.push('resources'),
    )
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void heard.push(params.uri),
    )
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    closes.push(() => client.close())
    return { heard, subscribe: (uri) => client.subscribeResource({ uri }) }
  }

  async function sdk2(url: string): Promise<Connected> {
    const heard: string[] = []
    const client = new OfficialClient(
      { name: 'official', version: '2' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    for (const list of LISTS)
      client.setNotificationHandler(
        `notifications/${list}/list_changed`,
        () => void heard.push(list),
      )
    client.setNotificationHandler(
      'notifications/resources/updated',
      ({ params }) => void heard.push(params.uri),
    )
    await client.connect(new OfficialTransport(new URL(url)))
    closes.push(() => client.close())
    return {
      heard,
      subscribe: (uri) =>
        client.listen({
          toolsListChanged: true,
          promptsListChanged: true,
          resourcesListChanged: true,
          resourceSubscriptions: [uri],
        }),
    }
  }

  const clients: [string, (url: string) => Promise<Connected>][] = [
    ...['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'].map(
      (revision): [string, (url: string) => Promise<Connected>] => [
        `our client, ${revision}`,
        (url) => ours(url, revision),
      ],
    ),
    ['the official client 1.x', sdk1],
    ['the official client 2.x', sdk2],
  ]

  describe('with two processes', () => {
    let a = { url: '' }
    let b = { url: '' }
    const shared: ChildProcess[] = []
    beforeAll(async () => {
      const prefix = newPrefix()
      const started = await Promise.all([start(prefix, shared), start(prefix, shared)])
      ;[a, b] = started
    })
    afterAll(() => Promise.all(shared.map((child) => end(child, 'SIGKILL'))))

    it.each(clients)('are told to %s, in its own spelling', async (_, client) => {
      const { heard, subscribe } = await client(b.url)
      await subscribe('NOTE:%61')
      // Until its stream is open.
      await until(async () => {
        await change(a.url, { uris: ['note:a'] })
        expect(heard).toContain('NOTE:%61')
      })
      for (const list of LISTS)
        await until(async () => {
          await change(a.url, { list })
          expect(heard).toContain(list)
        })
      await change(a.url, { uris: ['note:b', 'note:a'] })
      await until(() => expect(heard.at(-1)).toBe('NOTE:%61'))
      // Others are not told, and each once. On a busy machine everything may have changed in between.
      await until(async () => {
        heard.length = 0
        await change(a.url, { list: 'tools', uris: ['note:b', 'note:c'] })
        await change(a.url, { list: 'prompts', uris: ['note:a'] })
        await until(() => expect(heard).toContain('NOTE:%61'))
        expect(heard.toSorted()).toEqual(['NOTE:%61', 'prompts', 'tools'])
      })
      // Its own process too, once.
      await until(async () => {
        heard.length = 0
        await change(b.url, { list: 'resources', uris: ['note:a'] })
        await change(a.url, { list: 'tools' })
        await until(() => expect(heard).toContain('tools'))
        expect(heard.toSorted()).toEqual(['NOTE:%61', 'resources', 'tools'])
      })
    })
  })

  const open = (url: string) => until(() => InitializedSession.open(url, '2025-11-25'))
  const everything = [
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/resources/updated note:a',
    'notifications/tools/list_changed',
  ]
  /** What a stream has brought. */
  const heardOn = (stream: Awaited<ReturnType<InitializedSession['listen']>>) =>
    stream.seen.flatMap(({ data }) => {
      if (data === undefined || data === '') return []
      const { method, params } = JSON.parse(data) as { method: string; params?: { uri: string } } // our messages
      return params === undefined ? [method] : [`${method} ${params.uri}`]
    })

  it('are not lost for a session whose process was killed', async () => {
    const prefix = newPrefix()
    // Only the lease of the one that is killed must end.
    const [a, b, c] = await Promise.all([
      start(prefix, children, 500),
      start(prefix),
      start(prefix),
    ])
    const client = await open(a.url)
    const before = await client.listen()
    await before.has('data:')
    await until(async () => {
      const { status } = await client.request('resources/subscribe', { uri: 'note:a' })
      expect(status).toBe(200)
    })
    const observer = await ours(b.url, '2026-07-28')
    await observer.subscribe('note:observed')
    await until(async () => {
      await change(c.url, { list: 'tools', uris: ['note:a'] })
      expect(heardOn(before)).toContain('notifications/resources/updated note:a')
      expect(observer.heard).toContain('tools')
    })
    await end(a.child, 'SIGKILL')
    // Nobody serves its session now. The process that takes it over has got this before it does so.
    await change(c.url, { uris: ['note:a', 'note:observed'] })
    await until(() => expect(observer.heard).toContain('note:observed'))
    const stream = await until(async () => {
      const opened = await client.at(b.url).listen()
      if (opened.status !== 200) opened.disconnect()
      expect(opened.status).toBe(200)
      return opened
    })
    await until(() => expect(heardOn(stream).toSorted()).toEqual(everything))
    // The subscription is there, too.
    await change(c.url, { uris: ['note:b', 'note:a'] })
    await until(() => expect(heardOn(stream)).toHaveLength(5))
    expect(heardOn(stream).at(-1)).toBe('notifications/resources/updated note:a')
    stream.disconnect()
  })

  it('are not lost for a client that resumes its stream at another process', async () => {
    const prefix = newPrefix()
    const [a, b, c] = await Promise.all([start(prefix), start(prefix), start(prefix)])
    const client = await open(a.url)
    const before = await client.listen()
    await client.request('resources/subscribe', { uri: 'note:a' })
    await until(async () => {
      await change(c.url, { uris: ['note:a'] })
      const { id, data } = before.seen.at(-1) ?? {}
      expect(data).toContain('note:a')
      // An event that is not stored within two seconds is sent without an id.
      expect(id).toBeDefined()
    })
    const last = before.seen.at(-1)?.id ?? ''
    await end(a.child, 'SIGTERM')
    await change(c.url, { uris: ['note:a'] })
    const stream = await client.at(b.url).listen(last)
    expect(stream.status).toBe(200)
    // Some of them may be from the store.
    await until(() => expect([...new Set(heardOn(stream))].toSorted()).toEqual(everything))
    stream.disconnect()
  })

  it('are told before a process ends that has made them', async () => {
    const prefix = newPrefix()
    const [a, b] = await Promise.all([start(prefix), start(prefix)])
    const { heard, subscribe } = await ours(b.url, '2026-07-28')
    await subscribe('note:a')
    await until(async () => {
      await change(a.url, { list: 'tools' })
      expect(heard).toContain('tools')
    })
    // Nothing is left to publish when it ends but the last change.
    await change(a.url, { list: 'prompts' })
    await until(() => expect(heard).toContain('prompts'))
    await change(a.url, { uris: ['note:a'] })
    await end(a.child, 'SIGTERM')
    await until(() => expect(heard).toContain('note:a'))
  })
})
