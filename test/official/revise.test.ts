import { describe, expect, it } from 'vitest'
import { newest } from '../../src/protocol/revisions/index.js'
import { revise } from '../../src/protocol/revisions/revision.js'

describe('revise', () => {
  it('adds and removes methods and fields', () => {
    const { methods, fields } = revise(newest, {
      id: 'next',
      methods: { clientRequests: ['x/y'] },
      fields: { icon: ['colour'] },
      removed: { methods: { clientRequests: ['prompts/get'] }, fields: { icon: ['theme'] } },
    })
    expect(methods.clientRequests).toEqual([
      ...newest.methods.clientRequests.filter((method) => method !== 'prompts/get'),
      'x/y',
    ])
    expect(methods.serverRequests).toEqual(newest.methods.serverRequests)
    expect(fields.icon).toEqual(['src', 'mimeType', 'sizes', 'colour'])
    expect(fields.tool).toEqual(newest.fields.tool)
  })

  it('rejects removing a name that is missing', () => {
    expect(() =>
      revise(newest, { id: 'next', removed: { methods: { clientRequests: ['ping'] } } }),
    ).toThrow('revise: clientRequests has no "ping" to be removed')
    expect(() => revise(newest, { id: 'next', removed: { fields: { icon: ['colour'] } } })).toThrow(
      'revise: icon has no "colour" to be removed',
    )
  })

  it('does not change the previous revision', () => {
    const before = JSON.stringify(newest)
    revise(newest, { id: 'next', removed: { fields: { icon: ['theme'] } } })
    expect(JSON.stringify(newest)).toBe(before)
  })
})
