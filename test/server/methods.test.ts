import { describe, expect, it } from 'vitest'
import { createServer } from '../../src/index.js'
import { METHODS } from '../../src/protocol/methods.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { checkServer } from '../../src/server/context.js'

const server = checkServer(createServer({ name: 'x', version: '1' }))

describe('the method table', () => {
  it.each(revisions.map(({ id, methods }) => [id, methods.clientRequests] as const))(
    'has a row and a handler for every request of %s',
    (_, requests) => {
      expect(
        requests.filter((method) => !METHODS.has(method)),
        'add a row to protocol/methods.ts',
      ).toEqual([])
      // The session serves `initialize`: it decides the revision.
      expect(
        requests.filter((method) => method !== 'initialize' && !server.methods.has(method)),
        'add a handler to HANDLERS in server/dispatch.ts',
      ).toEqual([])
    },
  )

  it('has no row of a method that no revision has', () => {
    const known = new Set(revisions.flatMap(({ methods }) => methods.clientRequests))
    expect(
      [...METHODS.keys()].filter((method) => !known.has(method)),
      'add it to a revision in protocol/revisions/',
    ).toEqual([])
    expect([...server.methods.keys()].filter((method) => !METHODS.has(method))).toEqual([])
  })

  it('has the properties of every served method', () => {
    for (const [method, row] of server.methods) expect(row).toMatchObject(METHODS.get(method) ?? {})
  })

  it('has only known methods in undoes', () => {
    const undone = [...METHODS.values()].flatMap(({ session }) =>
      typeof session?.keep === 'object' ? [session.keep.undoes] : [],
    )
    expect(undone).not.toEqual([])
    expect(undone.filter((method) => METHODS.get(method)?.session?.keep !== 'each')).toEqual([])
  })
})
