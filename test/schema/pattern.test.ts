import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { check } from '../../src/schema/json-schema.js'
import { lint } from '../../src/schema/lint.js'
import { matches, patternProblem } from '../../src/schema/pattern.js'

/**
 * What the runtime says, asked at the beginning of each character. Left to search by itself it makes two mistakes: it
 * also looks for word boundaries, and around itself, within a surrogate pair, and V8 14.6 (Node 26) does not find an
 * astral character at the end of the text (`/[^a]$/u.test('😀')` is false there).
 */
function native(pattern: string, text: string): boolean {
  const expression = new RegExp(pattern, 'uy')
  for (let at = 0; at <= text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) {
    expression.lastIndex = at
    if (expression.test(text)) return true
  }
  return false
}

describe('patterns', () => {
  it('match as RegExp does', () => {
    const atom = fc.constantFrom(
      'a',
      'b',
      '.',
      '😀',
      '[ab]',
      '[^a]',
      '\\d',
      '\\w',
      '\\W',
      '\\s',
      '\\b',
      '\\B',
      '\\u0061',
      '\\u{1f600}',
      '\\p{L}',
      '[\\]\\-a]',
      '\\.',
      '^',
      '$',
      '',
    )
    const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
      part: fc.oneof(
        { depthSize: 'small' },
        atom,
        fc
          .tuple(fc.constantFrom('(?=', '(?!', '(?<=', '(?<!'), tie('pattern'))
          .map(([look, inside]) => `${look}${inside})`),
        fc
          .tuple(
            fc.constantFrom('(', '(?:', '(?<n>'),
            tie('pattern'),
            fc.constantFrom(')', ')*', ')+', ')?', '){2}', '){0,2}', ')*?'),
          )
          .map((parts) => parts.join('')),
        fc
          .tuple(
            fc.constantFrom('a', 'b', '.', '[ab]', '\\w', '\\s', '😀'),
            fc.constantFrom('*', '+', '?', '{2}', '{1,}', '{0,2}', '+?'),
          )
          .map((parts) => parts.join('')),
      ),
      pattern: fc
        .array(tie('part'), { maxLength: 3 })
        .chain((parts) => fc.constantFrom(parts.join(''), parts.join('|'))),
    }))
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', '1', ' ', '😀', '-', '\n', '\u2028'),
      maxLength: 8,
    })
    let tried = 0
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 3, maxLength: 3 }), (source, texts) => {
        try {
          RegExp(source, 'u')
        } catch {
          return // two groups of one name
        }
        tried++
        for (const each of texts)
          expect([each, matches(source, each)]).toEqual([each, native(source, each)])
      }),
      { numRuns: runs(5000) },
    )
    expect(tried).toBeGreaterThan(runs(3000))
  })

  it.each([
    '^(a+)+$',
    '^(a|a)*$',
    '(a*)*b',
    '(?:a+){20}$',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
    'x*x*x*x*x*y',
    '\\s+$',
    '(.*a){12}',
    '(?=a)a*a*a*a*a*b',
    '^(?=(a+)+$)',
    '(?<=(a|a)*)!!',
    '^(?!.*!$).*.*.*.*x',
  ])('%s takes linear time', (pattern) => {
    expect(matches(pattern, `${'a'.repeat(20_000)}!`)).toBe(native(pattern, 'a'.repeat(14) + '!'))
  })

  it('stop after the maximum steps and report it', () => {
    const heavy = '(a{0,90}){0,50}b'
    expect(matches(heavy, 'aaab')).toBe(true)
    const named = { type: 'object', patternProperties: { [heavy]: { type: 'number' } } }
    const long = 'a'.repeat(20_000)
    const message = `takes too many steps to be compared with the pattern ${heavy}`
    expect(check({ type: 'string', pattern: heavy }, long)).toEqual({
      issues: [{ path: '', message }],
    })
    expect(check(named, { [long]: 1 })).toEqual({ issues: [{ path: '', message }] })
    // Whether it matches is not known.
    expect(check({ not: { pattern: heavy } }, long)).toEqual({ issues: [{ path: '', message }] })
    // A long text alone does not exceed the limit.
    expect(matches('^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$', 'QUJD'.repeat(500_000))).toBe(
      true,
    )
  })

  /** Patterns that are short and large when they are compiled: about 1.5 MB each. */
  const large = (count: number) => Array.from({ length: count }, (_, i) => `(a|b){1900}${i}`)

  it('are refused in a schema if they are too large together', () => {
    const schema = (count: number) => ({
      patternProperties: Object.fromEntries(large(count).map((pattern) => [pattern, {}])),
    })
    expect(lint(schema(50))).toEqual([])
    expect(lint(schema(1000))).toContain(
      'patternProperties: the patterns of the schema are too large in total; simplify them',
    )
    const [issue] = check(schema(1000), { a: 1 }).issues ?? []
    expect(issue?.message).toMatch(/^takes too many steps to be compared with the pattern /)
    // The next validation has the maximum steps again.
    expect(check(schema(50), { a: 1 })).toEqual({ value: { a: 1 } })
  })

  it('do not stay compiled without limit', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void // what the flag defines
    collect()
    const before = process.memoryUsage().heapUsed
    for (const pattern of large(100)) expect(check({ pattern }, 'a').issues).toHaveLength(1)
    collect()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(80_000_000)
  })

  it('stop after the maximum steps of a whole value', () => {
    // About 8 million steps for each string.
    const pattern = 'a{1,1000}a{1,1000}b'
    const schema = { type: 'array', items: { anyOf: [{ pattern }, {}] } }
    const text = 'a'.repeat(2000)
    expect(check(schema, [text])).toEqual({ value: [text] })
    const message = `takes too many steps to be compared with the pattern ${pattern}`
    expect(
      check(
        schema,
        Array.from({ length: 1000 }, () => text),
      ),
    ).toEqual({
      issues: [{ path: '', message }],
    })
    expect(check(schema, [text])).toEqual({ value: [text] })
  })

  it('count the steps of a lookaround only once, and never below zero', () => {
    const pattern = '(?=b[ab]{1000}a)x|a[ab]{1000}d'
    const texts = [18_000, 18_000, 18_000, 150_000].map((length) => 'a'.repeat(length))
    expect(check({ items: { not: { pattern } } }, texts)).toEqual({
      issues: [{ path: '', message: expect.stringMatching(/^takes too many steps to be /) }],
    })
  })

  it('may have lookahead and lookbehind', () => {
    const password = '^(?=.*[a-z])(?=.*\\d)(?!.*\\s)(?<!x).{4,}(?<!-)$'
    expect(patternProblem(password)).toBeUndefined()
    expect(['😀', 'a😀'].map((text) => matches('^(?=.*😀$)(?!.😀)(?<=^).+(?<=😀)$', text))).toEqual(
      [true, false],
    )
    expect(['abc1', 'abcd', '1234', 'ab 1', 'ab1-'].map((text) => matches(password, text))).toEqual(
      [true, false, false, false, false],
    )
  })

  it.each(['^(a|b)\\1$', '^(["\']).*\\1$', '^.{20000}$', '^a{1,20000}$'])(
    '%s is left to the runtime',
    (pattern) => {
      expect(patternProblem(pattern)).toBeUndefined()
      expect([matches(pattern, 'aa'), matches(pattern, '""')]).toEqual([
        native(pattern, 'aa'),
        native(pattern, '""'),
      ])
    },
  )

  it.each([
    '(a*)\\1',
    '^(a*)a*\\1$',
    '^(a?)a?a?\\1aaa$',
    '^(a|a)(a|a)\\1$',
    '^(a)(?:\\1)*$',
    '^(?:(?=(a))\\1)+$',
  ])('%s is rejected: its cost is not bounded', (pattern) => {
    expect(patternProblem(pattern)).toBe(
      `${JSON.stringify(pattern)} has a back-reference and can take more than linear time; simplify it`,
    )
  })

  it('have a maximum size', () => {
    expect(patternProblem('((a{100}){100}){100}')).toContain(
      'is too large and can take more than linear time',
    )
    expect(patternProblem('(')).toBe('"(" is not a regular expression')
  })
})
