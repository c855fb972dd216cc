import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import type { Frame } from '../../src/capture/frames.js'
import { EventStreamBody, WholeBody } from '../../src/capture/http-body.js'
import { EventStreamParser } from '../../src/framing/event-stream.js'

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)

type Body = EventStreamBody | WholeBody

function framesOf(body: Body, chunks: readonly Uint8Array[], isWhole = true): Frame[] {
  let offset = 0
  const frames: Frame[] = []
  for (const [ns, chunk] of chunks.entries()) {
    frames.push(...body.push(chunk, offset, ns))
    offset += chunk.length
  }
  return [...frames, ...body.end(isWhole)]
}

function cut(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const sorted = positions.map((each) => each % (bytes.length + 1)).sort((one, two) => one - two)
  return [0, ...sorted].map((start, i) => bytes.subarray(start, sorted[i] ?? bytes.length))
}

function expectSpans(frames: readonly Frame[], length: number): void {
  let at = 0
  for (const { start, end, body } of frames) {
    expect(start).toBe(at)
    expect(end).toBeGreaterThan(start)
    expect(body.start).toBeGreaterThanOrEqual(start)
    expect(body.end).toBeLessThanOrEqual(end)
    expect(body.start).toBeLessThanOrEqual(body.end)
    at = end
  }
  expect(at).toBe(length)
}

const withoutTimes = (frames: readonly Frame[]) =>
  frames.map((frame) => ({ ...frame, firstNs: 0, lastNs: 0 }))

const lines = fc.constantFrom(
  'data: {"jsonrpc":"2.0"}',
  'data:x',
  'data',
  'data: ',
  'data:  two',
  'event: endpoint',
  'event: message',
  'event:',
  'id: 7',
  'id',
  'retry: 100',
  'retry: x',
  ': keep-alive',
  ':',
  'unknown: x',
  '',
  '\ufeff',
  'ü𝄞',
  '\0',
)
const streams = fc.oneof(
  fc
    .array(fc.tuple(lines, fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n')), {
      maxLength: 15,
    })
    .map((all) => encode(all.flat().join(''))),
  fc.array(lines, { maxLength: 8 }).map((all) => encode(all.join('\n'))),
  fc.uint8Array({ maxLength: 60 }),
  fc
    .array(fc.constantFrom(10, 13, 58, 32, 100, 0xff), { maxLength: 30 })
    .map((all) => Uint8Array.from(all)),
)
const cuts = fc.array(fc.nat(300), { maxLength: 10 })

describe('frames of an event stream', () => {
  it('add up to the bytes, however they are cut, and do not depend on it', () => {
    fc.assert(
      fc.property(streams, cuts, fc.boolean(), (bytes, positions, isWhole) => {
        const whole = framesOf(new EventStreamBody('out'), [bytes], isWhole)
        const parts = framesOf(new EventStreamBody('out'), cut(bytes, positions), isWhole)
        expectSpans(whole, bytes.length)
        expect(withoutTimes(parts)).toEqual(withoutTimes(whole))
      }),
      { numRuns: runs(1000) },
    )
  })

  it('are the events that a reader of event streams gets', () => {
    fc.assert(
      fc.property(streams, (bytes) => {
        const parser = new EventStreamParser()
        parser.push(bytes)
        const expected = []
        for (let event = parser.next(); event !== undefined; event = parser.next())
          if (event.data !== undefined && event.data !== '')
            expected.push([event.event ?? '', event.data.replaceAll('\ufffd', '?')])
        const isEvent = ({ kind, fields, text, faults }: Frame) =>
          fields !== undefined &&
          faults.every((fault) => fault.kind === 'invalid-utf8') &&
          (kind === 'message' || text !== '')
        const found = framesOf(new EventStreamBody('out'), [bytes])
          .filter(isEvent)
          .map(({ text, fields, body }) => [
            fields?.event ?? '',
            (text ?? decode(bytes.subarray(body.start, body.end))).replaceAll('\ufffd', '?'),
          ])
        expect(found).toEqual(expected)
      }),
      { numRuns: runs(1000) },
    )
  })

  it('have the bytes of their data', () => {
    const bytes = encode('id: 1\ndata: {"ü":1}\n\n')
    const [frame] = framesOf(new EventStreamBody('out'), [bytes])
    expect(frame).toMatchObject({ kind: 'message', text: '{"ü":1}', fields: { id: '1' } })
    const { start = 0, end = 0 } = frame?.body ?? {}
    expect(decode(bytes.subarray(start, end))).toBe('{"ü":1}')
  })

  it('have the times of the first and the last byte', () => {
    const frames = framesOf(
      new EventStreamBody('out'),
      ['da', 'ta: 1\n', '\n', 'data: 2\n\n'].map(encode),
    )
    expect(frames.map(({ firstNs, lastNs }) => [firstNs, lastNs])).toEqual([
      [0, 2],
      [3, 3],
    ])
  })

  it('say that the last event is not complete', () => {
    const [frame] = framesOf(new EventStreamBody('out'), [encode('data: 1\ndata: 2')])
    expect(frame).toMatchObject({ kind: 'other', faults: [{ kind: 'partial-event' }] })
    const [aborted] = framesOf(new EventStreamBody('out'), [encode('data: 1\n')], false)
    expect(aborted).toMatchObject({ kind: 'other', faults: [{ kind: 'missing-bytes' }] })
    const [comment] = framesOf(new EventStreamBody('out'), [encode(': ping\n')])
    expect(comment).toMatchObject({ kind: 'comment', faults: [] })
  })

  it('have gaps where bytes are missing', () => {
    const body = new EventStreamBody('out')
    const frames = [
      ...body.push(encode('data: 1\n\ndata: 2'), 0, 1),
      ...body.push(encode('3\n\ndata: 4\n\n'), 100, 2),
      ...body.end(true),
    ]
    expect(frames.map(({ kind, start, end }) => [kind, start, end])).toEqual([
      ['message', 0, 9],
      ['other', 9, 16],
      ['gap', 16, 100],
      ['comment', 100, 103],
      ['message', 103, 112],
    ])
  })

  it('keep only the beginning of an event beyond the limit', () => {
    const body = new EventStreamBody('out', 50)
    const bytes = encode(`data: ${'x'.repeat(100)}\ndata: ${'y'.repeat(100)}\n\ndata: 2\n\n`)
    const frames = framesOf(body, [bytes])
    expectSpans(frames, bytes.length)
    expect(frames[0]).toMatchObject({
      kind: 'message',
      text: undefined,
      faults: [{ kind: 'oversized' }],
    })
    expect(frames[1]).toMatchObject({ kind: 'message', text: '2', faults: [] })
  })
})

describe('frames of a body', () => {
  const always = () => true

  it('add up to the bytes, and do not depend on how they are cut', () => {
    fc.assert(
      fc.property(fc.oneof(streams, fc.json().map(encode)), cuts, (bytes, positions) => {
        const whole = framesOf(new WholeBody('in', always), [bytes])
        const parts = framesOf(new WholeBody('in', always), cut(bytes, positions))
        expectSpans(whole, bytes.length)
        expect(withoutTimes(parts)).toEqual(withoutTimes(whole))
      }),
    )
  })

  it('are one message, with its faults', () => {
    expect(framesOf(new WholeBody('in', always), [encode('\ufeff{\n}')])).toMatchObject([
      {
        kind: 'message',
        text: '{\n}',
        body: { start: 3, end: 6 },
        faults: [{ kind: 'byte-order-mark' }],
      },
    ])
    expect(framesOf(new WholeBody('in', always), [Uint8Array.of(0x7b, 0xff)])).toMatchObject([
      { kind: 'message', text: undefined, faults: [{ kind: 'invalid-utf8', start: 1 }] },
    ])
    expect(framesOf(new WholeBody('in', always, 5), [encode('x'.repeat(9))])).toMatchObject([
      { kind: 'message', text: undefined, faults: [{ kind: 'oversized' }] },
    ])
    expect(framesOf(new WholeBody('in', () => false), [encode('<html>')])).toMatchObject([
      { kind: 'other', text: '<html>', faults: [] },
    ])
  })
})
