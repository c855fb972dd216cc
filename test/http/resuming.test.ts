import { describe, expect, it, vi } from 'vitest'
import {
  type EventStore,
  type ListenOptions,
  type Listening,
  MemoryEventStore,
  type StoredEvent,
} from '../../src/http.js'
import type { Server } from '../../src/index.js'
import { InitializedSession, POST, type Stream, message, open, serving } from './caller.js'
import { type Gate, servedOverHttp } from './served.js'

/** A store that takes its time, as one on another machine would. */
class SlowEventStore implements EventStore {
  readonly #store = new MemoryEventStore()
  readonly #waiting: (() => void)[] = []

  append(stream: string, event: StoredEvent): void {
    this.#store.append(stream, event)
  }

  async read(stream: string, number: number): Promise<readonly StoredEvent[]> {
    const found = this.#store.read(stream, number)
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return found
  }

  delete(stream: string): void {
    this.#store.delete(stream)
  }

  get asked(): number {
    return this.#waiting.length
  }

  answer(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** A client whose GET stream has been opened, and has broken. */
async function disconnectedClient(listening: Listening): Promise<InitializedSession> {
  const client = await InitializedSession.open(listening.url, '2025-11-25')
  const stream = await client.listen()
  await stream.next()
  stream.disconnect()
  await expect.poll(() => listening.openResponses).toBe(0)
  return client
}

describe('an event store whose read takes time', () => {
  it('neither loses nor repeats events of that time', async () => {
    const { server } = servedOverHttp()
    const eventStore = new SlowEventStore()
    await serving(server, { eventStore }, async (listening) => {
      const client = await disconnectedClient(listening)
      server.log.info('one')
      const rest = await client.listen('g.0')
      await expect.poll(() => eventStore.asked).toBe(1)
      server.log.info('two')
      eventStore.answer()
      await expect.poll(() => eventStore.asked).toBe(1)
      eventStore.answer()
      await rest.has('two')
      server.log.info('three')
      await rest.has('three')
      expect(rest.seen.map(({ id }) => id)).toEqual(['g.0', 'g.1', 'g.2', 'g.3'])
      rest.disconnect()
    })
  })

  it('counts as an open stream: a second GET gets 409', async () => {
    const { server } = servedOverHttp()
    const eventStore = new SlowEventStore()
    await serving(server, { eventStore }, async (listening) => {
      const client = await disconnectedClient(listening)
      server.log.info('one')
      const again = await client.listen('g.0')
      await expect.poll(() => eventStore.asked).toBe(1)
      const other = await client.listen()
      expect(other.status).toBe(409)
      eventStore.answer()
      await again.has('one')
      server.log.info('two')
      await again.has('two')
      again.disconnect()
    })
  })

  it('releases the stream of a client that disconnects meanwhile', async () => {
    const { server } = servedOverHttp()
    const eventStore = new SlowEventStore()
    await serving(server, { eventStore }, async (listening) => {
      const client = await disconnectedClient(listening)
      server.log.info('one')
      const again = await client.listen('g.0')
      await expect.poll(() => eventStore.asked).toBe(1)
      again.disconnect()
      await expect.poll(() => listening.openResponses).toBe(0)
      eventStore.answer()
      const next = await client.listen()
      expect(next.status).toBe(200)
      next.disconnect()
    })
  })

  it('may fail: the stream ends, and other requests are served', async () => {
    const { server } = servedOverHttp()
    const eventStore = new MemoryEventStore()
    const broken: EventStore = {
      append: (stream, event) => eventStore.append(stream, event),
      read: () => Promise.reject(new Error('no connection to the store')),
      delete: (stream) => eventStore.delete(stream),
    }
    let log = ''
    const stream = { write: (line: string) => void (log += line) }
    await serving(server, { eventStore: broken, log: stream }, async (listening) => {
      const client = await disconnectedClient(listening)
      server.log.info('one')
      await (await client.listen('g.0')).ended()
      expect(log).toContain('no connection to the store')
      expect([listening.openResponses, (await client.request('ping')).status]).toEqual([0, 200])
    })
  })

  it('serves the last of several clients that resume the same stream', async () => {
    const { server } = servedOverHttp()
    const eventStore = new SlowEventStore()
    await serving(server, { eventStore }, async (listening) => {
      const client = await disconnectedClient(listening)
      server.log.info('one')
      const first = await client.listen('g.0')
      const second = await client.listen('g.0')
      await expect.poll(() => eventStore.asked).toBe(2)
      eventStore.answer()
      await second.has('one')
      await first.ended()
      server.log.info('two')
      await second.has('two')
      expect(listening.openResponses).toBe(1)
      second.disconnect()
    })
  })
})

describe('events that were evicted', () => {
  /** A store in which only the newest event of all streams has room. */
  const small = { eventStore: new MemoryEventStore({ maxBytes: 3000 }) }
  const evictAll = () => {
    for (let i = 0; i < 3; i++)
      small.eventStore.append(`other ${i}`, { number: 1, frame: 'x'.repeat(2000) })
  }
  const steps = { name: 'steps', arguments: { gate: 'a' }, _meta: { progressToken: 1 } }

  it.each(['2024-11-05', '2025-11-25'])(
    'leave an error for a request whose response was one of them (%s)',
    async (revision) => {
      const { server, gate } = servedOverHttp()
      await serving(server, small, async (listening) => {
        const client = await InitializedSession.open(listening.url, revision)
        const call = await client.stream('tools/call', steps, 7)
        await call.message()
        const last = call.seen.at(-1)?.id
        call.disconnect()
        await expect.poll(() => listening.openResponses).toBe(0)
        gate.open('a')
        const whole = await client.listen(last)
        await whole.ended()
        expect(whole.text).toContain('passed a')
        evictAll()
        // Each time.
        for (let i = 0; i < 2; i++) {
          const rest = await client.listen(last)
          await rest.ended()
          expect(rest.messages).toEqual([
            {
              jsonrpc: '2.0',
              id: 7,
              error: {
                code: -32603,
                message:
                  'The response to this request is not stored any more: the request may have run',
              },
            },
          ])
        }
        // The client has it.
        const nothing = await client.listen(whole.seen.at(-1)?.id)
        await nothing.ended()
        expect(nothing.messages).toEqual([])
      })
    },
  )

  it('leave an error for each request of a batch', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, small, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-03-26')
      const requests = ['b', 'c'].map((id) => message('tools/call', steps, id))
      const call = await open(url, {
        headers: { ...POST, ...client.headers },
        body: `[${requests.join()}]`,
      })
      gate.open('a')
      await call.ended()
      evictAll()
      const rest = await client.listen(call.seen[0]?.id)
      await rest.ended()
      expect(rest.messages).toMatchObject([
        { id: 'b', error: { code: -32603 } },
        { id: 'c', error: { code: -32603 } },
      ])
    })
  })

  it('leave no error for a cancelled request, nor while the call runs', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, small, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25')
      for (const id of ['cancelled', 'running']) {
        const call = await client.stream('tools/call', steps, id)
        await call.message()
        call.disconnect()
        await expect.poll(() => listening.openResponses).toBe(0)
        evictAll()
        if (id === 'cancelled')
          await client.post(message('notifications/cancelled', { requestId: id }))
        const rest = await client.listen(call.seen[0]?.id)
        if (id === 'running') gate.open('a')
        await rest.ended()
        const messages = rest.messages.filter((each) => 'id' in each)
        expect(messages).toMatchObject(id === 'running' ? [{ id, result: {} }] : [])
      }
    })
  })

  it('of the GET stream count as missed changes', async () => {
    const { server } = servedOverHttp()
    await serving(server, small, async (listening) => {
      const client = await disconnectedClient(listening)
      server.log.info('one')
      evictAll()
      const rest = await client.listen('g.0')
      await rest.has('list_changed')
      rest.disconnect()
      await expect.poll(() => listening.openResponses).toBe(0)
      // Nothing was evicted since.
      const again = await client.listen(rest.seen.at(-1)?.id)
      server.log.info('two')
      await again.has('two')
      expect(again.messages).toHaveLength(1)
      again.disconnect()
    })
  })
})

/** A store whose `append` resolves when the test says so. */
class HeldEventStore implements EventStore {
  readonly #store = new MemoryEventStore()
  readonly appends: { resolve: () => void; reject: (error: Error) => void }[] = []

  append(stream: string, event: StoredEvent): Promise<void> {
    return new Promise((resolve, reject) => {
      const store = () => {
        this.#store.append(stream, event)
        resolve()
      }
      this.appends.push({ resolve: store, reject })
    })
  }

  read(stream: string, after: number): readonly StoredEvent[] {
    return this.#store.read(stream, after)
  }

  delete(stream: string): void {
    this.#store.delete(stream)
  }
}

describe('an event store whose append takes time', () => {
  const held = async (
    options: ListenOptions,
    use: (held: {
      store: HeldEventStore
      server: Server
      gate: Gate
      ended: Map<string, string>
      client: InitializedSession
      listening: Listening
    }) => Promise<void>,
  ) => {
    const { server, gate, ended } = servedOverHttp()
    const store = new HeldEventStore()
    await serving(server, { eventStore: store, ...options }, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25')
      // The time limit of `append` must not expire before the test resolves it.
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        await use({ store, server, gate, ended, client, listening })
      } finally {
        vi.useRealTimers()
      }
    })
  }
  const ids = (stream: Stream) => stream.seen.map(({ id }) => id)

  it('has every event before its id is sent, in order', async () => {
    await held({}, async ({ store, server, client }) => {
      const own = await client.listen()
      for (const text of ['one', 'two', 'three']) server.log.info(text)
      await expect.poll(() => store.appends.length).toBe(3)
      store.appends[1]?.resolve()
      await client.request('ping')
      expect(ids(own)).toEqual(['g.0'])
      store.appends[0]?.resolve()
      await own.has('two')
      expect(ids(own)).toEqual(['g.0', 'g.1', 'g.2'])
      store.appends[2]?.resolve()
      await own.has('three')
      expect(ids(own)).toEqual(['g.0', 'g.1', 'g.2', 'g.3'])
      own.disconnect()
    })
  })

  it('delays the end of a stream until its response is sent', async () => {
    await held({}, async ({ store, client, gate, ended }) => {
      gate.open('a')
      const call = await client.stream('tools/call', {
        name: 'steps',
        arguments: { gate: 'a' },
        _meta: { progressToken: 1 },
      })
      await expect.poll(() => ended.get('a')).toBe('done')
      await client.request('ping')
      expect([call.isOpen, ids(call)]).toEqual([true, ['0p.0']])
      for (const append of store.appends) append.resolve()
      await call.ended()
      expect(ids(call).slice(0, 2)).toEqual(['0p.0', '0p.1'])
      expect(call.seen.at(-1)?.data).toContain('passed a')
    })
  })

  it('may fail: the event is sent without an id, and logged', async () => {
    let log = ''
    const options = { log: { write: (line: string) => void (log += line) } }
    await held(options, async ({ store, server, client }) => {
      const own = await client.listen()
      for (const text of ['one', 'two']) server.log.info(text)
      await expect.poll(() => store.appends.length).toBe(2)
      store.appends[0]?.reject(new Error('no connection'))
      store.appends[1]?.resolve()
      await own.has('two')
      expect(ids(own)).toEqual(['g.0', undefined, 'g.2'])
      expect(log).toContain('The event store failed')
      own.disconnect()
    })
  })

  it('is not waited for beyond the limit of unsent bytes', async () => {
    await held({ limits: { unsentBytesPerStream: 1000 } }, async ({ server, client }) => {
      const own = await client.listen()
      // The first waits, and is short enough that the second is not dropped.
      for (const length of [100, 1000]) server.log.info('x'.repeat(length))
      await own.has('x'.repeat(1000))
      expect(ids(own)).toEqual(['g.0', undefined, undefined])
      own.disconnect()
    })
  })

  it('gives a client that reconnects what is still being appended', async () => {
    await held({}, async ({ store, server, client, listening }) => {
      const own = await client.listen()
      await own.next()
      server.log.info('one')
      own.disconnect()
      await expect.poll(() => listening.openResponses).toBe(0)
      const again = await client.listen('g.0')
      server.log.info('two')
      for (const append of store.appends) append.resolve()
      await again.has('two')
      expect(ids(again)).toEqual(['g.0', 'g.1', 'g.2'])
      again.disconnect()
    })
  })
})
