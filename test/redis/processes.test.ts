import { type ChildProcess, spawn } from 'node:child_process'
import { type IncomingMessage, createServer, request as httpRequest } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { InitializedSession, type Stream } from '../http/caller.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* Processes that are killed, paused and restarted. */

const NEWEST = '2025-11-25'
const LEASE = 300
/** Of processes that no stall of a busy machine may cut off. */
const LONG = 60_000
const KILLS = Number(process.env['CCMCP_KILLS'] ?? 3)
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const text = (value: string) => ({ result: { content: [{ type: 'text', text: value }] } })
const mayHaveRun = (id: string) => ({
  id,
  error: { code: -32603, message: expect.stringContaining('may have run') as string },
})

class ServerProcess {
  readonly name: string
  readonly #child: ChildProcess
  url = ''

  private constructor(name: string, child: ChildProcess) {
    this.name = name
    this.#child = child
  }

  static async start(redis: string, prefix: string, name: string, lease = LEASE) {
    const program = fileURLToPath(new URL('server.mjs', import.meta.url))
    const child = spawn(process.execPath, [program, redis, prefix, String(lease), name], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const started = new ServerProcess(name, child)
    // Warnings of sessions that fail over are expected.
    child.stderr.resume()
    started.url = await new Promise<string>((resolve, reject) => {
      child.stdout.once('data', (line: Buffer) => resolve(line.toString().trim()))
      child.once('exit', () => reject(new Error(`process ${name} has ended`)))
    })
    return started
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  async end(name: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill(name)
    await exited
  }
}

describe.skipIf(!hasRedis)('processes that share sessions', () => {
  let redis: Awaited<ReturnType<typeof sharedServer>>
  const started: ServerProcess[] = []
  beforeAll(async () => {
    redis = await sharedServer()
  })
  afterAll(() => redis.stop())
  afterEach(async () => {
    await Promise.all(started.splice(0).map((each) => each.end('SIGKILL')))
  })
  const start = async (prefix: string, name: string, lease?: number) => {
    const process = await ServerProcess.start(redis.url, prefix, name, lease)
    started.push(process)
    return process
  }
  /** A session; with such a short lease, a busy machine may refuse one at first. */
  const opened = (url: string) => until(() => InitializedSession.open(url, NEWEST))
  const where = (client: InitializedSession, { url }: ServerProcess) =>
    until(async () => {
      const answer = await client.at(url).request('tools/call', { name: 'where' })
      expect(answer.status).toBe(200)
      return answer.json
    })
  const progress = (name: string) => ({ name, arguments: {}, _meta: { progressToken: 1 } })
  const resumed = (client: InitializedSession, url: string, last: string) =>
    until(async () => {
      const stream = await client.at(url).listen(last)
      if (stream.status !== 200) stream.disconnect()
      expect(stream.status).toBe(200)
      return stream
    })
  /** A call in progress whose stream can be resumed: an event that is stored too late is sent without an id. */
  const called = (client: InitializedSession, name: string) =>
    until(async () => {
      const id = crypto.randomUUID()
      const stream = await client.stream('tools/call', progress(name), id)
      await stream.message()
      const isStored = stream.seen.some((event) => event.id !== undefined)
      if (!isStored) stream.disconnect()
      expect(isStored).toBe(true)
      return { id, stream }
    })
  const record = (prefix: string, client: InitializedSession) =>
    commanding(redis.url, (command) =>
      command('HMGET', `{${prefix}}:s:${client.session.slice(0, -20)}`, 'g', 'o'),
    ) as Promise<string[]>

  it('take over from one that was killed, and end its requests', async () => {
    const prefix = newPrefix()
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => start(prefix, name, LONG)))
    if (a === undefined || b === undefined || c === undefined) throw new Error('not started')
    const client = await opened(a.url)
    expect(await where(client, b)).toMatchObject(text('a'))
    const direct = await called(client, 'wait')
    const passed = await called(client.at(b.url), 'wait')
    const quiet = client
      .at(b.url)
      .post('{"jsonrpc":"2.0","id":"quiet","method":"tools/call","params":{"name":"quiet"}}')
    const own = await client.at(b.url).listen()
    await own.has('data:')
    const [, owner] = await record(prefix, client)
    await a.end('SIGKILL')
    // Its lease ends.
    await commanding(redis.url, (command) => command('DEL', `{${prefix}}:p:${owner}`))
    await Promise.all([direct.stream.ended(), passed.stream.ended(), own.ended()])
    // As a stream if it has lasted for longer than a keep-alive.
    const answer = await quiet
    expect([answer.json].flat()).toMatchObject(
      answer.text.startsWith('{') ? [mayHaveRun('quiet')] : [],
    )
    const last = (stream: Stream) => stream.seen.findLast(({ id }) => id !== undefined)?.id ?? ''
    for (const { stream, id } of [direct, passed])
      for (const { url } of [b, c]) {
        const again = await resumed(client, url, last(stream))
        await again.ended()
        // An event that was stored too late was sent without an id, and is sent again.
        const { messages } = again
        expect(messages.at(-1)).toMatchObject(mayHaveRun(id))
        expect(messages.filter((each) => 'error' in each)).toHaveLength(1)
      }
    const now = await where(client, b)
    expect(now).toMatchObject({ result: { content: [{ text: expect.stringMatching(/^[bc]$/) }] } })
    const ownAgain = await resumed(client, c.url, last(own))
    ownAgain.disconnect()
    expect((await client.at(c.url).end()).status).toBe(204)
    expect((await client.at(b.url).request('ping')).status).toBe(404)
  })

  it('take over from one that is paused, which can write nothing when it continues', async () => {
    const prefix = newPrefix()
    const a = await start(prefix, 'a')
    const b = await start(prefix, 'b', LONG)
    const client = await opened(a.url)
    const own = await until(async () => {
      const stream = await client.listen()
      expect(stream.status).toBe(200)
      return stream
    })
    await own.has('data:')
    const { stream: tick } = await called(client, 'tick')
    const [generation, owner] = await record(prefix, client)
    a.signal('SIGSTOP')
    // Nothing is passed on to it after its lease has ended: the other process would wait for it.
    await until(async () => {
      const lease = await commanding(redis.url, (command) =>
        command('EXISTS', `{${prefix}}:p:${owner}`),
      )
      expect(lease).toBe(0)
    })
    await until(async () => {
      const { json } = await client.at(b.url).request('tools/call', { name: 'where' })
      expect(json).toMatchObject(text('b'))
    })
    const taken = await record(prefix, client)
    expect(Number(taken[0])).toBeGreaterThan(Number(generation))
    const events = async () =>
      commanding(redis.url, async (command) => {
        const keys = (await command('KEYS', `{${prefix}}:e:*`)) as string[] // KEYS returns names
        return Promise.all(keys.toSorted().map((key) => command('XLEN', key)))
      })
    const before = await events()
    a.signal('SIGCONT')
    // Its client notices, and reconnects.
    await own.ended()
    const seen = tick.seen.length
    await until(() => expect(tick.seen.length).toBeGreaterThan(seen + 1))
    // What it has sent since has no id: the store has refused it.
    expect(tick.seen.at(-1)?.id).toBeUndefined()
    tick.disconnect()
    expect(await where(client, a)).toMatchObject(text('b'))
    await until(async () => {
      const { json } = await client.request('resources/subscribe', { uri: 'note:it' })
      expect(json).toMatchObject({ result: {} })
    })
    expect([await record(prefix, client), await events()]).toEqual([taken, before])
    await until(async () => expect((await client.end()).status).toBe(204))
    expect((await client.at(b.url).request('ping')).status).toBe(404)
  })

  it(
    'lose nothing that was acknowledged when any of them is killed',
    async () => {
      const prefix = newPrefix()
      const processes = await Promise.all(['a', 'b', 'c'].map((name) => start(prefix, name)))
      const stop = new AbortController()
      /** What was acknowledged: sessions with their subscriptions, and ended ones. */
      const ledger: { client: InitializedSession; subscribed: Set<string>; ended: boolean }[] = []
      const anyUrl = () => processes[Math.floor(Math.random() * processes.length)]?.url ?? ''
      const uri = (number: number) => `note:${number}`
      const work = async () => {
        while (!stop.signal.aborted) {
          // Connections to a process that is killed fail.
          const client = await InitializedSession.open(anyUrl(), NEWEST).catch(() => undefined)
          if (client === undefined) continue
          const entry = { client, subscribed: new Set<string>(), ended: false }
          ledger.push(entry)
          for (let number = 0; number < 4; number++) {
            const params = { uri: uri(number) }
            const answer = await client
              .at(anyUrl())
              .request('resources/subscribe', params)
              .catch(() => undefined)
            const acknowledged = answer?.status === 200 && answer.text.includes('"result"')
            if (acknowledged) entry.subscribed.add(params.uri)
          }
          if (ledger.length % 3 > 0) continue
          const ended = await client
            .at(anyUrl())
            .end()
            .catch(() => undefined)
          // Without a response, it may have ended.
          if (ended?.status === 204) entry.ended = true
          else ledger.splice(ledger.indexOf(entry), 1)
        }
      }
      const workers = [work(), work(), work()]
      for (let kill = 0; kill < KILLS; kill++) {
        const before = ledger.length
        await until(() => expect(ledger.length).toBeGreaterThan(before + 5))
        const index = kill % processes.length
        await processes[index]?.end('SIGKILL')
        processes[index] = await start(prefix, String(kill))
      }
      stop.abort()
      await Promise.all(workers)
      const lost: unknown[] = []
      for (const [index, { client, subscribed, ended }] of ledger.entries()) {
        const answer = await until(async () => {
          const { url } = processes[index % processes.length] ?? { url: '' }
          const got = await client.at(url).request('tools/call', { name: 'where' })
          expect(got.status).not.toBe(503)
          return got
        })
        if (answer.status !== (ended ? 404 : 200)) lost.push([client.session, answer.status])
        const key = `{${prefix}}:s:${client.session.slice(0, -20)}`
        const state = await commanding(redis.url, (command) => command('HGET', key, 's'))
        if (!ended)
          for (const each of subscribed) if (!String(state).includes(each)) lost.push([key, each])
      }
      expect(lost).toEqual([])
      expect(ledger.filter(({ ended }) => ended).length).toBeGreaterThan(0)
      expect(ledger.flatMap(({ subscribed }) => [...subscribed]).length).toBeGreaterThan(10)
    },
    60_000 + KILLS * 10_000,
  )

  it('serve the official client through a load balancer without stickiness, while each restarts', async () => {
    const prefix = newPrefix()
    const processes = await Promise.all(['a', 'b', 'c'].map((name) => start(prefix, name, LONG)))
    const balancer = await RoundRobin.start(() => processes.map(({ url }) => new URL(url)))
    const client = new Client({ name: 'official', version: '1' })
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(balancer.url)))
      const seen = new Set<unknown>()
      const stop = new AbortController()
      const calls = (async () => {
        let count = 0
        for (; !stop.signal.aborted; count++) {
          const { content } = await client.callTool({ name: 'where', arguments: {} })
          seen.add((content as { text: string }[])[0]?.text)
        }
        return count
      })()
      for (const [index, old] of processes.entries()) {
        // The first calls of the new one are served before the next one is restarted.
        processes[index] = await start(prefix, `${old.name}2`, LONG)
        await old.end('SIGTERM')
        const served = balancer.served
        await until(() => expect(balancer.served).toBeGreaterThan(served + 10))
      }
      stop.abort()
      expect(await calls).toBeGreaterThan(30)
      expect([...seen].every((name) => /^[abc]2?$/.test(String(name)))).toBe(true)
      expect([...seen].some((name) => String(name).endsWith('2'))).toBe(true)
      expect(balancer.statuses()).toEqual([200, 202])
    } finally {
      await client.close()
      await balancer.stop()
    }
  })
})

/** A load balancer that sends each request to the next process, and skips those that are shutting down. */
class RoundRobin {
  readonly url: string
  served = 0
  readonly #statuses = new Set<number>()
  readonly #stop: () => Promise<void>

  private constructor(url: string, stop: () => Promise<void>) {
    this.url = url
    this.#stop = stop
  }

  /** The statuses that clients got, but that of GET without a stream. */
  statuses(): number[] {
    return [...this.#statuses].toSorted((one, other) => one - other)
  }

  static async start(targets: () => URL[]): Promise<RoundRobin> {
    let next = 0
    const server = createServer((incoming, outgoing) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => {
        const attempt = (left: number) => {
          const all = targets()
          const { hostname, port, pathname } = all[next++ % all.length] ?? new URL('')
          const { method, headers } = incoming
          const options = { hostname, port, path: pathname, method, headers, agent: false }
          const again = () => (left > 0 ? attempt(left - 1) : outgoing.destroy())
          const sent = httpRequest(options, (response: IncomingMessage) => {
            const status = response.statusCode ?? 0
            if (status === 503 && left > 0) {
              response.resume()
              return again()
            }
            balancer.#statuses.add(status)
            balancer.served++
            outgoing.writeHead(status, response.headers)
            response.pipe(outgoing)
            response.on('error', () => outgoing.destroy())
          })
          sent.on('error', (error: NodeJS.ErrnoException) =>
            error.code === 'ECONNREFUSED' ? again() : outgoing.destroy(),
          )
          outgoing.on('close', () => sent.destroy())
          sent.end(Buffer.concat(chunks))
        }
        attempt(10)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number } // it listens on a port
    const balancer = new RoundRobin(`http://127.0.0.1:${port}/mcp`, async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return balancer
  }

  stop(): Promise<void> {
    return this.#stop()
  }
}
