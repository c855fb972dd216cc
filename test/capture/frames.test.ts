import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { type Frame, FrameParser } from '../../src/capture/frames.js'
import { Framer } from '../../src/framing/detect.js'

const encode = (text: string) => new TextEncoder().encode(text)

function framesOf(chunks: readonly Uint8Array[], maxBytes?: number): Frame[] {
  const parser = new FrameParser('out', maxBytes)
  let offset = 0
  const frames: Frame[] = []
  for (const [ns, chunk] of chunks.entries()) {
    frames.push(...parser.push(chunk, offset, ns))
    offset += chunk.length
  }
  return [...frames, ...parser.end()]
}

/** Cuts bytes at the given positions. */
function cut(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const sorted = [...new Set(positions.map((each) => each % (bytes.length + 1)))].sort(
    (one, other) => one - other,
  )
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

/** What the reader of `framing/` makes of the same bytes: texts, and a fault for each line that is not UTF-8. */
function messagesByFramer(bytes: Uint8Array): string[] {
  const framer = new Framer('auto', { maxBytes: 1_000_000 })
  const found: string[] = []
  const take = () => {
    for (let frame = framer.next(); frame !== undefined; frame = framer.next())
      if (typeof frame === 'string') found.push(trimmed(frame))
      else if (frame.kind === 'not-utf8') found.push('not UTF-8')
  }
  framer.push(bytes)
  take()
  framer.end()
  take()
  return found
}
// A byte order mark after a line that is not UTF-8 counts as one at the start in framing/ only.
const trimmed = (text: string) => text.replaceAll(/^\ufeff?[ \t\r]+|^\ufeff|[ \t\r]+$/g, '')
const isText = (text: string) => text !== ''

const pieces = fc.oneof(
  fc.constantFrom('{"a":1}', '[1]', 'hello', '', ' ', '\t', '\r', '\n', '\r\n', '\ufeff', 'ü', '𝄞'),
  fc.constantFrom('Content-Length: 5', 'content-type: x', 'Content-Length', '"', '\u2028'),
  fc.json(),
)
const streams = fc.oneof(
  fc.array(pieces, { maxLength: 12 }).map((all) => encode(all.join(''))),
  fc.array(pieces, { maxLength: 12 }).map((all) => encode(all.join('\n'))),
  fc
    .array(fc.oneof(pieces.map(encode), fc.uint8Array({ maxLength: 8 })), { maxLength: 12 })
    .map((all) => Uint8Array.from(all.flatMap((each) => [...each, 10]))),
  fc.uint8Array({ maxLength: 60 }),
)
const cuts = fc.array(fc.nat(200), { maxLength: 10 })

describe('frames', () => {
  it('add up to the bytes, however they are cut, and do not depend on it', () => {
    fc.assert(
      fc.property(streams, cuts, (bytes, positions) => {
        const whole = framesOf([bytes])
        const parts = framesOf(cut(bytes, positions))
        expectSpans(whole, bytes.length)
        const plain = (frames: Frame[]) =>
          frames.map((frame) => ({ ...frame, firstNs: 0, lastNs: 0 }))
        expect(plain(parts)).toEqual(plain(whole))
      }),
      { numRuns: runs(2000) },
    )
  })

  it('have the messages that the reader of framing/ has, in streams of lines', () => {
    fc.assert(
      fc.property(streams, (bytes) => {
        const frames = framesOf([bytes])
        // With Content-Length the reader searches for the next header after an error; frames do not.
        fc.pre(
          !/^\s*\ufeff?\s*content-(?:length|type)/i.test(
            new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes),
          ),
        )
        const messages = frames
          .filter(({ kind }) => kind === 'message')
          .map(({ text }) => (text === undefined ? 'not UTF-8' : trimmed(text)))
        expect(messages.filter(isText)).toEqual(messagesByFramer(bytes).filter(isText))
      }),
      { numRuns: runs(2000) },
    )
  })

  it('have the messages that the reader of framing/ has, with Content-Length', () => {
    fc.assert(
      fc.property(fc.array(fc.json(), { minLength: 1, maxLength: 5 }), cuts, (texts, positions) => {
        const bytes = encode(
          texts
            .map((text) => `Content-Length: ${encode(text).length}\r\nX-Other: 1\r\n\r\n${text}`)
            .join(''),
        )
        const frames = framesOf(cut(bytes, positions))
        expectSpans(frames, bytes.length)
        expect(frames.map(({ text }) => text)).toEqual(texts)
        expect(messagesByFramer(bytes)).toEqual(texts.map(trimmed))
        expect(frames.flatMap(({ faults }) => faults.map(({ kind }) => kind))).toEqual(
          texts.map(() => 'content-length'),
        )
      }),
    )
  })

  it('survive missing and repeated bytes', () => {
    const chunks = fc.array(fc.tuple(fc.nat(300), fc.uint8Array({ maxLength: 30 })), {
      maxLength: 20,
    })
    fc.assert(
      fc.property(chunks, (all) => {
        const parser = new FrameParser('in', 20)
        const frames = all.flatMap(([offset, bytes]) => parser.push(bytes, offset, 0))
        frames.push(...parser.end())
        expectSpans(
          frames,
          all.reduce(
            (end, [offset, bytes]) =>
              Math.max(end, offset + bytes.length, offset > end ? offset : 0),
            0,
          ),
        )
      }),
      { numRuns: runs(2000) },
    )
  })

  it.each<[string, string, [kind: string, text: string | undefined, faults: string[]][]]>([
    ['a line', '{}\n', [['message', '{}', []]]],
    ['a line with CR LF', '{}\r\n', [['message', '{}', ['carriage-return 2-3']]]],
    ['a byte order mark', '\ufeff{}\n', [['message', '{}', ['byte-order-mark 0-3']]]],
    [
      'blank lines',
      '\n \n',
      [
        ['blank', '', []],
        ['blank', ' ', []],
      ],
    ],
    ['an incomplete line', '{"a"', [['message', '{"a"', ['partial-line 4-4']]]],
    [
      'a header among lines',
      '{}\nContent-Length: 2\n',
      [
        ['message', '{}', []],
        ['header', 'Content-Length: 2', ['content-length 3-20']],
      ],
    ],
    [
      'a header without a length',
      'Content-Type: x\n\n{}\n',
      [
        ['header', undefined, ['invalid-header 0-17']],
        ['message', '{}', ['invalid-header 17-19']],
      ],
    ],
    ['an incomplete body', 'Content-Length: 5\n\n{}', [['message', '{}', ['partial-line 21-21']]]],
    [
      'a line that is too long',
      `${'x'.repeat(30)}\n{}\n`,
      [
        ['message', undefined, ['oversized 0-30']],
        ['message', '{}', []],
      ],
    ],
  ])('show %s', (_, stream, expected) => {
    const frames = framesOf([encode(stream)], 25)
    expect(
      frames.map(({ kind, text, faults }) => [
        kind,
        text,
        faults.map((fault) => `${fault.kind} ${fault.start}-${fault.end}`),
      ]),
    ).toEqual(expected)
  })

  it('show the first byte that is not UTF-8', () => {
    const [frame] = framesOf([Uint8Array.from([0x7b, 0x22, 0xc3, 0x28, 0x0a])])
    expect(frame).toMatchObject({
      text: undefined,
      faults: [{ kind: 'invalid-utf8', start: 2, end: 3 }],
    })
  })

  it('have the times of their first and last byte', () => {
    const [first, second] = framesOf(['{', '"a":1}\n{', '}\n'].map(encode))
    expect([first?.firstNs, first?.lastNs, second?.firstNs, second?.lastNs]).toEqual([0, 1, 1, 2])
  })
})
