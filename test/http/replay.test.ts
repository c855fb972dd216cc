import { describe, expect, it } from 'vitest'
import { type StoredEvent, MemoryEventStore, type EventStore } from '../../src/http.js'
import { Handshaken, serving } from './caller.js'
import { servedOverHttp } from './served.js'

const numbers = (events: readonly StoredEvent[]) => events.map(({ number }) => number)

describe('the memory of events', () => {
  it('gives what came behind an event, of one stream only', () => {
    const store = new MemoryEventStore()
    for (const number of [1, 2, 3]) store.keep('a', { number, frame: `a${number}` })
    store.keep('b', { number: 1, frame: 'b1' })
    expect(store.after('a', 1)).toEqual([
      { number: 2, frame: 'a2' },
      { number: 3, frame: 'a3' },
    ])
    expect(numbers(store.after('a', 3))).toEqual([])
    expect(numbers(store.after('c', 0))).toEqual([])
  })

  it('lets go of the oldest of a stream that is full', () => {
    const store = new MemoryEventStore({ perStream: 1000 })
    for (let number = 1; number <= 20; number++) store.keep('a', { number, frame: 'x'.repeat(100) })
    expect(numbers(store.after('a', 0))).toEqual([16, 17, 18, 19, 20])
    // The newest is kept, however large; it goes when another one comes.
    store.keep('a', { number: 21, frame: 'x'.repeat(2000) })
    expect([numbers(store.after('a', 0)), store.size]).toEqual([[21], 2500])
    store.keep('a', { number: 22, frame: 'x' })
    expect([numbers(store.after('a', 0)), store.size]).toEqual([[22], 501])
  })

  it('keeps nothing that is too large for all of it', () => {
    const store = new MemoryEventStore({ perStream: 1000, total: 1900 })
    store.keep('a', { number: 1, frame: 'x'.repeat(2000) })
    expect([store.after('a', 0), store.size]).toEqual([[], 0])
  })

  it('lets go of the streams that have been silent longest where all together are too much', () => {
    const store = new MemoryEventStore({ total: 2200 })
    for (const stream of ['a', 'b', 'c', 'a'])
      store.keep(stream, { number: 1, frame: 'x'.repeat(150) })
    store.keep('d', { number: 1, frame: 'x'.repeat(150) })
    expect(['a', 'b', 'c', 'd'].map((stream) => store.after(stream, 0).length)).toEqual([
      2, 0, 1, 1,
    ])
    expect(store.size).toBeLessThanOrEqual(2200)
  })

  it('counts bytes: a character beyond Latin-1 takes two', () => {
    const size = (frame: string) => {
      const store = new MemoryEventStore()
      store.keep('a', { number: 1, frame })
      return store.size
    }
    expect([size('ü'.repeat(1000)) - size(''), size('語'.repeat(1000)) - size('')]).toEqual([
      1000, 2000,
    ])
  })

  it('forgets what was dropped', () => {
    const store = new MemoryEventStore()
    store.keep('a', { number: 1, frame: 'x' })
    store.drop('a')
    store.drop('a')
    expect([store.after('a', 0), store.size]).toEqual([[], 0])
  })
})

/** A store that takes its time, as one on another machine would. */
class SlowReplay implements EventStore {
  readonly #store = new MemoryEventStore()
  readonly #waiting: (() => void)[] = []

  keep(stream: string, event: StoredEvent): void {
    this.#store.keep(stream, event)
  }

  async after(stream: string, number: number): Promise<readonly StoredEvent[]> {
    const found = this.#store.after(stream, number)
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return found
  }

  drop(stream: string): void {
    this.#store.drop(stream)
  }

  get asked(): number {
    return this.#waiting.length
  }

  answer(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

describe('a store that takes its time', () => {
  it('loses and doubles nothing that comes meanwhile', async () => {
    const { server } = servedOverHttp()
    const replay = new SlowReplay()
    await serving(server, { replay }, async (listening) => {
      const client = await Handshaken.open(listening.url, '2025-11-25')
      const own = await client.listen()
      await own.next()
      own.cut()
      await expect.poll(() => listening.open).toBe(0)
      server.log.info('one')
      const rest = await client.listen('g.0')
      await expect.poll(() => replay.asked).toBe(1)
      server.log.info('two')
      replay.answer()
      await expect.poll(() => replay.asked).toBe(1)
      replay.answer()
      await rest.has('two')
      server.log.info('three')
      await rest.has('three')
      expect(rest.seen.map(({ id }) => id)).toEqual(['g.1', 'g.2', 'g.3'])
      rest.cut()
    })
  })

  it('has the stream open meanwhile: a second GET is refused', async () => {
    const { server } = servedOverHttp()
    const replay = new SlowReplay()
    await serving(server, { replay }, async (listening) => {
      const client = await Handshaken.open(listening.url, '2025-11-25')
      const own = await client.listen()
      await own.next()
      own.cut()
      await expect.poll(() => listening.open).toBe(0)
      server.log.info('one')
      const again = await client.listen('g.0')
      await expect.poll(() => replay.asked).toBe(1)
      const other = await client.listen()
      expect(other.status).toBe(409)
      replay.answer()
      await again.has('one')
      server.log.info('two')
      await again.has('two')
      again.cut()
    })
  })

  it('does not keep the place of a client that is gone before it has got what it asked for', async () => {
    const { server } = servedOverHttp()
    const replay = new SlowReplay()
    await serving(server, { replay }, async (listening) => {
      const client = await Handshaken.open(listening.url, '2025-11-25')
      const own = await client.listen()
      await own.next()
      own.cut()
      await expect.poll(() => listening.open).toBe(0)
      server.log.info('one')
      const again = await client.listen('g.0')
      await expect.poll(() => replay.asked).toBe(1)
      again.cut()
      await expect.poll(() => listening.open).toBe(0)
      replay.answer()
      const next = await client.listen()
      expect(next.status).toBe(200)
      next.cut()
    })
  })

  it('may fail: whoever asked comes back later, and the others are served', async () => {
    const { server } = servedOverHttp()
    const replay = new MemoryEventStore()
    const broken: EventStore = {
      keep: (stream, event) => replay.keep(stream, event),
      after: () => Promise.reject(new Error('no connection to the store')),
      drop: (stream) => replay.drop(stream),
    }
    let log = ''
    const stream = { write: (line: string) => void (log += line) }
    await serving(server, { replay: broken, log: stream }, async (listening) => {
      const client = await Handshaken.open(listening.url, '2025-11-25')
      const own = await client.listen()
      await own.next()
      own.cut()
      await expect.poll(() => listening.open).toBe(0)
      server.log.info('one')
      await (await client.listen('g.0')).ended()
      expect(log).toContain('no connection to the store')
      expect([listening.open, (await client.request('ping')).status]).toEqual([0, 200])
    })
  })

  it('serves the last of those who come back at once', async () => {
    const { server } = servedOverHttp()
    const replay = new SlowReplay()
    await serving(server, { replay }, async (listening) => {
      const client = await Handshaken.open(listening.url, '2025-11-25')
      const own = await client.listen()
      await own.next()
      own.cut()
      await expect.poll(() => listening.open).toBe(0)
      server.log.info('one')
      const first = await client.listen('g.0')
      const second = await client.listen('g.0')
      await expect.poll(() => replay.asked).toBe(2)
      replay.answer()
      await second.has('one')
      await first.ended()
      server.log.info('two')
      await second.has('two')
      expect(listening.open).toBe(1)
      second.cut()
    })
  })
})
