import { describe, expect, it } from 'vitest'
import { MemoryEventStore } from '../../src/http.js'
import { Budget } from '../../src/jsonrpc/budget.js'
import { INTERNAL_ERROR } from '../../src/jsonrpc/errors.js'
import { newestHandshakeRevision } from '../../src/protocol/revisions/index.js'
import type { HttpContext, Sink } from '../../src/transports/http/http-context.js'
import { OpenResponses } from '../../src/transports/http/open-responses.js'
import { parseEventId } from '../../src/transports/http/resumable-stream.js'
import { SessionStreams } from '../../src/transports/http/session-streams.js'

/* When a client that opens its GET stream again may have missed changes. */

/** A connection of a client. */
class Connection implements HttpContext {
  readonly method = 'GET'
  readonly path = '/mcp'
  readonly target = '/mcp'
  readonly http = { headers: {} }
  readonly ambiguity = undefined
  text = ''
  #disconnected: (() => void) | undefined

  header(): undefined {}

  headers(): [] {
    return []
  }

  read(): void {}

  respond(): void {}

  stream(): Sink {
    return {
      write: (text) => void (this.text += text),
      end: () => {},
      destroy: () => {},
      onDrain: () => {},
      unsentBytes: 0,
      sentBytes: 0,
    }
  }

  onDisconnect(listener: (() => void) | undefined): void {
    this.#disconnected = listener
  }

  disconnect(): void {
    this.#disconnected?.()
  }
}

/** The streams of a session, and how often its client was told that it may have missed changes. */
class Session {
  readonly eventStore: MemoryEventStore
  readonly streams: SessionStreams
  readonly retained = new Budget(5000)
  missed = 0

  constructor(generation = 0, eventStore = new MemoryEventStore()) {
    this.eventStore = eventStore
    const settings = {
      eventStore,
      ttl: 1000,
      maxUnsentBytes: 10_000,
      report: () => {},
      openResponses: new OpenResponses({ maxOpenResponses: 10, keepAlive: 0 }, () => {}),
      retryInterval: 1000,
      retained: this.retained,
    }
    this.streams = new SessionStreams('s', generation, settings, {
      revision: newestHandshakeRevision,
      owner: undefined,
      superseded: false,
      used: () => {},
      drained: () => {},
      missedChanges: () => this.missed++,
    })
  }

  push(...frames: string[]): void {
    for (const frame of frames) this.streams.standalone.push(frame)
  }

  /** Opens the GET stream and closes it; how often the client was told by then, and what it was sent. */
  listen(): [missed: number, text: string] {
    const connection = new Connection()
    expect(this.streams.listen(connection, [], undefined)).toBe(true)
    connection.disconnect()
    return [this.missed, connection.text]
  }

  /** The same with Last-Event-ID. */
  async resume(id: string): Promise<[missed: number, text: string]> {
    const connection = new Connection()
    const event = parseEventId(id) ?? { stream: '', number: 0 }
    expect(await this.streams.resume(connection, event, [], undefined)).toBe(true)
    // The events are read asynchronously.
    await new Promise(setImmediate)
    connection.disconnect()
    return [this.missed, connection.text]
  }

  /** The GET stream as another process has left it. */
  static restored(): Session {
    const earlier = new Session()
    earlier.push('one', 'two')
    return new Session(5, earlier.eventStore)
  }
}

const missed = async (told: [number, string] | Promise<[number, string]>) => (await told)[0]

describe('a client that opens its GET stream again without Last-Event-ID', () => {
  it('is told once of events since it last opened it', () => {
    const session = new Session()
    session.push('before the first')
    expect(session.listen()[0]).toBe(0)
    expect(session.listen()[0]).toBe(0)
    session.push('one', 'two')
    expect(session.listen()[0]).toBe(1)
    expect(session.listen()[0]).toBe(1)
    session.push('three')
    expect(session.listen()[0]).toBe(2)
  })

  it('is not told of events that it has acknowledged with Last-Event-ID since', async () => {
    const session = new Session()
    session.listen()
    session.push('one', 'two')
    expect(await missed(session.resume('g.2'))).toBe(0)
    expect(session.listen()[0]).toBe(0)
  })

  it('is told of events after the one that it has acknowledged, though they were sent', async () => {
    const session = new Session()
    session.listen()
    session.push('one', 'two')
    const [count, text] = await session.resume('g.1')
    expect([count, text.includes('two')]).toEqual([0, true])
    expect(session.listen()[0]).toBe(1)
  })

  it('is told of events after it has acknowledged one that does not exist', async () => {
    const session = new Session()
    session.listen()
    await session.resume('g.99')
    session.push('one')
    expect(session.listen()[0]).toBe(1)
  })
})

describe('a client that opens the GET stream of a restored session', () => {
  it('is told once, without Last-Event-ID', () => {
    const session = Session.restored()
    expect([session.listen()[0], session.listen()[0]]).toEqual([1, 1])
  })

  it('is told once, with the id of an event of the earlier process', async () => {
    const session = Session.restored()
    const [count, text] = await session.resume('g.1')
    expect([count, text.includes('one'), text.includes('two')]).toEqual([1, false, true])
    expect(await missed(session.resume('g.2'))).toBe(1)
    expect(session.listen()[0]).toBe(1)
  })

  it('has acknowledged no event of this process then', async () => {
    const session = Session.restored()
    session.listen()
    session.push('three')
    expect(session.listen()[0]).toBe(2)
    expect((await session.resume('g.2'))[1]).toContain('three')
    expect(session.listen()[0]).toBe(3)
  })
})

describe('a client that resumes a stream of which events are not stored any more', () => {
  const withoutEvents = () => {
    const session = new Session()
    session.listen()
    return session
  }

  it('is told if it is the GET stream', async () => {
    for (const evicted of [[1], [2], [3], [1, 2, 3]]) {
      const session = withoutEvents()
      const read = session.eventStore.read.bind(session.eventStore)
      session.eventStore.read = (...args) =>
        read(...args).filter(({ number }) => !evicted.includes(number))
      session.push('one', 'two', 'three')
      expect(await missed(session.resume('g.0')), String(evicted)).toBe(1)
      // Only events after the one that it has.
      expect(await missed(session.resume('g.3'))).toBe(1)
    }
  })

  it('is not told if it is the stream of a request, which gets an error if its response is lost', async () => {
    for (const evicted of [1, 2]) {
      const session = withoutEvents()
      const read = session.eventStore.read.bind(session.eventStore)
      session.eventStore.read = (...args) =>
        read(...args).filter(({ number }) => number !== evicted)
      const stream = session.streams.openStream(new Connection(), [], undefined)
      for (const frame of ['progress', 'response']) stream.push(frame)
      session.streams.finish(stream, [7])
      const [count, text] = await session.resume('0p.0')
      expect([count, text.includes(`"error":{"code":${INTERNAL_ERROR}`)]).toEqual([
        0,
        evicted === 2,
      ])
    }
  })

  it('costs memory for the ids of its requests, as long as it can be resumed', async () => {
    const session = new Session()
    const finish = (id: string) => {
      const stream = session.streams.openStream(new Connection(), [], undefined)
      stream.push('response')
      session.streams.finish(stream, [id])
    }
    finish('a'.repeat(1000))
    finish('b'.repeat(1000))
    expect(session.retained.used).toBe(2 * 2008)
    // There is no memory for this one.
    finish('c'.repeat(1000))
    expect(session.retained.used).toBe(2 * 2008)
    for (const stream of ['0p', '1p', '2p']) session.eventStore.delete(`s/${stream}`)
    expect((await session.resume('1p.0'))[1]).toContain('"id":"bbb')
    expect((await session.resume('2p.0'))[1]).not.toContain('error')
    for (let i = 0; i < 30; i++) finish('')
    expect(session.retained.used).toBe(2008 + 30 * 8)
  })
})
