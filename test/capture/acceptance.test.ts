import { describe, expect, it } from 'vitest'
import { Acceptance } from '../../src/capture/acceptance.js'
import { FrameParser } from '../../src/capture/frames.js'
import { CaptureReader, encodeRecord } from '../../src/capture/format.js'
import { officialSchemas } from '../../src/capture/schemas/index.js'
import { check } from '../../src/schema/json-schema.js'
import { sampleCapture } from '../workbench/sample.js'

const schemas = await officialSchemas()

/** Values that are valid for some definitions, and changes that make them invalid. */
const VALUES: unknown[] = [
  { jsonrpc: '2.0', id: 1, method: 'ping' },
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'add', arguments: { a: 1 } } },
  { content: [{ type: 'text', text: 'x' }], resultType: 'complete' },
  { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }], isError: false },
  { tools: [{ name: 'a', inputSchema: { type: 'object', properties: { a: {} } } }] },
  { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } },
  { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } },
  { contents: [{ uri: 'file:///x', text: 'x' }] },
  { action: 'accept', content: { n: 1.5, s: 'x', l: ['a'] } },
  { roots: [{ uri: 'file:///x' }] },
  {},
  [],
  'text',
  null,
]

function* changed(value: unknown): Generator {
  yield value
  if (Array.isArray(value)) {
    yield [...(value as unknown[]), 1]
    for (const item of value) for (const other of changed(item)) yield [other]
  } else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) {
      const { [name]: _, ...rest } = value as Record<string, unknown> // it is an object
      yield rest
      for (const other of [1, 1.5, 'x', null, [], {}]) yield { ...value, [name]: other }
      for (const other of changed(member)) yield { ...value, [name]: other }
    }
}

describe('a value that is accepted quickly', () => {
  it.each([...schemas.keys()])('is valid, for every definition of %s', (revision) => {
    const schema = schemas.get(revision)
    if (schema === undefined) throw new Error('missing')
    const acceptance = new Acceptance(schema.definitions)
    let accepted = 0
    let valid = 0
    for (const name of Object.keys(schema.definitions)) {
      const whole = {
        $schema: schema.dialect,
        [schema.root]: schema.definitions,
        $ref: `#/${schema.root}/${name}`,
      }
      for (const value of VALUES.flatMap((each) => [...changed(each)])) {
        const isValid = check(whole, value).issues === undefined
        const isAccepted = acceptance.accepts(name, value)
        if (isAccepted && !isValid) expect.fail(`${name} accepts ${JSON.stringify(value)}`)
        accepted += isAccepted ? 1 : 0
        valid += isValid ? 1 : 0
      }
    }
    // It is of use only if it accepts what is valid.
    expect(valid).toBeGreaterThan(100)
    expect(accepted).toBe(valid)
  })
})

describe('a line of ASCII', () => {
  it('becomes the same frame without decoding', () => {
    const lines = [
      '{"a":1}\n',
      '{"b":"é"}\n',
      ' {"c":1}\n',
      '{"d":1}\r\n',
      '{}\n{}\n',
      '{"e"',
      ':1}\n',
      '{"f":1}\n',
      '{"日本":"😀 \u007f"}\n',
    ]
    const whole = new FrameParser('in')
    const quick = new FrameParser('in')
    let offset = 0
    let taken = 0
    for (const [ns, line] of lines.entries()) {
      const bytes = new TextEncoder().encode(line)
      const frame = quick.pushLine(line, offset, ns)
      taken += frame === undefined ? 0 : 1
      const expected = whole.push(bytes, offset, ns)
      expect(frame === undefined ? quick.push(bytes, offset, ns) : [frame]).toEqual(expected)
      offset += bytes.length
    }
    // The first line decides the framing.
    expect(taken).toBe(3)
    expect(quick.pushLine('{"\ud83d":1}\n', offset, 9)).toBeUndefined()
    expect(quick.pushLine('{"g":1}\n', offset + 5, 9)).toBeUndefined()
  })
})

describe('the place of a record', () => {
  it('is the same however the file is cut', () => {
    const { records } = sampleCapture()
    const file = new TextEncoder().encode(`${records.map(encodeRecord).join('é damaged\n')}\n`)
    for (const size of [1, 7, 100, 1000, file.length]) {
      const reader = new CaptureReader()
      const found: string[] = []
      for (let at = 0; at < file.length; at += size)
        reader.read(file.slice(at, at + size), (_, start, end) =>
          found.push(new TextDecoder().decode(file.subarray(start, end))),
        )
      expect(found.join('')).toBe(records.map(encodeRecord).join('é damaged\n'))
      expect(reader.unreadable).toBe(records.length - 1)
    }
  })
})
