import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { Framer, type Framing } from '../../src/framing/detect.js'
import type { Frame } from '../../src/framing/frame.js'

const encode = (text: string) => new TextEncoder().encode(text)
const bytes = (...parts: (string | number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'string' ? [...encode(part)] : part)))

/** All frames of a stream that is received in these chunks. */
function frames(
  pieces: readonly Uint8Array[],
  framing: Framing = 'auto',
  maxBytes = 1 << 20,
): Frame[] {
  const framer = new Framer(framing, { maxBytes })
  const found: Frame[] = []
  const take = () => {
    for (let frame = framer.next(); frame !== undefined; frame = framer.next()) found.push(frame)
  }
  for (const piece of pieces) {
    framer.push(piece)
    take()
  }
  framer.end()
  take()
  return found
}

function cut(whole: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(whole.subarray(at, at + size))
    at += size
  }
  pieces.push(whole.subarray(at))
  return pieces
}

const one = (text: string, framing?: Framing, maxBytes?: number) =>
  frames([encode(text)], framing, maxBytes)
const lsp = (text: string) => `Content-Length: ${encode(text).length}\r\n\r\n${text}`

describe('lines', () => {
  const cases: [string, Uint8Array, Frame[]][] = [
    ['one line', bytes('{"a":1}\n'), ['{"a":1}']],
    ['two lines', bytes('{"a":1}\n{"b":2}\n'), ['{"a":1}', '{"b":2}']],
    ['CRLF', bytes('{"a":1}\r\n{"b":2}\r\n'), ['{"a":1}\r', '{"b":2}\r']],
    ['empty lines', bytes('\n\r\n  \n\t\n{"a":1}\n\n'), ['{"a":1}']],
    ['a last line without a newline', bytes('{"a":1}\n{"b":2}'), ['{"a":1}', '{"b":2}']],
    ['a byte order mark', bytes([0xef, 0xbb, 0xbf], '{"a":1}\n'), ['{"a":1}']],
    ['a byte order mark later is data', bytes('1\n', [0xef, 0xbb, 0xbf], '2\n'), ['1', '\ufeff2']],
    [
      'U+2028, U+2029 and U+0085 end no line',
      bytes('{"a":"\u2028\u2029\u0085"}\n'),
      ['{"a":"\u2028\u2029\u0085"}'],
    ],
    ['NUL is data', bytes('{"a":"\0"}\n'), ['{"a":"\0"}']],
    ['a lone CR is white space', bytes('{"a":\r1}\n'), ['{"a":\r1}']],
    [
      'invalid UTF-8',
      bytes('{"a":"', [0xff, 0xfe], '"}\n{"b":2}\n'),
      [{ kind: 'not-utf8', offset: 6 }, '{"b":2}'],
    ],
    ['an overlong encoding', bytes('"', [0xc0, 0xaf], '"\n'), [{ kind: 'not-utf8', offset: 1 }]],
    [
      'an encoded surrogate',
      bytes('"ab', [0xed, 0xa0, 0x80], '"\n'),
      [{ kind: 'not-utf8', offset: 3 }],
    ],
    ['beyond U+10FFFF', bytes([0xf4, 0x90, 0x80, 0x80], '\n'), [{ kind: 'not-utf8', offset: 0 }]],
    ['cut off inside a character', bytes('"é', [0xc3]), [{ kind: 'not-utf8', offset: 3 }]],
    ['nothing', bytes(), []],
    ['text that is not JSON', bytes('hello\n'), ['hello']],
  ]
  it.each(cases)('%s', (_, input, expected) => {
    expect(frames([input])).toEqual(expected)
    expect(frames(cut(input, Array(input.length).fill(1)))).toEqual(expected)
  })

  it('reads 10,000 messages from one chunk', () => {
    const lines = Array.from({ length: 10_000 }, (_, i) => `{"id":${i}}`)
    expect(one(lines.join('\n') + '\n')).toEqual(lines)
  })

  it('joins characters that are split between chunks', () => {
    const text = '{"a":"Grüße 世界 👋"}'
    const whole = encode(text + '\n')
    for (let at = 0; at <= whole.length; at++) expect(frames(cut(whole, [at]))).toEqual([text])
  })

  it('skips a message beyond the limit and returns the next', () => {
    const long = `{"id":7,"method":"x","params":{"a":"${'x'.repeat(200)}"}}`
    const expected = [
      { kind: 'too-long', size: long.length, limit: 100, head: long, tail: long },
      '{"b":2}',
    ]
    expect(one(`${long}\n{"b":2}\n`, 'auto', 100)).toEqual(expected)
    expect(
      frames(cut(encode(`${long}\n{"b":2}\n`), Array(300).fill(1)), 'auto', 100),
    ).toMatchObject([{ kind: 'too-long', size: long.length }, '{"b":2}'])
    expect(one(long, 'auto', 100)).toMatchObject([
      { kind: 'too-long', size: long.length, limit: 100 },
    ])
    expect(one(`${'x'.repeat(100)}\n`, 'lines', 100)).toEqual(['x'.repeat(100)])
  })

  it('uses constant memory for an endless line', () => {
    const framer = new Framer('lines', { maxBytes: 1 << 20 })
    const chunk = new Uint8Array(1 << 16).fill(0x78)
    const before = process.memoryUsage().arrayBuffers
    for (let i = 0; i < 16_384; i++) framer.push(chunk) // 1 GiB
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 << 20)
    framer.push(encode('\n{"b":2}\n'))
    expect(framer.next()).toMatchObject({ kind: 'too-long', size: 2 ** 30 })
    expect(framer.next()).toBe('{"b":2}')
  })

  it('reports Content-Length framing once if lines are expected', () => {
    const stream = lsp('{"a":1}') + '\n' + lsp('{"b":2}') + '\n'
    expect(one(stream, 'lines')).toEqual([
      { kind: 'wrong-framing', head: 'Content-Length: 7' },
      '{"a":1}',
      '{"b":2}',
    ])
  })
})

describe('content-length', () => {
  const cases: [string, string, Frame[]][] = [
    ['one message', lsp('{"a":1}'), ['{"a":1}']],
    ['two messages', lsp('{"a":1}') + lsp('{"b":"é世"}'), ['{"a":1}', '{"b":"é世"}']],
    ['a lower-case header', 'content-length: 7\r\n\r\n{"a":1}', ['{"a":1}']],
    [
      'other headers',
      'Content-Type: application/json\r\nX-Y: z\r\nContent-Length: 7\r\n\r\n{"a":1}',
      ['{"a":1}'],
    ],
    ['bare newlines', 'Content-Length: 7\n\n{"a":1}', ['{"a":1}']],
    [
      'a newline behind each message',
      `${lsp('{"a":1}')}\r\n${lsp('{"b":2}')}\n`,
      ['{"a":1}', '{"b":2}'],
    ],
    ['newlines within a message', lsp('{\n"a":\n1}'), ['{\n"a":\n1}']],
    [
      'no length',
      'Content-Type: x\r\n\r\n{"a":1}' + lsp('{"b":2}'),
      [{ kind: 'invalid-header', reason: 'the header has no Content-Length' }, '{"b":2}'],
    ],
    [
      'a bad length',
      'Content-Length: many\r\n\r\n{"a":1}' + lsp('{"b":2}'),
      [
        { kind: 'invalid-header', reason: 'Content-Length "many" is not a number of bytes' },
        '{"b":2}',
      ],
    ],
    [
      'a negative length',
      'Content-Length: -5\r\n\r\n{"a":1}' + lsp('{"b":2}'),
      [
        { kind: 'invalid-header', reason: 'Content-Length "-5" is not a number of bytes' },
        '{"b":2}',
      ],
    ],
    [
      'a length beyond all numbers',
      `Content-Length: ${'9'.repeat(40)}\r\n\r\n{"a":1}` + lsp('{"b":2}'),
      [
        {
          kind: 'invalid-header',
          reason: `Content-Length "${'9'.repeat(40)}" is not a number of bytes`,
        },
        '{"b":2}',
      ],
    ],
    [
      'two lengths',
      'Content-Length: 7\r\nContent-Length: 8\r\n\r\n{"a":1}' + lsp('{"b":2}'),
      [{ kind: 'invalid-header', reason: 'two different Content-Length headers' }, '{"b":2}'],
    ],
    [
      'length zero',
      'Content-Length: 0\r\n\r\n' + lsp('{"b":2}'),
      [{ kind: 'invalid-header', reason: 'Content-Length is 0' }, '{"b":2}'],
    ],
    [
      'lines',
      '{"a":1}\n{"b":2}\n',
      [{ kind: 'invalid-header', reason: '"{\\"a\\":1}" is not a header' }],
    ],
    [
      'a length that is too short',
      'Content-Length: 3\r\n\r\n{"a":1}' + lsp('{"b":2}'),
      [
        '{"a',
        { kind: 'invalid-header', reason: '"\\":1}Content-Length: 7" is not a header' },
        '{"b":2}',
      ],
    ],
    [
      'an end inside a message',
      'Content-Length: 9\r\n\r\n{"a":1}',
      [{ kind: 'truncated', missing: 2 }],
    ],
    [
      'an end inside a header',
      'Content-Length: 9\r\n',
      [{ kind: 'invalid-header', reason: 'the input ended inside a header' }],
    ],
  ]
  it.each(cases)('%s', (_, input, expected) => {
    const whole = encode(input)
    expect(frames([whole], 'content-length')).toEqual(expected)
    expect(frames(cut(whole, Array(whole.length).fill(1)), 'content-length')).toEqual(expected)
  })

  it('reports JSON lines immediately and waits for a header', () => {
    const framer = new Framer('content-length', { maxBytes: 1000 })
    framer.push(encode('{"a":1}\n'))
    expect(framer.next()).toEqual({
      kind: 'invalid-header',
      reason: '"{\\"a\\":1}" is not a header',
    })
    framer.push(encode(`{"b":2}\n${lsp('{"c":3}')}`))
    expect([framer.next(), framer.next()]).toEqual(['{"c":3}', undefined])
  })

  it('reports text without a header and continues at the next header', () => {
    expect(one(`hello\r\n\r\n${lsp('{"b":2}')}`, 'content-length')).toEqual([
      { kind: 'invalid-header', reason: '"hello" is not a header' },
      '{"b":2}',
    ])
    expect(one(`${'x'.repeat(9000)}${lsp('{"b":2}')}`, 'content-length')).toMatchObject([
      { kind: 'invalid-header' },
      '{"b":2}',
    ])
  })

  it('skips a message beyond the limit and returns the next', () => {
    const long = `{"id":7,"a":"${'x'.repeat(9000)}"}`
    const expected = [
      {
        kind: 'too-long',
        size: long.length,
        limit: 100,
        head: long.slice(0, 4096),
        tail: long.slice(-4096),
      },
      '{"b":2}',
    ]
    expect(one(lsp(long) + lsp('{"b":2}'), 'content-length', 100)).toEqual(expected)
  })

  it('reports a message that is not UTF-8', () => {
    expect(
      frames([bytes('Content-Length: 4\r\n\r\n"', [0xff], '"x', lsp('{"b":2}'))], 'content-length'),
    ).toEqual([{ kind: 'not-utf8', offset: 1 }, '{"b":2}'])
  })
})

describe('detection of the framing', () => {
  const cases: [string, string, Frame[]][] = [
    ['a brace', '{"a":1}\n', ['{"a":1}']],
    ['a header', lsp('{"a":1}'), ['{"a":1}']],
    ['a header in any case', 'CONTENT-LENGTH:7\r\n\r\n{"a":1}', ['{"a":1}']],
    ['a content type first', `Content-Type: x\r\n${lsp('{"a":1}')}`, ['{"a":1}']],
    ['white space first', ` \r\n\n{"a":1}\n`, ['{"a":1}']],
    ['white space, then a header', `\r\n${lsp('{"a":1}')}`, ['{"a":1}']],
    ['a byte order mark, then a header', `\ufeff${lsp('{"a":1}')}`, ['{"a":1}']],
    ['a word that begins like a header', 'content\n{"a":1}\n', ['content', '{"a":1}']],
    ['much white space', `${' '.repeat(200)}{"a":1}\n`, ['{"a":1}']],
    ['an end too early to tell', 'cont', ['cont']],
    [
      'much white space behind a mark',
      `\ufeff${' '.repeat(200)}{"a":1}\n`,
      [`${' '.repeat(200)}{"a":1}`],
    ],
    [
      'newlines, then the beginning of a header',
      `${'\n'.repeat(70)}cont\n{"a":1}\n`,
      ['cont', '{"a":1}'],
    ],
    ['newlines, then a header', `${'\n'.repeat(70)}${lsp('{"a":1}')}`, ['{"a":1}']],
  ]
  it.each(cases)('%s', (_, input, expected) => {
    const whole = encode(input)
    expect(frames([whole])).toEqual(expected)
    expect(frames(cut(whole, Array(whole.length).fill(1)))).toEqual(expected)
  })

  it('encodes in the detected framing', () => {
    const framer = new Framer('auto', { maxBytes: 100 })
    expect(framer.encode('{}')).toBe('{}\n')
    framer.push(encode(lsp('{"a":1}')))
    expect(framer.encode('"é"')).toBe('Content-Length: 4\r\n\r\n"é"')
    expect(new Framer('content-length', { maxBytes: 100 }).encode('{}')).toBe(
      'Content-Length: 2\r\n\r\n{}',
    )
  })
})

describe('any chunking gives the same frames', () => {
  const piece = fc.oneof(
    fc.json().map((json) => [...encode(json + '\n')]),
    fc.json().map((json) => [...encode(lsp(json))]),
    fc.string({ unit: 'binary' }).map((text) => [...encode(text)]),
    fc.uint8Array({ maxLength: 12 }).map((raw) => [...raw]),
    fc
      .constantFrom(
        '\n',
        '\r\n',
        '\r\n\r\n',
        'Content-Length: 5\r\n\r\n',
        'Content-Length: x\r\n\r\n',
        'Content-',
        '\ufeff',
      )
      .map((text) => [...encode(text)]),
  )
  const stream = fc.array(piece, { maxLength: 12 }).map((parts) => Uint8Array.from(parts.flat()))
  const sizes = fc.array(fc.nat({ max: 20 }), { maxLength: 60 })

  it.each(['auto', 'lines', 'content-length'] as const)('%s', (framing) => {
    fc.assert(
      fc.property(stream, sizes, fc.constantFrom(8, 40, 1 << 20), (whole, pieces, limit) => {
        expect(frames(cut(whole, pieces), framing, limit)).toEqual(frames([whole], framing, limit))
      }),
      { numRuns: runs(3000) },
    )
  })
})
