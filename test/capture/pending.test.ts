import { describe, expect, it } from 'vitest'
import { Pending } from '../../src/capture/pending.js'

const operation = (key: string, progressToken?: unknown) => ({ id: { key }, progressToken })

describe('pending requests', () => {
  it('are found by a progress token that only one of them has', () => {
    const pending = new Pending<ReturnType<typeof operation>>()
    const [first, second] = [operation('1', 'a'), operation('2', 'a')]
    pending.add(first)
    expect(pending.withToken('a')).toBe(first)
    pending.add(second)
    expect(pending.withToken('a')).toBeUndefined()
    pending.delete('1')
    expect(pending.withToken('a')).toBe(second)
    pending.delete('2')
    expect(pending.withToken('a')).toBeUndefined()
    expect([...pending.values()]).toEqual([])
  })
  it('are replaced by one with the same id', () => {
    const pending = new Pending<ReturnType<typeof operation>>()
    pending.add(operation('1', 'a'))
    const again = operation('1')
    pending.add(again)
    expect(pending.get('1')).toBe(again)
    expect(pending.withToken('a')).toBeUndefined()
    expect([...pending.values()]).toEqual([again])
  })
})
