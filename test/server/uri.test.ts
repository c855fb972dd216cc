import { fc } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { parseUrl } from '../../src/runtime.js'
import { looseKey, normalizeUri } from '../../src/server/uri.js'
import { UriTemplate } from '../../src/server/uri-template.js'

describe('the normal form of a URI (RFC 3986, section 6.2.2)', () => {
  it.each([
    // Case
    ['NOTE://Salaries', 'note://salaries'],
    ['note://host/Path?Query#Fragment', 'note://host/Path?Query#Fragment'],
    ['note://User@HOST:80/', 'note://User@host:80/'],
    ['http://[FE80::A]/', 'http://[fe80::a]/'],
    ['urn:Example:A', 'urn:Example:A'],
    ['X+Y-Z.1:a', 'x+y-z.1:a'],
    // Percent-encoding
    ['note://%73alaries', 'note://salaries'],
    ['note://%53ALARIES', 'note://salaries'],
    ['note://a/%7e%2D%2e%5F', 'note://a/~-._'],
    ['note://a%2fb%3a', 'note://a%2Fb%3A'],
    ['note://%2573alaries', 'note://%2573alaries'],
    ['note://%25%37%33', 'note://%2573'],
    ['note://100%', 'note://100%'],
    ['note://%zz%4', 'note://%zz%4'],
    ['note://%C3%A4%ff', 'note://%C3%A4%FF'],
    // Characters that are not allowed in URIs
    ['note://gehälter', 'note://geh%C3%A4lter'],
    ['note://a b"<>\\^`{|}', 'note://a%20b%22%3C%3E%5C%5E%60%7B%7C%7D'],
    ['note://😀\u0000\u007f', 'note://%F0%9F%98%80%00%7F'],
    ['note://\ud800x', 'note://%EF%BF%BDx'],
    // URIs that are not equal
    ['note://a', 'note://a'],
    ['note://a/', 'note://a/'],
    ['note://a.', 'note://a.'],
    ['https://a:443', 'https://a:443'],
    ['note://cafe\u0301', 'note://cafe%CC%81'],
    ['no scheme', 'no%20scheme'],
    ['', ''],
  ])('%j is %j', (uri, expected) => {
    const { text, withOriginalHost: cased } = normalizeUri(uri)
    expect(text).toBe(expected)
    expect(normalizeUri(text).text).toBe(text)
    expect(cased.toLowerCase()).toBe(text.toLowerCase())
  })

  it('keeps the case of the host for the values of variables', () => {
    expect(normalizeUri('USER://%41bc/X').withOriginalHost).toBe('user://Abc/X')
    const { text, withOriginalHost: cased } = normalizeUri('USER://PRE-Abc/X')
    expect({ ...new UriTemplate('user://Pre-{id}/{page}').match(text, cased) }).toEqual({
      id: 'Abc',
      page: 'X',
    })
  })

  it.each([
    ['note://a/../b', true],
    ['note://a/b/..', true],
    ['note://a/.', true],
    ['file:///%2e%2E/etc', true],
    ['note:/./a', true],
    ['note://../a', false],
    ['note://a/..b/c..', false],
    ['note://a/...', false],
    ['note://a/b?c=/../', false],
    ['urn:a/../b', false],
    ['note://a/%252e%252e/', false],
  ])('%s has dot segments: %s', (uri, dotted) => {
    expect(normalizeUri(uri).hasDotSegments).toBe(dotted)
  })

  it('takes linear time and is idempotent', () => {
    for (const text of [
      '/',
      '.',
      '/.',
      '%',
      '%2',
      '%2F',
      ':',
      '@',
      '%C3',
      'A',
      '&',
      '=',
      'ä',
      '\\',
    ])
      expect(looseKey(normalizeUri(`note://${text.repeat(200_000)}`))).toMatch(/^note:/)
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.webUrl({ withFragments: true, withQueryParameters: true }),
        ),
        (uri) => {
          const once = normalizeUri(uri)
          expect(normalizeUri(once.text).text).toBe(once.text)
          expect(once.withOriginalHost).toHaveLength(once.text.length)
          expect(typeof looseKey(once)).toBe('string')
        },
      ),
    )
  })
})

describe('a template', () => {
  it.each<[string, string, object | undefined]>([
    ['NOTE://Top-{id}', 'note://TOP-1', { id: '1' }],
    ['note://{id}/Ä', 'note://1/%c3%84', { id: '1' }],
    ['note://a%2db/{id}', 'note://a-b/1', { id: '1' }],
    ['file://{+path}.MD', 'file:///a/b.MD', { path: '/a/b' }],
    ['note://{a}.Example.com/{b}', 'note://X.EXAMPLE.COM/Y', { a: 'X', b: 'Y' }],
    ['ssh://{user}@Host/{+path}', 'ssh://Root@HOST/Etc', { user: 'Root', path: 'Etc' }],
    ['note://Host{/part}', 'note://HOST/Part', { part: 'Part' }],
    ['note://host/Path/{id}', 'note://host/path/1', undefined],
  ])('%s matches %s and every equal URI', (template, uri, expected) => {
    const { text, withOriginalHost: cased } = normalizeUri(uri)
    const found = new UriTemplate(template).match(text, cased)
    expect(found === undefined ? undefined : { ...found }).toEqual(expected)
  })

  it('has the same shape as an equal one, and expands as it is written', () => {
    expect(new UriTemplate('NOTE://%61/{x}').shape).toBe(new UriTemplate('note://a/{y}').shape)
    expect(new UriTemplate('NOTE://%61/{x}').expand({ x: '1' })).toBe('NOTE://%61/1')
  })
})

it('a host name with letters other than ASCII is a URL, however often it is parsed', () => {
  for (let count = 0; count < 20_000; count++)
    if (parseUrl('https://exämple.com/')?.host !== 'xn--exmple-cua.com')
      expect.unreachable(`the ${count}th time`)
  expect(parseUrl('nonsense')).toBeUndefined()
  expect(parseUrl('/a', 'https://example.com/b')?.href).toBe('https://example.com/a')
})
