import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type EventSourceMessage, createParser } from 'eventsource-parser'
import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  EventStreamParser,
  EventTooLongError,
  KEEP_ALIVE,
  type StreamEvent,
  encodeEvent,
} from '../../src/framing/event-stream.js'

const encoder = new TextEncoder()

const MEGABYTE = 1024 * 1024

/** The bytes of the heap that are reachable. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void // as the flag provides it
  collect()
  return getHeapStatistics().used_heap_size
}

function parse(text: string, sizes: readonly number[] = []): StreamEvent[] {
  const parser = new EventStreamParser()
  const bytes = encoder.encode(text)
  const events: StreamEvent[] = []
  let at = 0
  for (const size of [...sizes, bytes.length]) {
    parser.push(bytes.subarray(at, at + size))
    at += size
    for (let event = parser.next(); event !== undefined; event = parser.next()) events.push(event)
  }
  return events
}

/** The result of another parser: data, name and id of each event that has data. */
function oracle(text: string): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => events.push(event) })
  parser.feed(text)
  return events
}

const withData = (events: readonly StreamEvent[]) => events.filter(({ data }) => data !== undefined)
const comparable = ({
  data,
  event,
  id,
}: {
  data?: string
  event?: string | undefined
  id?: string | undefined
}) => ({ data, event, id })

describe('events', () => {
  it.each<[string, StreamEvent, string]>([
    ['a message', { data: '{"a":1}' }, 'data: {"a":1}\n\n'],
    ['a message with an id', { id: 'g.1', data: '{}' }, 'id: g.1\ndata: {}\n\n'],
    [
      'the first event of a stream',
      { id: 'g.0', retry: 500, data: '' },
      'id: g.0\nretry: 500\ndata: \n\n',
    ],
    ['several lines', { data: 'a\nb\r\nc' }, 'data: a\ndata: b\ndata: c\n\n'],
    ['a name', { event: 'endpoint', data: '/x' }, 'event: endpoint\ndata: /x\n\n'],
  ])('%s', (_, event, text) => {
    expect(encodeEvent(event)).toBe(text)
  })

  it('are parsed as they were encoded', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ id: fc.stringMatching(/^[a-z0-9.]+$/), data: fc.json() })),
        (events) => {
          expect(parse(events.map(encodeEvent).join(KEEP_ALIVE))).toEqual(events)
        },
      ),
    )
  })
})

describe('streams', () => {
  const field = fc.constantFrom(
    'data',
    'data:',
    'data: ',
    'id: ',
    'id',
    'event: ',
    'event:',
    'retry: ',
    ':',
    ': ',
    'x: ',
    ' data: ',
    '',
  )
  const value = fc.oneof(
    fc.constantFrom('', 'a', '12', ' b', 'ä€𝄞', '{"a":"b:c"}', '\u2028', '\0'),
    fc.string().map((text) => text.replaceAll(/[\r\n]/g, '')),
  )
  const end = fc.constantFrom('\n', '\r\n', '\r')
  const stream = fc.array(fc.tuple(field, value, end, fc.boolean(), end)).map(
    (lines) =>
      // Another parser may see the end of a CR at the end of its input only later.
      lines
        .map(
          ([name, rest, newline, blank, second]) => name + rest + newline + (blank ? second : ''),
        )
        .join('') + '\n\n',
  )

  it('are parsed as by another parser', () => {
    fc.assert(
      fc.property(stream, (text) => {
        expect(withData(parse(text)).map(comparable)).toEqual(oracle(text).map(comparable))
      }),
      { numRuns: runs(2000) },
    )
  })

  it('give the same events for any chunking', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(7)), (text, sizes) => {
        expect(parse(text, sizes)).toEqual(parse(text))
      }),
      { numRuns: runs(1000) },
    )
  })

  it('return events without data that have an id or a retry time', () => {
    expect(parse('id: 7\n\nretry: 10\n\n:\n\nretry: x\n\n')).toEqual([{ id: '7' }, { retry: 10 }])
  })

  it('may begin with a byte order mark', () => {
    expect(parse('\uFEFFdata: a\n\n')).toEqual([{ data: 'a' }])
  })

  it('with an endless event throw EventTooLong', () => {
    const endless = new EventStreamParser(1000)
    const piece = encoder.encode('x'.repeat(100))
    endless.push(encoder.encode('data: '))
    expect(() => {
      for (let i = 0; i < 20; i++) {
        endless.push(piece)
        endless.next()
      }
    }).toThrow(EventTooLongError)
    const many = new EventStreamParser(1000)
    many.push(encoder.encode('data: 0123456789\n'.repeat(200)))
    expect(() => many.next()).toThrow(EventTooLongError)
    const empty = new EventStreamParser(1000)
    empty.push(encoder.encode('data:\n'.repeat(2000)))
    expect(() => empty.next()).toThrow(EventTooLongError)
  })

  it('keep their data in memory, not the chunks that it came in', () => {
    const chunk = encoder.encode(`:${'x'.repeat(64 * 1024)}\ndata: 0123456789abcdef\n`)
    const before = heapUsed()
    const parser = new EventStreamParser()
    for (let count = 0; count < 1000; count++) {
      parser.push(chunk)
      parser.next()
    }
    expect(heapUsed() - before).toBeLessThan(8 * MEGABYTE)
    parser.push(encoder.encode('\n'))
    expect(parser.next()?.data).toBe(Array(1000).fill('0123456789abcdef').join('\n'))
  })

  it('keep a type and an id in memory, not the chunk that they came in', () => {
    const fields = 'event: 0123456789abcdef\nid: 0123456789abcdef\n'
    const chunk = encoder.encode(`:${'x'.repeat(64 * 1024)}\n${fields}`)
    const before = heapUsed()
    const parsers = Array.from({ length: 1000 }, () => new EventStreamParser())
    for (const parser of parsers) {
      parser.push(chunk)
      parser.next()
    }
    expect(heapUsed() - before).toBeLessThan(8 * MEGABYTE)
    for (const parser of parsers) {
      parser.push(encoder.encode('data: x\n\n'))
      const found = { event: '0123456789abcdef', id: '0123456789abcdef', data: 'x' }
      expect(parser.next()).toEqual(found)
    }
  })

  it('of many short lines take no more memory than their characters', () => {
    const before = heapUsed()
    const parser = new EventStreamParser()
    const lines = encoder.encode('data: ab\n'.repeat(1000))
    for (let count = 0; count < 1000; count++) {
      parser.push(lines)
      parser.next()
    }
    expect(heapUsed() - before).toBeLessThan(8 * MEGABYTE)
    parser.push(encoder.encode('data: end\n\n'))
    expect(parser.next()?.data).toBe(`${'ab\n'.repeat(1_000_000)}end`)
  })

  it.each([1, 5, 5000])('accept data of exactly the limit, in chunks of %i bytes', (size) => {
    const atLimit = (length: number) => {
      const parser = new EventStreamParser(3000)
      const bytes = encoder.encode(`data: ${'x'.repeat(length)}\n\n`)
      for (let at = 0; at < bytes.length; at += size) {
        parser.push(bytes.subarray(at, at + size))
        const event = parser.next()
        if (event !== undefined) return event.data?.length
      }
      return undefined
    }
    expect(atLimit(3000)).toBe(3000)
    expect(() => atLimit(3001)).toThrow(EventTooLongError)
  })
})
