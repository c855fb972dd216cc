import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { RpcError } from '../../src/jsonrpc/errors.js'
import {
  MAX_BATCH,
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  exactInteger,
  parseMessage,
  readUnparsed,
} from '../../src/jsonrpc/message.js'
import { elements, syntaxErrorPosition, tooComplex, textAt } from '../../src/jsonrpc/scan.js'

describe('read', () => {
  it('classifies', () => {
    expect(parseMessage('{"jsonrpc":"2.0","id":1,"method":"ping"}')).toMatchObject({
      kind: 'request',
      id: 1,
      method: 'ping',
      params: undefined,
    })
    expect(parseMessage('{"jsonrpc":"2.0","method":"x","params":{"a":1}}')).toMatchObject({
      kind: 'notification',
      method: 'x',
      params: { a: 1 },
    })
    expect(parseMessage('{"jsonrpc":"2.0","id":"a","result":{}}')).toMatchObject({
      kind: 'response',
      id: 'a',
      outcome: { result: {} },
    })
    expect(
      parseMessage('{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"m","data":2}}'),
    ).toMatchObject({
      kind: 'response',
      id: 0,
      outcome: { error: { code: -1, message: 'm', data: 2 } },
    })
    expect(parseMessage('[{"a":1}, 2 ,"]"]')).toEqual({
      kind: 'batch',
      frames: ['{"a":1}', '2', '"]"'],
    })
    expect(parseMessage('[]')).toEqual({ kind: 'batch', frames: [] })
  })

  it.each([
    ['9007199254740993', 9007199254740993n],
    ['-9007199254740993', -9007199254740993n],
    ['123456789012345678901234567890', 123456789012345678901234567890n],
    ['9007199254740991', 9007199254740991],
    ['0', 0],
    ['-0', -0],
    ['1e3', 1000],
    ['1.0', 1],
    ['""', ''],
    ['"\\u0000\\ud800"', '\u0000\ud800'],
  ])('preserves the id %s', (written, id) => {
    expect(parseMessage(`{"jsonrpc":"2.0","id": ${written} ,"method":"x"}`)).toMatchObject({
      kind: 'request',
      id,
    })
  })

  it('preserves every digit of a large id', () => {
    expect(encodeResult(9007199254740993n, { a: 1 })).toBe(
      '{"jsonrpc":"2.0","id":9007199254740993,"result":{"a":1}}',
    )
    expect(
      exactInteger(Number('9007199254740993'), '{"params":{"requestId":9007199254740993}}', [
        'params',
        'requestId',
      ]),
    ).toBe(9007199254740993n)
  })

  it('reports the maximum length of an id', () => {
    const idOf = (size: number) =>
      parseMessage(`{"jsonrpc":"2.0","id":"${'x'.repeat(size)}","method":"x"}`)
    expect(idOf(1024)).toMatchObject({ kind: 'request' })
    expect(idOf(1025)).toMatchObject({
      kind: 'invalid',
      error: {
        code: -32600,
        message: 'Invalid Request: "id" must be a string of at most 1024 characters or an integer',
      },
    })
  })

  it('uses the last of two ids, as JSON.parse does', () => {
    expect(
      parseMessage('{"jsonrpc":"2.0","id":9007199254740995,"id":9007199254740993,"method":"x"}'),
    ).toMatchObject({ id: 9007199254740993n })
  })

  it('never throws and classifies every text', () => {
    const member = fc.oneof(
      fc.constantFrom(
        'jsonrpc',
        'id',
        'method',
        'params',
        'result',
        'error',
        '__proto__',
        'Method',
      ),
      fc.string(),
    )
    const value = fc.oneof(fc.constantFrom('2.0', null, 1, -1.5, 'x', [], {}), fc.jsonValue())
    const near = fc
      .array(fc.tuple(member, value), { maxLength: 6 })
      .map((entries) => JSON.stringify(Object.fromEntries(entries)))
    const broken = fc
      .tuple(near, fc.nat(), fc.string({ maxLength: 2 }))
      .map(
        ([json, at, extra]) =>
          json.slice(0, at % (json.length + 1)) + extra + json.slice(at % (json.length + 1)),
      )
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), near, broken), (frame) => {
        const message = parseMessage(frame)
        expect(['request', 'notification', 'response', 'batch', 'invalid']).toContain(message.kind)
        if (message.kind === 'invalid') expect(message.error).toBeInstanceOf(RpcError)
        if (message.kind === 'batch')
          expect(message.frames.map((part) => JSON.parse(part) as unknown)).toEqual(
            JSON.parse(frame),
          )
      }),
      { numRuns: runs(20_000) },
    )
  })
})

describe('unread: classifies a message by its first and last characters', () => {
  const error = new RpcError(-32600, 'too long')
  it.each([
    [
      '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"xxxx',
      { id: 7, noResponse: false },
    ],
    ['{"method":"tools/call","id":"a","params":{"a":"xxxx', { id: 'a', noResponse: false }],
    [
      '{"jsonrpc":"2.0","id":9007199254740993,"method":"x","params":',
      { id: 9007199254740993n, noResponse: false },
    ],
    ['{"jsonrpc":"2.0","id":7,"result":{"a":"xxxx', { id: 7, noResponse: true }],
    ['{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"xxxx', { id: 7, noResponse: true }],
    ['{"error":{"code":1},"id":"a","jsonrpc":"2.', { id: 'a', noResponse: true }],
    ['{"id":7,"params":{"a":"xxxx', { id: 7, noResponse: false }],
    ['{"jsonrpc":"2.0","method":"x","params":{"id":5', { id: undefined, noResponse: false }],
    ['{"jsonrpc":"2.0","id":12', { id: undefined, noResponse: false }],
    ['xxxxxx', { id: undefined, noResponse: false }],
    ['', { id: undefined, noResponse: false }],
  ])('%s', (head, expected) => {
    expect(readUnparsed(head, '', error)).toEqual({ kind: 'invalid', error, ...expected })
  })
})

describe('encode', () => {
  it('writes requests, notifications and errors', () => {
    expect(encodeRequest('a"b', 'x', { a: 1 })).toBe(
      '{"jsonrpc":"2.0","id":"a\\"b","method":"x","params":{"a":1}}',
    )
    expect(encodeRequest(1, 'x', undefined)).toBe('{"jsonrpc":"2.0","id":1,"method":"x"}')
    expect(encodeNotification('x', undefined)).toBe('{"jsonrpc":"2.0","method":"x"}')
    expect(encodeError(undefined, new RpcError(-1, 'm'), 'null')).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}',
    )
    expect(encodeError(undefined, new RpcError(-1, 'm'), 'omitted')).toBe(
      '{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}',
    )
  })

  it('writes undefined as an empty result and throws for what is not JSON', () => {
    expect(encodeResult(1, undefined)).toBe('{"jsonrpc":"2.0","id":1,"result":{}}')
    expect(() => encodeResult(1, { a: 1n })).toThrow(TypeError)
  })
})

describe('scan', () => {
  it('ignores brackets within strings for the depth', () => {
    expect(tooComplex('['.repeat(10) + ']'.repeat(10), 9)).toBe('depth')
    expect(tooComplex('['.repeat(10) + ']'.repeat(10), 10)).toBeUndefined()
    expect(tooComplex(`["${'['.repeat(100)}"]`, 9)).toBeUndefined()
    expect(tooComplex(`["\\"${'['.repeat(100)}"]`, 9)).toBeUndefined()
    expect(tooComplex(`["\\\\",${'['.repeat(20)}${']'.repeat(20)}]`, 9)).toBe('depth')
    expect(tooComplex('[{"a":[]},{"a":[]},{"a":[]},{"a":[]}]', 3)).toBeUndefined()
  })

  it('counts objects and arrays, and allows more of them in a longer text', () => {
    const million = 1_000_000
    expect(tooComplex(`[${'{},'.repeat(million - 2)}{}]`, 9)).toBeUndefined()
    expect(tooComplex(`[${'{},'.repeat(million - 1)}{}]`, 9)).toBe('containers')
    expect(tooComplex(`[${'[12.3456,48.1234],'.repeat(million)}1]`, 9)).toBeUndefined()
    expect(tooComplex(`["${'{},'.repeat(million)}"]`, 9)).toBeUndefined()
  })

  it('rejects a message with too many of them before it is parsed', () => {
    const dense = `{"jsonrpc":"2.0","id":7,"result":{"content":[${'{},'.repeat(1_000_000)}{}]}}`
    expect(parseMessage(dense)).toMatchObject({
      kind: 'invalid',
      id: 7,
      noResponse: true,
      error: { code: -32600 },
    })
  })

  it('agrees with JSON.parse on depth', () => {
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? 1 + Math.max(0, ...Object.values(value).map(depth))
        : 0
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.nat({ max: 8 }), (json, limit) => {
        if (json.length > 2 * limit)
          expect(tooComplex(json, limit) === 'depth').toBe(depth(JSON.parse(json)) > limit)
      }),
      { numRuns: runs(5000) },
    )
  })

  it('finds values and elements', () => {
    expect(textAt('{"a":{"b":[1,2]},"c":"x,y}"}', ['a', 'b'])).toBe('[1,2]')
    expect(textAt('{"a" : 12 , "c":"x"}', ['a'])).toBe('12')
    expect(textAt('{"\\u0061":5}', ['a'])).toBe('5')
    expect(textAt('[1]', ['a'])).toBeUndefined()
    expect(elements(' [ 1 , [2,3] , {"a":[4]} , "]" ] ')).toEqual([
      '1',
      '[2,3]',
      '{"a":[4]}',
      '"]"',
    ])
    expect(elements('[1,2,3,4]', 2)).toEqual(['1', '2'])
  })

  it.each([
    ['not valid json', 0],
    ['{', 1],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['[1 2]', 3],
    ['{"a":01}', 6],
    ['{"a":"\u0001"}', 6],
    ['{"a":"\\x"}', 6],
    ["{'a':1}", 1],
    ['{"a":1}}', 7],
    ['{"a":1]', 6],
    ['{"a":tru}', 5],
    ['{"a":NaN}', 5],
    ['\ufeff{}', 0],
    ['', 0],
  ])('finds the position of the syntax error in %s', (text, position) => {
    expect(() => JSON.parse(text) as unknown).toThrow()
    expect(syntaxErrorPosition(text)).toBe(position)
  })

  it('finds a syntax error exactly where JSON.parse does', () => {
    const broken = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', ',', '"', '}', ']', '{', ':', '\\', 'x', '\n', '1'),
      )
      .map(([json, at, extra]) => {
        const place = at % (json.length + 1)
        return json.slice(0, place) + extra + json.slice(place + 1)
      })
    fc.assert(
      fc.property(broken, (text) => {
        const position = syntaxErrorPosition(text)
        let valid = true
        try {
          JSON.parse(text)
        } catch (error) {
          valid = false
          const told = /position (\d+)/.exec(String(error))?.[1]
          // Of a bad word or number, V8 names the letter and we the beginning.
          if (told !== undefined)
            expect(text.slice(position, Number(told))).toMatch(/^(?:[-+.\w]*|\\u?[\da-f]*)$/i)
          if (told !== undefined) expect(Number(told)).toBeGreaterThanOrEqual(position)
        }
        if (valid) expect(position).toBe(text.length)
      }),
      { numRuns: runs(5000) },
    )
  })

  it('does not read all messages of an oversized batch', () => {
    // Parsed, these would take a gigabyte.
    for (const many of [
      `[${'{},'.repeat(10_000_000)}{}]`,
      ` \t[${'1,'.repeat(2000)}`,
      `[${'],'.repeat(2000)}`,
    ]) {
      const message = parseMessage(many)
      if (message.kind === 'batch') expect(message.frames).toHaveLength(MAX_BATCH + 1)
      else expect(message).toMatchObject({ kind: 'invalid', error: { code: -32700 } })
    }
    for (const broken of ['[', '[}', '[}}}}', '[,', '[1 2', '["', '[{', '[1,]', '[\u0000'])
      expect([broken, parseMessage(broken)]).toMatchObject([
        broken,
        { kind: 'invalid', error: { code: -32700 } },
      ])
    expect(parseMessage(`[${'1,'.repeat(MAX_BATCH - 1)}1]`)).toMatchObject({ kind: 'batch' })
  })
})
