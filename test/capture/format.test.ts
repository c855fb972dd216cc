import { fc } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  CaptureReader,
  type CaptureRecord,
  bytesOf,
  captureHeader,
  chunkRecord,
  encodeRecord,
  headerProblem,
  piecesOf,
} from '../../src/capture/format.js'

const HEADER = captureHeader(new Date(0), 'test')
const encode = (text: string) => new TextEncoder().encode(text)

function read(chunks: readonly Uint8Array[]): { records: CaptureRecord[]; unreadable: number } {
  const reader = new CaptureReader()
  const records = chunks.flatMap((chunk) => reader.push(chunk))
  records.push(...reader.end())
  return { records, unreadable: reader.unreadable }
}

describe('a capture', () => {
  it('keeps every byte: text if it is UTF-8, else base64', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
        const record = chunkRecord('in', 5, 7, bytes)
        const { records } = read([encode(encodeRecord(record))])
        expect(records).toEqual([record])
        expect([...bytesOf(records[0] as typeof record)]).toEqual([...bytes])
      }),
    )
    expect(chunkRecord('in', 1, 0, encode('\ufeffü\r\n'))).toMatchObject({ text: '\ufeffü\r\n' })
    expect(chunkRecord('in', 1, 0, Uint8Array.of(0xff))).toMatchObject({ base64: '/w==' })
  })

  it('has large chunks in parts of at most 64 KiB', () => {
    const bytes = Buffer.from('\n'.repeat(100_000) + 'é'.repeat(100_000) + '\n')
    const invalid = Buffer.concat([bytes, Buffer.from([0xff])])
    for (const [content, exchange] of [
      [bytes, undefined],
      [invalid, 3],
    ] as const) {
      const chunk = chunkRecord('out', 7, 5, content)
      const record = exchange === undefined ? chunk : { ...chunk, exchange }
      const parts = [...piecesOf(record)]
      let offset = 5
      const contents = parts.map((part) => {
        if (part.type !== 'chunk') throw new Error(`it is a record of type ${part.type}`)
        expect(part).toMatchObject({ dir: 'out', ns: 7, offset })
        expect(part.exchange).toBe(exchange)
        const own = bytesOf(part)
        expect(own.length).toBeLessThanOrEqual(64 * 1024)
        offset += own.length
        return own
      })
      expect(Buffer.concat(contents).equals(content)).toBe(true)
    }
  })

  it('is readable after a crash at any byte', () => {
    const records: CaptureRecord[] = [
      HEADER,
      chunkRecord('in', 1, 0, encode('{"ü":"𝄞"}\n')),
      { type: 'event', event: 'exit', ns: 2, code: 0 },
    ]
    const file = encode(records.map(encodeRecord).join(''))
    let complete = 0
    for (let size = 0; size <= file.length; size++) {
      const { records: all, unreadable } = read([file.subarray(0, size)])
      const found = all.filter(({ type }) => type !== 'unreadable')
      expect(found).toEqual(records.slice(0, found.length))
      expect(found.length).toBeGreaterThanOrEqual(complete)
      complete = found.length
      expect(unreadable).toBeLessThanOrEqual(1)
    }
    expect(complete).toBe(3)
  })

  it('does not depend on how the file is read', () => {
    const file = encode([HEADER, chunkRecord('out', 1, 0, encode('ü'))].map(encodeRecord).join(''))
    const bytes = [...file].map((byte) => Uint8Array.of(byte))
    expect(read(bytes)).toEqual(read([file]))
  })

  it('has an unreadable record for a damaged line, unless it is the first', () => {
    const text = [HEADER, chunkRecord('in', 1, 0, encode('a'))].map(encodeRecord)
    const { records } = read([encode(`?\n${text.join('{"type":"chu\n')}{"type":"ev`)])
    expect(records.map(({ type }) => type)).toEqual([
      'capture',
      'unreadable',
      'chunk',
      'unreadable',
    ])
  })

  it('skips lines that are no records and records of later versions', () => {
    const lines = [
      'x',
      '{}',
      '[]',
      'null',
      '{"type":1}',
      '{"type":"chunk","dir":"up","ns":1,"offset":0,"text":""}',
      '{"type":"chunk","dir":"in","ns":1,"offset":-1,"text":""}',
      '{"type":"chunk","dir":"in","ns":1,"offset":0}',
      '{"type":"chunk","dir":"in","ns":1,"offset":0,"base64":"%"}',
      '{"type":"chunk","dir":"in","ns":"1","offset":0,"text":""}',
      '{"type":"event","ns":1}',
      '{"type":"capture","version":"1"}',
    ]
    expect(read([encode(`${lines.join('\n')}\n`)])).toEqual({
      records: [],
      unreadable: lines.length,
    })
    expect(read([encode('{"type":"index"}\n\n')])).toEqual({ records: [], unreadable: 0 })
  })

  it('is recognized by its first record', () => {
    expect(headerProblem(HEADER)).toBeUndefined()
    expect(headerProblem(undefined)).toContain('not a capture')
    expect(headerProblem({ type: 'event', event: 'exit', ns: 1 })).toContain('not a capture')
    expect(headerProblem({ ...HEADER, version: 2 })).toContain('version 2')
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.uint8Array(), fc.json().map(encode))), (chunks) => {
        read(chunks)
      }),
    )
  })
})
