import { fc } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { UriTemplate, hasDotSegment } from '../../src/server/uri-template.js'

describe('expansion (examples of RFC 6570, section 3.2)', () => {
  const values = {
    var: 'value',
    hello: 'Hello World!',
    half: '50%',
    path: '/foo/bar',
    x: '1024',
    y: '768',
    empty: '',
    list: ['red', 'green', 'blue'],
    v: '6',
    who: 'fred',
  }
  it.each([
    ['{var}', 'value'],
    ['{hello}', 'Hello%20World%21'],
    ['{half}', '50%25'],
    ['O{empty}X', 'OX'],
    ['map?{x,y}', 'map?1024,768'],
    ['{x,hello,y}', '1024,Hello%20World%21,768'],
    ['{var:3}', 'val'],
    ['{list}', 'red,green,blue'],
    ['{list*}', 'red,green,blue'],
    ['{+hello}', 'Hello%20World!'],
    ['{+half}', '50%25'],
    ['{+path}/here', '/foo/bar/here'],
    ['{#path,x}/here', '#/foo/bar,1024/here'],
    ['X{.var}', 'X.value'],
    ['X{.list*}', 'X.red.green.blue'],
    ['{/var,x}/here', '/value/1024/here'],
    ['{/list*}', '/red/green/blue'],
    ['{;x,y,empty}', ';x=1024;y=768;empty'],
    ['{;list*}', ';list=red;list=green;list=blue'],
    ['{?x,y,empty}', '?x=1024&y=768&empty='],
    ['{?list*}', '?list=red&list=green&list=blue'],
    ['?fixed=yes{&x}', '?fixed=yes&x=1024'],
    ['{undef}', ''],
    ['{?undef}', ''],
  ])('%s → %s', (template, expected) => {
    expect(new UriTemplate(template).expand(values)).toBe(expected)
  })
})

describe('matching', () => {
  it.each<[string, string, object | undefined]>([
    ['file:///{name}', 'file:///a%20b', { name: 'a b' }],
    ['file:///{name}', 'file:///a/b', undefined],
    ['file:///{+path}', 'file:///a/b.txt', { path: 'a/b.txt' }],
    ['file:///{+path}', 'file:///a,b/c,d', { path: 'a,b/c,d' }],
    ['x{#fragment}', 'x#a,b', { fragment: 'a,b' }],
    ['x{+a,b}', 'x1,2', { a: '1', b: '2' }],
    ['x{+list*}', 'x1,2', { list: ['1', '2'] }],
    ['db://{table}/{id}', 'db://users/7', { table: 'users', id: '7' }],
    ['db://{table}/{id}', 'db://users', undefined],
    ['db://{table}/{id}/rows', 'db://users/7/rows', { table: 'users', id: '7' }],
    ['x://a-{one}-{two}', 'x://a-1-2-3', { one: '1', two: '2-3' }],
    ['search://q{?text,limit}', 'search://q?limit=5&text=x%26y', { limit: '5', text: 'x&y' }],
    ['search://q{?text}', 'search://q', {}],
    ['search://q{?text}', 'search://q?other=1', undefined],
    ['tree://{/parts*}', 'tree:///a/b/c', { parts: ['a', 'b', 'c'] }],
    ['x://{a}{?b}', 'x://1?b=2', { a: '1', b: '2' }],
    ['x://{a}', 'x://%zz', undefined],
    ['x://{__proto__}', 'x://1', { ['__proto__']: '1' }],
    ['x://{a}', `x://${'a'.repeat(9000)}`, undefined],
  ])('%s, %s', (template, uri, expected) => {
    const found = new UriTemplate(template).match(uri)
    expect(found === undefined ? undefined : Object.entries(found)).toEqual(
      expected === undefined ? undefined : Object.entries(expected),
    )
  })

  it('matches what it expanded', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(text, text, (one, two) => {
        for (const source of ['x://{a}/{b}', 'x://{a}/y{?b}', 'x://{a}{/b}']) {
          const template = new UriTemplate(source)
          expect({ ...template.match(template.expand({ a: one, b: two })) }).toEqual({
            a: one,
            b: two,
          })
        }
      }),
    )
  })

  it.each(['{a}{b}', 'x://{+a}{b}', 'x://{a}{+b}', '{', 'x{}', 'x{a b}', 'x{a*:3}', 'x{a}/{a}'])(
    'rejects %s',
    (source) => {
      expect(() => new UriTemplate(source)).toThrow(TypeError)
    },
  )

  it('takes linear time', () => {
    expect(
      new UriTemplate('t://{a}-{b}-{c}-{d}/x').match(`t://${'-'.repeat(8000)}`),
    ).toBeUndefined()
  })

  it.each<[string, string, boolean]>([
    ['user://{id}', 'user://a', false],
    ['user://{id}', 'user://a%2Fb', true],
    ['user://{id}', 'user://a%5Cb', true],
    ['user://{id}', 'user://..', true],
    ['user://x{/id*}', 'user://x/a/b%2Fc', true],
    ['user://x{/id*}', 'user://x/a/b', false],
    ['file:///data/{+path}', 'file:///data/a//b', false],
    ['file:///data/{+path}', 'file:///data//etc/passwd', true],
    ['file:///data/{+path}', 'file:///data/%5Cetc', true],
    ['file:///data/{+path}', 'file:///data/C:/x', true],
    ['file:///data/{+path}', 'file:///data/x/a:b', false],
    ['file:///{+path}', 'file:///C:/x', false],
    ['file://{+path}', 'file:///etc/hosts', false],
    ['file://{+path}', 'file:///etc/../hosts', true],
    ['find://x{?q}', 'find://x?q=a%2Fb', false],
    ['find://x{?q}', 'find://x?q=%2Fetc', false],
  ])('%s with %s escapes its path: %s', (template, uri, out) => {
    const made = new UriTemplate(template)
    const values = made.match(uri)
    expect(values).toBeDefined()
    expect(made.escapesPath(values ?? {})).toBe(out)
  })

  it('detects values that escape a path', () => {
    expect(['..', 'a/../b', 'a\\..\\b', '.', 'a\0b'].every(hasDotSegment)).toBe(true)
    expect(['a', 'a..b', '...', 'a/b'].some(hasDotSegment)).toBe(false)
  })
})

it('expands a list of any length', () => {
  const list = Array.from({ length: 300_000 }, () => 'a')
  expect(new UriTemplate('x:{list*}').expand({ list })).toHaveLength(2 + 2 * list.length - 1)
})
