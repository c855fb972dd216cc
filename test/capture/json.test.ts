import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { type JsonNode, bytesIn, nodeAt, parseJson } from '../../src/capture/json.js'
import { memberOf, parseLazily, sourceOf, valueAt } from '../../src/capture/lazy-json.js'

function parsedByRuntime(text: string): { value?: unknown } {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return {}
  }
}

const texts = fc.oneof(
  fc.json(),
  fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '"', '}', '\\', '\n', '1', '\u0001'))
    .map(([json, at, piece]) => {
      const place = at % (json.length + 1)
      return json.slice(0, place) + piece + json.slice(place + 1)
    }),
  fc.string(),
  fc.constantFrom('1e400', '-0', '01', '1.', '.5', '{"__proto__":{"a":1}}', '"\\u12"', '\ufeff1'),
)

describe('JSON with positions', () => {
  it('accepts what JSON.parse accepts, with the same value', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const { node } = parseJson(text)
        expect(node === undefined ? {} : { value: node.value }).toEqual(parsedByRuntime(text))
      }),
      { numRuns: runs(3000) },
    )
  })

  it('has the exact positions of all values and names', () => {
    const check = (node: JsonNode, text: string): void => {
      expect(JSON.parse(text.slice(node.start, node.end))).toEqual(node.value)
      for (const { name, key, value } of node.members ?? []) {
        expect(JSON.parse(text.slice(key.start, key.end))).toBe(name)
        check(value, text)
      }
      for (const item of node.items ?? []) check(item, text)
    }
    fc.assert(
      fc.property(fc.json(), (text) => {
        const { node } = parseJson(text)
        if (node === undefined) throw new Error('not parsed')
        check(node, text)
      }),
    )
  })

  it.each([
    ['{"a":1,"b":{"a":2},"a":3}', 'duplicate-key', '"a"', 19],
    ['[9007199254740993]', 'unsafe-number', '9007199254740993', 1],
    ['[1e999]', 'unsafe-number', '1e999', 1],
    ['{"a":}', 'invalid-json', '}', 5],
    ['{"a":1', 'invalid-json', '', 6],
    ['"a\nb"', 'invalid-json', '\n', 2],
  ])('reports the fault in %s', (text, kind, part, start) => {
    const [fault] = parseJson(text).faults
    expect(fault).toMatchObject({ kind, start, end: start + part.length })
  })

  it('stops at texts that are too deep or too large', () => {
    expect(parseJson('['.repeat(1_000_000))).toMatchObject({
      node: undefined,
      faults: [{ kind: 'deep-nesting' }],
    })
    expect(parseJson(`[${'0,'.repeat(600_000)}0]`)).toMatchObject({
      node: undefined,
      faults: [{ kind: 'deep-nesting' }],
    })
    expect(parseJson(`"${'x'.repeat(5_000_000)}"`).faults).toEqual([])
  })

  it('finds the value at a path', () => {
    const text = '{"a.b":{"c":[1,{"d":2}]},"a":{"b":3}}'
    const { node } = parseJson(text)
    if (node === undefined) throw new Error('not parsed')
    expect(nodeAt(node, 'a.b.c[1].d').value).toBe(2)
    expect(nodeAt(node, '').value).toBe(node.value)
    // The innermost value on the way to a missing one.
    expect(nodeAt(node, 'a.b.c[7].x').value).toEqual([1, { d: 2 }])
  })

  it('converts positions to bytes', () => {
    expect(bytesIn('aü𝄞')).toBe(7)
  })
})

/** Everything that rules read of a value. */
function described(node: JsonNode, text: string): unknown {
  const names = (node.members ?? []).map(({ name }) => name)
  return {
    value: node.value,
    source: sourceOf(node, text),
    start: node.start,
    end: node.end,
    members: node.members?.map(({ name, key, value }) => [name, key, described(value, text)]),
    items: node.items?.map((item) => described(item, text)),
    byName: names.map((name) => {
      const member = memberOf(node, name)
      return member === undefined ? undefined : described(member, text)
    }),
    values: names.map((name) => valueAt(node, name)),
    missing: [memberOf(node, 'toString'), valueAt(node, 'constructor')],
  }
}

describe('JSON whose positions are found when they are read', () => {
  const same = (text: string) => {
    const [plain, lazy] = [parseJson(text), parseLazily(text)]
    expect(lazy.faults).toEqual(plain.faults)
    expect(lazy.node === undefined).toBe(plain.node === undefined)
    if (lazy.node !== undefined && plain.node !== undefined)
      expect(described(lazy.node, text)).toEqual(described(plain.node, text))
  }

  it('is the same as JSON with positions', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          texts,
          fc.json().map((json) => `{"a":${json},"b":1}`),
          fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
        ),
        same,
      ),
      { numRuns: 2000 },
    )
  })

  it.each([
    '{"a":1,"a":2}',
    '{"a":9007199254740992}',
    '{"a":9007199254740993}',
    '{"a":-9007199254740992}',
    '{"a":1e999}',
    '{"a":1e+21}',
    '{"a":-0}',
    '{"a":1.0}',
    '{"2":1,"1":2}',
    '{"__proto__":{"a":1}}',
    '{"a":"\\u0041"}',
    '{"a": 1}',
    '{"a":{}}x',
    '{"toJSON":1}',
  ])('is the same for %s', (text) => same(text))

  it('has the same limits', () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    for (const levels of [499, 500, 501, 5000]) {
      const [plain, lazy] = [parseJson(nested(levels)), parseLazily(nested(levels))]
      expect(lazy.faults).toEqual(plain.faults)
      expect(lazy.node?.end).toBe(plain.node?.end)
    }
    const many = (count: number) => `{"a":[${'0,'.repeat(count)}0]}`
    for (const count of [499_000, 500_000]) {
      const [plain, lazy] = [parseJson(many(count)), parseLazily(many(count))]
      expect(lazy.faults).toEqual(plain.faults)
      expect(lazy.node?.end).toBe(plain.node?.end)
    }
  })
})
