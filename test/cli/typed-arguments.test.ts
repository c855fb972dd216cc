import { describe, expect, it } from 'vitest'
import { argumentsOf } from '../../src/cli/arguments.js'
import { UsageError } from '../../src/cli/options.js'
import { isPair, parsePair } from '../../src/cli/pairs.js'
import { typedArguments } from '../../src/cli/typed-arguments.js'

const text = { type: 'string' }
const schema = {
  type: 'object',
  properties: {
    text,
    count: { type: 'integer' },
    ratio: { type: 'number' },
    on: { type: 'boolean' },
    maybe: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    nullable: { type: ['string', 'null'] },
    either: { oneOf: [{ type: 'number' }, text] },
    style: { enum: ['plain', 'fancy', 3] },
    fixed: { const: 'one' },
    tags: { type: 'array', items: text },
    styles: { type: 'array', items: { enum: ['plain', 'fancy'] } },
    oneOrMore: { anyOf: [text, { type: 'array', items: text }] },
    sizes: { type: 'array', items: { $ref: '#/$defs/size' } },
    place: {
      allOf: [
        { type: 'object', properties: { city: text } },
        { properties: { zip: { $ref: '#/$defs/size' }, far: { type: 'boolean' } } },
      ],
    },
    'a.b': { type: 'integer' },
    extra: { type: 'object', additionalProperties: { type: 'integer' } },
    any: {},
    self: { $ref: '#/properties/self' },
  },
  $defs: { size: { type: 'number' } },
}

async function typed(words: readonly string[], of: unknown = schema, args?: string) {
  const values = new Map(args === undefined ? [] : [['args', args]])
  const { args: object, given } = await argumentsOf({
    values,
    positionals: [],
    pairs: [...words],
    command: undefined,
  })
  return typedArguments(object, given, of)
}

describe('name=value', () => {
  it.each<[string[], unknown]>([
    [['text=5'], { text: '5' }],
    [['text='], { text: '' }],
    [['text=a=b:=c@=d'], { text: 'a=b:=c@=d' }],
    [['text=@/etc/hostname'], { text: '@/etc/hostname' }],
    [['count=-5'], { count: -5 }],
    [['count=1e3'], { count: 1000 }],
    [['ratio=.5'], { ratio: 0.5 }],
    [['on=true'], { on: true }],
    [['maybe=null'], { maybe: null }],
    [['maybe=7'], { maybe: 7 }],
    [['nullable=null'], { nullable: null }],
    [['nullable=x'], { nullable: 'x' }],
    [['either=5'], { either: 5 }],
    [['either=x5'], { either: 'x5' }],
    [['either:="5"'], { either: '5' }],
    [['style=fancy'], { style: 'fancy' }],
    [['style=3'], { style: 3 }],
    [['fixed=one'], { fixed: 'one' }],
    [['tags=a'], { tags: ['a'] }],
    [['tags=a', 'tags=b', 'tags:=["c"]'], { tags: ['a', 'b', ['c']] }],
    [['tags=["a","b"]'], { tags: ['a', 'b'] }],
    [['sizes=1', 'sizes=2.5'], { sizes: [1, 2.5] }],
    [['oneOrMore=a'], { oneOrMore: 'a' }],
    [['oneOrMore=a', 'oneOrMore=b'], { oneOrMore: ['a', 'b'] }],
    [['place={"city":"Bonn"}'], { place: { city: 'Bonn' } }],
    [
      ['place.city=Bonn', 'place.zip=5', 'place.far=false'],
      { place: { city: 'Bonn', zip: 5, far: false } },
    ],
    [['a.b=1'], { 'a.b': 1 }],
    [['extra.x=1', 'extra.y=2'], { extra: { x: 1, y: 2 } }],
    [['any=5'], { any: 5 }],
    [['any=x'], { any: 'x' }],
    [['any=1', 'any=x'], { any: [1, 'x'] }],
  ])('%j', async (words, expected) => {
    expect(await typed(words)).toEqual(expected)
  })

  it('is added to --args and replaces its members', async () => {
    expect(await typed(['count=2'], schema, '{"count":1,"text":"x"}')).toEqual({
      count: 2,
      text: 'x',
    })
  })
  it('sets own members only', async () => {
    const result = await typed(['extra.__proto__=1'])
    expect(Object.keys(result['extra'] as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(result['extra'])).toBe(Object.prototype)
  })
  it('is text or JSON if there is no schema', async () => {
    expect(await typed(['a=5', 'b=x', 'c.d=1'], true)).toEqual({ a: 5, b: 'x', 'c.d': 1 })
    expect(await typed(['a=5'], { type: 'object' })).toEqual({ a: 5 })
  })

  it.each<[string[], string]>([
    [['count=x'], 'count: invalid value "x"; expected an integer'],
    [['count=1.5'], 'count: invalid value "1.5"; expected an integer'],
    [
      ['count=12345678901234567890'],
      'count: invalid value "12345678901234567890"; expected an integer',
    ],
    [['ratio=1e999'], 'ratio: invalid value "1e999"; expected a number'],
    [['ratio='], 'ratio: invalid value ""; expected a number'],
    [['on=yes'], 'on: invalid value "yes"; expected true or false'],
    [['maybe=x'], 'maybe: invalid value "x"; expected an integer or null'],
    [['style=fncy'], 'style: invalid value "fncy"; expected plain, fancy, 3; did you mean fancy?'],
    [['styles=fncy'], 'styles: invalid value "fncy"; expected plain, fancy; did you mean fancy?'],
    [
      ['tags=[a]'],
      'tags: invalid value "[a]"; expected an array as JSON, or the name once for each item',
    ],
    [
      ['place=x'],
      `place: invalid value "x"; expected an object as JSON, such as '{"name":"value"}'`,
    ],
    [['place.city=x', 'place={}'], 'place and place.city cannot be combined; use one'],
    [['place.cty=x'], 'Unknown argument "place.cty"; did you mean place.city?'],
    [['text=a', 'text=b'], 'text was given 2 times, but is not an array; expected string'],
    [['txt=a'], 'Unknown argument "txt"; did you mean text?'],
    [['__proto__=a'], 'Unknown argument "__proto__"; expected text, count, '],
    [['self=a'], 'self: invalid value "a"; expected self'],
    [['any:=nope'], 'any:=… is not valid JSON ('],
    [['text@=/no/such/file'], 'text@=/no/such/file: cannot read /no/such/file: ENOENT'],
    [['text@=-', 'tags@=-'], 'stdin can be read only once'],
  ])('rejects %j', async (words, problem) => {
    const error: unknown = await typed(words).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(UsageError)
    expect((error as Error).message.slice(0, problem.length)).toBe(problem)
  })

  it('lists missing arguments with their types', async () => {
    const required = { ...schema, required: ['text', 'style', 'count'] }
    await expect(typed(['count=1'], required)).rejects.toThrow(
      'Missing arguments: text (string), style ("plain" | "fancy" | 3)',
    )
    await expect(typed(['count=1', 'text=x'], required)).rejects.toThrow('Missing argument: style')
  })
  it('says so if a tool takes no arguments', async () => {
    await expect(typed(['a=1'], { type: 'object', additionalProperties: false })).rejects.toThrow(
      'Unknown argument "a"; it takes no arguments',
    )
  })
})

it.each([
  ['a=1', true],
  ['a:=1', true],
  ['a@=f', true],
  ['=1', false],
  ['./a=b.js', false],
  ['https://example.com/?a=1', false],
  ['{"a":1}', false],
])('isPair(%j) is %s', (word, expected) => {
  expect(isPair(word)).toBe(expected)
})
it('reads the operator before the first "="', () => {
  expect(parsePair('a:=b:=c')).toEqual({ name: 'a', operator: ':=', value: 'b:=c' })
  expect(parsePair('a=@x')).toEqual({ name: 'a', operator: '=', value: '@x' })
})
