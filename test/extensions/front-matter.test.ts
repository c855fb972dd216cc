import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { FrontMatterError, parseSkillMarkdown } from '../../src/extensions/skills/front-matter.js'

const read = (yaml: string, strict = true) =>
  parseSkillMarkdown(`---\n${yaml}\n---\n`, { strict }).frontmatter
/** What is wrong with front matter; undefined if nothing is. */
function problemOf(markdown: string, strict = true): string | undefined {
  try {
    parseSkillMarkdown(markdown, { strict })
    return undefined
  } catch (error) {
    if (error instanceof FrontMatterError) return error.message
    throw error
  }
}
const problem = (yaml: string, strict?: boolean) => problemOf(`---\n${yaml}\n---\n`, strict)

describe('the front matter of a SKILL.md', () => {
  it.each<[yaml: string, value: unknown]>([
    ['a: text', 'text'],
    ['a: "no"', 'no'],
    ["a: '2024-01-01'", '2024-01-01'],
    ['a: true', true],
    ['a: ~', null],
    ['a:', null],
    ['a: 7', 7],
    ['a: -1.5', -1.5],
    ['a: 1.2.3', '1.2.3'],
    ['a: [x, 1, {b: c}]', ['x', 1, { b: 'c' }]],
    ['a:\n  - x\n  - z: 1', ['x', { z: 1 }]],
    ['a: >\n  folded\n  text', 'folded text\n'],
    ['a: |-\n  line\n  line', 'line\nline'],
    ['a: value # comment', 'value'],
    ['a: "\\u00e9\\U0001F600"', 'é😀'],
    ['a: Now, a text with 12:30 and yes in it', 'Now, a text with 12:30 and yes in it'],
    ['a: {constructor: x}', { constructor: 'x' }],
  ])('%j is read', (yaml, value) => {
    expect(read(yaml)).toEqual({ a: value })
  })

  it.each<[yaml: string, problem: RegExp]>([
    ['a: no', /^line 2: "no" is read differently by different programs; put it in quotes$/],
    ['a: Yes', /differently/],
    ['a: [on]', /differently/],
    ['a: {b: off}', /differently/],
    ['y: 1', /differently/],
    ['a: 2024-01-31', /differently/],
    ['a: 2024-01-31T10:00:00Z', /differently/],
    ['a: 12:30', /differently/],
    ['a: 1_000', /differently/],
    ['a: 0b11', /differently/],
    ['<<: x', /differently/],
    ['a: 1.0', /"1\.0" would be read as 1; put it in quotes/],
    ['a: 1.10', /would be read as 1\.1/],
    ['a: 0123', /would be read as 123/],
    ['a: 0x1F', /would be read as 31/],
    ['a: +1', /would be read as 1/],
    ['a: 1e3', /would be read as 1000/],
  ])('%j is refused for authors, and read by hosts as YAML 1.2 says', (yaml, expected) => {
    expect(problem(yaml)).toMatch(expected)
    expect(problem(yaml, false)).toBeUndefined()
  })

  it.each<[yaml: string, problem: RegExp]>([
    ['a: 1\na: 2', /^line 3: the field "a" is defined twice; remove one$/],
    ['a: 1\n"a": 2', /twice/],
    ['a: {b: 1, b: 2}', /twice/],
    ['a: &x 1', /anchors are not allowed/],
    ['a: &x [1]\nb: *x', /anchors|aliases/],
    ['a: *x', /aliases|alias/i],
    ['a: !!str 1', /tags are not allowed/],
    ['a: !!js/function x', /tag/i],
    ['a: !local {b: c}', /tag/i],
    ['1: a', /the name of a field must be a text/],
    ['true: a', /must be a text/],
    ['~: a', /must be a text/],
    ['? [a]\n: b', /must be a text/],
    ['__proto__: {a: b}', /"__proto__"/],
    ['a: .inf', /not a number of JSON/],
    ['a: .nan', /not a number of JSON/],
    ['a: 1e999', /not a number of JSON/],
    ['a: 9007199254740993', /not a number of JSON/],
    ['a: "\\uD800"', /valid Unicode/],
    ['- a', /must be a map of fields/],
    ['text', /must be a map of fields/],
    ['', /must be a map of fields/],
    ['# nothing', /must be a map of fields/],
    ['a: [', /line \d/],
    ['a: "x', /line \d/],
    ['\ta: 1', /line \d/],
    ['a: b: c', /line \d/],
    ['a: 1\n...\nb: 2', /line \d/],
    [`a: ${'['.repeat(40)}${']'.repeat(40)}`, /nested more than 32 levels/],
    [`a: ${'['.repeat(30_000)}`, /nested|line/],
    [`a: ${'{a: '.repeat(10_000)}`, /nested|line/],
    [`a: ${'- '.repeat(20_000)}x`, /nested|line/],
    [`a: ${'x'.repeat(70_000)}`, /within 32768 characters/],
  ])('%j is refused by both', (yaml, expected) => {
    expect(problem(yaml)).toMatch(expected)
    expect(problem(yaml, false)).toMatch(expected)
  })

  it.each<[markdown: string, body: string | undefined]>([
    ['---\na: b\n---\n# Body\n', '# Body\n'],
    ['---\r\na: b\r\n---\r\n# Body\r\n', '# Body\r\n'],
    ['\uFEFF---\na: b\n---\n# Body', '# Body'],
    ['---\na: b\n---  \n---\n', '---\n'],
    ['---\na: b\n---', ''],
    ['---\na: |\n  ---\n---\nx', 'x'],
    ['----\na: b\n---\n', undefined],
    [' ---\na: b\n---\n', undefined],
    ['\n---\na: b\n---\n', undefined],
    ['---\na: b\n', undefined],
    ['---\na: b\n ---\n', undefined],
    ['', undefined],
    ['---', undefined],
  ])('of %j ends where it should', (markdown, body) => {
    if (body === undefined) expect(problemOf(markdown)).toMatch(/---/)
    else expect(parseSkillMarkdown(markdown, { strict: true })).toMatchObject({ body })
  })
})

const PARTS =
  'a|b: |: |- |? |\n|\n  |\t|&x |*x|!t |!!str |>-\n|"|\'|{|}|[|]|,|#| # c|%TAG|---|...|\r\n|\u0000|\u2028|~|0x|<<: '.split(
    '|',
  )

describe('any front matter', () => {
  const json = fc.jsonValue({ maxDepth: 4 })
  const fields = fc.dictionary(
    fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
    json,
    { minKeys: 1 },
  )

  it('that a library has written as YAML is read as the same JSON', () => {
    fc.assert(
      fc.property(fields, (value) => {
        const normal = JSON.parse(JSON.stringify(value)) as Record<string, unknown>
        const text = JSON.stringify(value)
        fc.pre(!text.includes('__proto__') && !/e[+-]?\d|-0[,}\]]/.test(text))
        const yaml = stringify(value, {
          version: '1.2',
          schema: 'core',
          aliasDuplicateObjects: false,
        })
        fc.pre(!/^---/m.test(yaml))
        const said = problem(yaml, false)
        // Numbers that JSON cannot have exactly, and half of a surrogate pair, are refused.
        if (said === undefined) expect(read(yaml, false)).toEqual(normal)
        else expect(said).toMatch(/number of JSON|Unicode|line/)
      }),
      { numRuns: runs(300) },
    )
  })

  const yamlish = fc
    .array(fc.oneof(fc.constantFrom(...PARTS), fc.string({ maxLength: 8 })), { maxLength: 60 })
    .map((parts) => parts.join(''))

  it('is JSON or refused with a message', () => {
    fc.assert(
      fc.property(yamlish, fc.boolean(), (yaml, strict) => {
        try {
          const { frontmatter } = parseSkillMarkdown(`---\n${yaml}\n---\n`, { strict })
          expect(JSON.parse(JSON.stringify(frontmatter))).toEqual(frontmatter)
        } catch (error) {
          expect(error).toBeInstanceOf(FrontMatterError)
        }
      }),
      { numRuns: runs(1000) },
    )
  })

  it('that authors may write is read in the same way by hosts', () => {
    fc.assert(
      fc.property(yamlish, (yaml) => {
        if (problem(yaml) === undefined) expect(read(yaml, false)).toEqual(read(yaml))
      }),
      { numRuns: runs(500) },
    )
  })
})
