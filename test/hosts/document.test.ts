import { describe, expect, it } from 'vitest'
import { type List, lineBreakBefore, prepend } from '../../src/hosts/document.js'

describe('the line break before a position', () => {
  it.each([
    ['a\n  b', '\n  '],
    ['a\r\n\tb', '\r\n\t'],
    ['\nb', '\n'],
    ['a b', undefined],
    ['  b', undefined],
    ['b', undefined],
  ])('of b in %j is %j', (text, expected) => {
    expect(lineBreakBefore(text, text.indexOf('b'))).toBe(expected)
  })
})

describe('an item before the first one of a block list', () => {
  const listOf = (text: string): List => {
    const start = text.indexOf('b')
    const item = { kind: 'scalar', value: 'b', start, end: start + 1 } as const
    return { kind: 'list', items: [item], start: 0, end: text.length, block: true }
  }
  it.each([
    ['a:\n  - b', '\n  - '],
    ['a:\r\n-\tb', '\r\n-\t'],
  ])('in %j is followed by %j', (text, separator) => {
    expect(prepend(text, listOf(text), ['x'])).toEqual({
      start: text.indexOf('b'),
      end: text.indexOf('b'),
      text: `x${separator}`,
    })
  })
  it.each(['a: - b', 'a:\n  -b', 'a:\n  b', 'b'])('cannot be added to %j', (text) => {
    expect(() => prepend(text, listOf(text), ['x'])).toThrow('one item a line')
  })
  it('is found in linear time behind a million spaces', () => {
    const text = `a:${' '.repeat(1_000_000)}- ${' '.repeat(1_000_000)}b`
    expect(() => prepend(text, listOf(text), ['x'])).toThrow('one item a line')
    expect(lineBreakBefore(`\n${text}`, text.length)).toBeUndefined()
  })
})
