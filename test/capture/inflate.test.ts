import { deflateRawSync, deflateSync, gzipSync, constants, createGzip } from 'node:zlib'
import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { Inflate, InflateError } from '../../src/capture/inflate.js'

const ENOUGH = 1 << 24

function inflate(format: 'gzip' | 'deflate', chunks: readonly Uint8Array[], max = ENOUGH): Buffer {
  const decoder = new Inflate(format)
  const pieces = chunks.flatMap((chunk) => decoder.push(chunk, max))
  expect(decoder.isComplete).toBe(true)
  return Buffer.concat(pieces)
}

function cut(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const sorted = positions.map((each) => each % (bytes.length + 1)).sort((one, two) => one - two)
  return [0, ...sorted].map((start, i) => bytes.subarray(start, sorted[i] ?? bytes.length))
}

const contents = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.json().map((text) => new TextEncoder().encode(text.repeat(20))),
  fc.nat(200_000).map((length) => new Uint8Array(length).fill(65)),
  fc.nat(100_000).map((length) => Uint8Array.from({ length }, (_, i) => (i * i * 7919) >> 7)),
)
const options = fc.record({
  level: fc.nat(9),
  strategy: fc.constantFrom(
    constants.Z_DEFAULT_STRATEGY,
    constants.Z_FIXED,
    constants.Z_HUFFMAN_ONLY,
    constants.Z_RLE,
  ),
  memLevel: fc.integer({ min: 1, max: 9 }),
})
const cuts = fc.array(fc.nat(100_000), { maxLength: 8 })

describe('inflate', () => {
  it('decompresses what zlib compresses, however it is cut', () => {
    fc.assert(
      fc.property(contents, options, cuts, (bytes, how, positions) => {
        const expected = Buffer.from(bytes)
        expect(inflate('gzip', cut(gzipSync(bytes, how), positions)).equals(expected)).toBe(true)
        expect(inflate('deflate', cut(deflateSync(bytes, how), positions)).equals(expected)).toBe(
          true,
        )
        const raw = deflateRawSync(bytes, how)
        expect(inflate('deflate', cut(raw, positions)).equals(expected)).toBe(true)
      }),
      { numRuns: runs(60) },
    )
  })

  it('reads every byte on its own', () => {
    const text = Buffer.from('{"jsonrpc":"2.0"}'.repeat(50))
    const bytes = gzipSync(text)
    const each = [...bytes].map((byte) => Uint8Array.of(byte))
    expect(inflate('gzip', each).equals(text)).toBe(true)
  })

  it('returns what was flushed at once', async () => {
    const gzip = createGzip()
    const decoder = new Inflate('gzip')
    const pieces: Uint8Array[] = []
    gzip.on('data', (bytes: Buffer) => pieces.push(...decoder.push(bytes, ENOUGH)))
    gzip.write('data: 1\n\n')
    gzip.flush()
    await expect.poll(() => Buffer.concat(pieces).toString()).toBe('data: 1\n\n')
    gzip.destroy()
  })

  it('reads a gzip header with all fields', () => {
    const plain = gzipSync('hello')
    const header = Buffer.from(plain.subarray(0, 10))
    header[3] = 2 | 4 | 8 | 16
    const extra = Buffer.from([3, 0, 1, 2, 3, ...Buffer.from('name\0note\0'), 0x12, 0x34])
    const bytes = Buffer.concat([header, extra, plain.subarray(10)])
    const each = [...bytes].map((byte) => Uint8Array.of(byte))
    expect(inflate('gzip', [bytes]).toString()).toBe('hello')
    expect(inflate('gzip', each).toString()).toBe('hello')
  })

  it('stops at the limit', () => {
    const bomb = gzipSync(Buffer.alloc(1 << 20))
    const decoder = new Inflate('gzip')
    expect(() => decoder.push(bomb, 1000)).toThrow('it expands too much')
    expect(Buffer.concat(decoder.rest()).length).toBe(1000)
  })

  it('never throws anything but an InflateError, whatever the bytes are', () => {
    const damaged = fc
      .tuple(contents, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }))
      .map(([bytes, changes]) => {
        const compressed = Uint8Array.from(gzipSync(bytes.subarray(0, 5000)))
        for (const [at, byte] of changes) compressed[at % compressed.length] = byte
        return compressed
      })
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 500 }), damaged),
        cuts,
        fc.constantFrom('gzip' as const, 'deflate' as const),
        (bytes, positions, format) => {
          const decoder = new Inflate(format)
          try {
            for (const chunk of cut(bytes, positions)) decoder.push(chunk, 1 << 20)
          } catch (error) {
            expect(error).toBeInstanceOf(InflateError)
          }
        },
      ),
      { numRuns: runs(300) },
    )
  })
})
