import { fc, runs } from '../fast-check.js'
import { parse as parseToml } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { parse as parseYaml, stringify as toYaml } from 'yaml'
import { unifiedDiff } from '../../src/hosts/diff.js'
import { type Format, type Splice, apply, plainValue } from '../../src/hosts/document.js'
import { entriesOf, tapWords, wordsOf } from '../../src/hosts/entries.js'
import { jsonc } from '../../src/hosts/jsonc.js'
import { toml } from '../../src/hosts/toml.js'
import { changed, recordOf, unwrapEntry, wrapEntry } from '../../src/hosts/wrapping.js'
import { yaml } from '../../src/hosts/yaml.js'

/* Any configuration is the same text after wrapping and unwrapping; any other text is refused. */

const PLACE = { path: '', tables: [['servers']] }
const WORDS = ['C:\\node "20"\\node.exe', '/opt/ccmcp/dist/cli.js', 'tap', '--']

const word = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '-y',
    'a, b',
    '[x]',
    'c # d',
    'tap',
    '--',
    "it's",
    '',
    'null',
    '1',
    'a: b',
    '*x',
    '&y',
    '"',
    '\\',
    '\t',
    'é𝒳',
  ),
)
const name = fc
  .string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 8 })
  .filter((key) => key !== '__proto__' && key.trim() === key)
const server = fc.record(
  {
    command: word,
    args: fc.option(fc.array(word, { maxLength: 4 }), { nil: undefined }),
    env: fc.dictionary(name, word, { maxKeys: 2 }),
  },
  { requiredKeys: ['command'] },
)
const config = fc.record({
  other: fc
    .jsonValue({ maxDepth: 2 })
    .filter((value) => !JSON.stringify(value).includes('__proto__')),
  servers: fc.dictionary(name, server, { minKeys: 1, maxKeys: 4 }),
})

/** A printer of JSON that puts white space and comments wherever they may be. */
const gap = fc.constantFrom(
  '',
  '',
  ' ',
  '\n',
  '\r\n\t',
  '  ',
  ' // , "x": {\n',
  '/* ] */',
  '\n\n    ',
)
function scattered(value: unknown, next: () => string): string {
  if (Array.isArray(value)) {
    const items = value.map((item) => `${next()}${scattered(item, next)}${next()}`)
    return `[${items.join(',')}${items.length > 0 && next() === ' ' ? ',' : ''}${next()}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(
      ([key, member]) =>
        `${next()}${JSON.stringify(key)}${next()}:${next()}${scattered(member, next)}${next()}`,
    )
  return `{${members.join(',')}${members.length > 0 && next() === ' ' ? ',' : ''}${next()}}`
}
const jsonTexts = fc
  .tuple(config, fc.array(gap, { minLength: 1, maxLength: 40 }), fc.boolean())
  .map(([value, gaps, mark]) => {
    let at = 0
    const next = () => gaps[at++ % gaps.length] ?? ''
    return `${mark ? '\uFEFF' : ''}${next()}${scattered(value, next)}${next()}`
  })

/** Tables with headers, inline tables and dotted names, and every kind of string. */
function tomlString(value: string, style: number): string {
  const plain = !/[\u0000-\u001f\u007f']/.test(value)
  if (style === 1 && plain) return `'${value}'`
  if (style === 2 && plain) return `'''${value}'''`
  if (style === 3) return `"""${toml.quote(value).slice(1, -1)}"""`
  return toml.quote(value)
}
const tomlTexts = fc
  .tuple(
    config,
    fc.array(fc.nat(5), { minLength: 5, maxLength: 40 }),
    fc.constantFrom('\n', '\r\n'),
  )
  .map(([{ servers }, styles, lineBreak]) => {
    let at = 0
    const next = () => styles[at++ % styles.length] ?? 0
    const string = (value: string) => tomlString(value, next())
    const list = (items: string[]) => {
      if (items.length === 0) return next() === 1 ? '[ ]' : '[]'
      const written = items.map(string)
      return next() < 2
        ? `[${lineBreak}  # first${lineBreak}  ${written.join(`,${lineBreak}  `)},${lineBreak}]`
        : `[${written.join(next() === 1 ? ' , ' : ',')}]`
    }
    const comment = () => (next() === 0 ? ' # x = "y"' : '')
    const members = ({ command, args }: { command: string; args?: string[] | undefined }) => [
      `command = ${string(command)}`,
      ...(args === undefined ? [] : [`args = ${list(args)}`]),
    ]
    const top: string[] = ['title = "x"']
    const blocks: string[] = []
    for (const [key, value] of Object.entries(servers)) {
      const quoted = toml.quote(key)
      const style = next()
      if (style === 0) top.push(...members(value).map((line) => `servers.${quoted} . ${line}`))
      else if (style === 1 && !members(value).join('').includes('\n'))
        top.push(
          `servers.${quoted} = { ${members(value).join(', ').replaceAll(/\r?\n/g, ' ').replaceAll('# first', '')} }`,
        )
      else
        blocks.push(
          `[servers.${quoted}]${comment()}`,
          ...members(value).map((line) => `  ${line}${comment()}`),
          '',
          `[servers.${quoted}.env]`,
          `A = 1979-05-27 07:32:00Z`,
        )
    }
    return [...top, ...blocks, ''].join(lineBreak)
  })

const yamlTexts = fc
  .tuple(
    config,
    fc.boolean(),
    fc.constantFrom('\n', '\r\n'),
    fc.constantFrom('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE'),
  )
  .map(([value, flow, lineBreak, style]) => {
    const text = toYaml(value, {
      defaultStringType: style as 'PLAIN',
      lineWidth: 0,
      ...(flow ? { collectionStyle: 'flow' as const } : {}),
    })
    return `# before\n${text}# after\n`.replaceAll('\n', lineBreak)
  })

const FORMATS: [name: string, format: Format, texts: fc.Arbitrary<string>][] = [
  ['JSON', jsonc, jsonTexts],
  ['TOML', toml, tomlTexts],
  ['YAML', yaml, yamlTexts],
]

/** Wraps all servers; undefined if the format refuses one of them, which it may. */
function wrapAll(format: Format, text: string) {
  const entries = entriesOf(format.parse(text), PLACE)
  const changes = entries.flatMap((entry) => {
    if (entry.argv === undefined || tapWords(wordsOf(entry.argv)) > 0) return []
    const words = [...WORDS, ...wordsOf(entry.argv)]
    return [{ entry, argv: entry.argv, words, splices: wrapEntry(format, text, entry.argv, WORDS) }]
  })
  return { ...changed(format, text, PLACE, changes), changes }
}

function unwrapAll(
  format: Format,
  before: string,
  wrapped: ReturnType<typeof wrapAll>,
  recorded: boolean,
) {
  const { text, changes } = wrapped
  const entries = new Map(entriesOf(format.parse(text), PLACE).map((entry) => [entry.id, entry]))
  const unwrapped = changes.flatMap(({ entry, argv }) => {
    const now = entries.get(entry.id)
    if (now?.argv === undefined) return []
    const record = recorded ? recordOf({ text: before, argv }, { text, argv: now.argv }) : undefined
    return [
      { entry: now, splices: unwrapEntry(format, text, now.argv, record), words: wordsOf(argv) },
    ]
  })
  return changed(format, text, PLACE, unwrapped).text
}

describe.each(FORMATS)('%s', (title, format, texts) => {
  it('is the same text after wrapping and unwrapping', () => {
    let wrappedOnes = 0
    fc.assert(
      fc.property(texts, (text) => {
        let wrapped
        try {
          wrapped = wrapAll(format, text)
        } catch (error) {
          // A text of several lines in YAML, for example; it must stay rare.
          expect(error).toBeInstanceOf(SyntaxError)
          expect(title).toBe('YAML')
          return
        }
        wrappedOnes++
        expect(unwrapAll(format, text, wrapped, true)).toBe(text)
        // Without the record, the values are the same, but for an empty list of arguments.
        const plain = (each: string) =>
          JSON.stringify(plainValue(format.parse(each))).replaceAll(',"args":[]', '')
        expect(plain(unwrapAll(format, text, wrapped, false))).toBe(plain(text))
      }),
      { numRuns: runs(150) },
    )
    expect(wrappedOnes).toBeGreaterThan(runs(100))
  })

  it('is parsed, or refused with a SyntaxError, if it was damaged', () => {
    fc.assert(
      fc.property(
        texts,
        fc.nat(),
        fc.nat(20),
        fc.string({ maxLength: 5 }),
        (text, position, length, added) => {
          const at = position % (text.length + 1)
          const damaged = text.slice(0, at) + added + text.slice(at + length)
          try {
            wrapAll(format, damaged)
          } catch (error) {
            expect(error).toBeInstanceOf(SyntaxError)
          }
        },
      ),
      { numRuns: runs(200) },
    )
  })
})

describe('the parsers agree with others', () => {
  it('JSON', () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 4 }),
        fc.nat(),
        fc.string({ maxLength: 2 }),
        (text, position, added) => {
          const at = position % (text.length + 1)
          const given = `{"x":${text.slice(0, at)}${added}${text.slice(at)}}`
          let expected: unknown
          try {
            expected = JSON.parse(given)
          } catch {
            return // we accept comments and commas beyond JSON
          }
          if (/"__proto__"/.test(given)) return
          try {
            expect(plainValue(jsonc.parse(given))).toEqual(expected)
          } catch (error) {
            expect(String(error)).toContain('is defined twice')
          }
        },
      ),
      { numRuns: runs(200) },
    )
  })

  it('TOML', () => {
    /** Numbers and dates as their text. */
    const comparable = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(comparable)
      if (value instanceof Date || typeof value !== 'object' || value === null)
        return typeof value === 'string' ? value : '(other)'
      if ('text' in value) return '(other)'
      return Object.fromEntries(
        Object.entries(value).map(([key, member]) => [key, comparable(member)]),
      )
    }
    const outcome = (parse: (text: string) => unknown, text: string) => {
      try {
        return comparable(parse(text))
      } catch {
        return 'refused'
      }
    }
    let accepted = 0
    fc.assert(
      fc.property(
        tomlTexts,
        fc.nat(),
        fc.nat(3),
        fc.constantFrom('', '"', '[', '.', '\n', 'x', '#', '='),
        (text, position, length, added) => {
          const at = position % (text.length + 1)
          for (const each of [text, text.slice(0, at) + added + text.slice(at + length)]) {
            const expected = outcome(parseToml, each)
            // We also accept what only TOML 1.1 has, such as times without seconds.
            if (expected === 'refused') continue
            accepted++
            expect(outcome((given) => plainValue(toml.parse(given)), each)).toEqual(expected)
          }
        },
      ),
      { numRuns: runs(200) },
    )
    expect(accepted).toBeGreaterThan(runs(200))
  })

  it.each([
    'a',
    'a =',
    'a = b',
    '= 1',
    'a = 1 b = 2',
    'a = "x',
    'a = "x\ny"',
    'a = "\\q"',
    'a = "\\uD800"',
    "a = '''x",
    'a = [1, 2',
    'a = [1 2]',
    'a = { b = 1',
    'a = { b }',
    'a = 1\na = 2',
    'a = 1\n[a]',
    'a = 1\n[a.b]',
    '[a]\n[a]',
    '[a]\nb = 1\n[a.b]',
    'a = { b = 1 }\n[a.c]',
    'a = { b = 1 }\na.c = 2',
    'a = [1]\n[[a]]',
    '[[a]]\n[a]',
    '[a',
    '[[a]',
    '[]',
    'a = 2026-13',
    'a = 1\r',
    '# \u0000',
  ])('that %j is not TOML', (text) => {
    expect(() => parseToml(text)).toThrow(Error)
    expect(() => toml.parse(text)).toThrow(SyntaxError)
  })

  it('TOML, with every escape', () => {
    // `\e` and `\x` are those of TOML 1.1, which not every parser has.
    for (const quotes of ['"', '"""'])
      expect(
        plainValue(
          toml.parse(String.raw`a = ${quotes}\b\t\n\f\r\e\"\\\x7F\u00e9\U0001F600${quotes}`),
        ),
      ).toEqual({ a: '\b\t\n\f\r\u001b"\\\u007fé😀' })
  })

  it('YAML', () => {
    fc.assert(
      fc.property(yamlTexts, (text) => {
        expect(plainValue(yaml.parse(text))).toEqual(parseYaml(text))
      }),
    )
  })
})

it('a diff can be applied', () => {
  const texts = fc.array(fc.constantFrom('a', 'b', '', 'cc'), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(
      texts,
      fc.array(fc.tuple(fc.nat(), fc.nat(6), fc.constantFrom('X', '', 'Y\nZ', '\n')), {
        maxLength: 4,
      }),
      (lines, edits) => {
        const text = `${lines.join('\n')}\n`
        const splices: Splice[] = []
        for (const [position, length, added] of edits) {
          const start = position % text.length
          const end = Math.min(start + length, text.length - 1)
          if (start <= end && splices.every((other) => start > other.end || end < other.start))
            splices.push({ start, end, text: added })
        }
        const patched = text.split('\n')
        const old = [...patched]
        const diff = unifiedDiff('x', text, splices)
        const result: string[] = []
        let at = 0
        for (const line of diff.split('\n').slice(2, -1)) {
          const [, first] = /^@@ -(\d+),/.exec(line) ?? []
          if (first !== undefined) while (at < Number(first) - 1) result.push(old[at++] ?? '')
          else if (line.startsWith('+')) result.push(line.slice(1))
          else {
            expect(line.slice(1)).toBe(old[at])
            if (line.startsWith(' ')) result.push(line.slice(1))
            at++
          }
        }
        while (at < old.length) result.push(old[at++] ?? '')
        expect(result.join('\n')).toBe(apply(text, splices))
      },
    ),
  )
})
