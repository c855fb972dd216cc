import { fc, runs } from '../fast-check.js'
import { expect, it } from 'vitest'
import { chunkRecord, contentOf, encodeRecord } from '../../src/capture/format.js'
import { encodeBytes, encodedSize } from '../../src/tap/chunk-encoder.js'
import { fastEscape, plainEscape } from '../../src/tap/escape.js'

it('encodes bytes as a record that reads like that of capture/format', () => {
  const bytes = fc.oneof(
    fc.uint8Array(),
    fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(
      bytes,
      fc.constantFrom('in' as const, 'out' as const, 'stderr' as const),
      fc.nat(),
      fc.maxSafeNat(),
      (data, source, ns, offset) => {
        const recorded = { type: 'bytes', source, ns, offset, bytes: data } as const
        const out = Buffer.alloc(encodedSize(recorded) + 7)
        const end = encodeBytes(recorded, out, 7)
        const expected =
          source === 'stderr'
            ? { type: 'event' as const, event: 'stderr', ns, ...contentOf(data) }
            : chunkRecord(source, ns, offset, data)
        const line = out.toString('utf8', 7, end)
        expect(line.endsWith('}\n')).toBe(true)
        expect(line.trimEnd()).not.toContain('\n')
        expect(JSON.parse(line)).toEqual(JSON.parse(encodeRecord(expected)))
      },
    ),
    { numRuns: runs(1000) },
  )
})

it('has room for bytes that all need an escape', () => {
  const recorded = {
    type: 'bytes',
    source: 'out',
    ns: Number.MAX_SAFE_INTEGER,
    offset: Number.MAX_SAFE_INTEGER,
    bytes: new Uint8Array(1000),
  } as const
  const out = Buffer.alloc(encodedSize(recorded))
  const line = out.toString('utf8', 0, encodeBytes(recorded, out, 0))
  expect(JSON.parse(line)).toMatchObject({ text: '\0'.repeat(1000) })
})

it('escapes the same with and without WebAssembly', () => {
  const fast = fastEscape()
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.json().map((text) => Buffer.from(text)),
    fc.nat(100_000).map((length) => Buffer.alloc(length, '{"a":"\u0001ü\\"}\n')),
  )
  fc.assert(
    fc.property(bytes, fc.nat(20), (data, start) => {
      const [one, other] = [Buffer.alloc(data.length * 6 + 20), Buffer.alloc(data.length * 6 + 20)]
      const end = plainEscape(data, one, start)
      expect(fast?.(data, other, start)).toBe(end)
      expect(other.subarray(0, end).equals(one.subarray(0, end))).toBe(true)
    }),
    { numRuns: runs(500) },
  )
})
