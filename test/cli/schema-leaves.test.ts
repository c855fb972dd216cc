import { describe, expect, it } from 'vitest'
import { leavesOf, propertiesOf } from '../../src/cli/schema-leaves.js'

describe('leavesOf ends for schemas of a hostile server', () => {
  const reference = (name: string) => ({ $ref: `#/$defs/${name}` })

  it('that double at each level with allOf', () => {
    const levels = Array.from({ length: 40 }, (_, level) => [
      `d${level}`,
      { allOf: [reference(`d${level + 1}`), reference(`d${level + 1}`)] },
    ])
    const root = { $defs: Object.fromEntries([...levels, ['d40', { type: 'string' }]]) }
    expect(leavesOf(reference('d0'), root).length).toBeLessThan(2)
  })

  it('that refer to themselves in every alternative', () => {
    const root = { $defs: { a: { anyOf: Array.from({ length: 16 }, () => reference('a')) } } }
    expect(leavesOf(reference('a'), root)).toEqual([])
  })

  it('that refer to themselves in allOf', () => {
    const root = { $defs: { a: { allOf: [reference('a')], type: 'object' } } }
    expect(leavesOf(reference('a'), root).length).toBeLessThan(2)
  })

  it('that repeat a schema with many properties', () => {
    const names = Array.from({ length: 1000 }, (_, index) => [`p${index}`, { type: 'string' }])
    const large = { type: 'object', properties: Object.fromEntries(names) }
    const root = { $defs: { large } }
    const copies = Array.from({ length: 100_000 }, () => reference('large'))
    expect(leavesOf({ anyOf: copies }, root).length).toBeLessThan(100)
    expect(propertiesOf({ allOf: copies }, root).size).toBeLessThanOrEqual(1000)
  })
})

it('leavesOf resolves references, alternatives and lists of types', () => {
  const root = { $defs: { id: { type: ['string', 'integer'] } } }
  expect(leavesOf({ anyOf: [{ $ref: '#/$defs/id' }, { type: 'null' }] }, root)).toEqual([
    { type: 'string' },
    { type: 'integer' },
    { type: 'null' },
  ])
  expect(leavesOf({ allOf: [{ type: 'string' }, { minLength: 1 }] }, root)).toEqual([
    { type: 'string', minLength: 1 },
  ])
})
