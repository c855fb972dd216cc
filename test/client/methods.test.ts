import { expect, it } from 'vitest'
import type { Requests } from '../../src/client.js'
import { METHODS } from '../../src/protocol/methods.js'

it('types every request of the protocol', () => {
  // `satisfies` fails if a method is missing here, the comparison if one is missing in client/methods.ts.
  const typed = {
    'server/discover': true,
    ping: true,
    'tools/list': true,
    'tools/call': true,
    'resources/list': true,
    'resources/templates/list': true,
    'resources/read': true,
    'resources/subscribe': true,
    'resources/unsubscribe': true,
    'prompts/list': true,
    'prompts/get': true,
    'completion/complete': true,
    'logging/setLevel': true,
    'subscriptions/listen': true,
  } satisfies Record<keyof Requests, true>
  const methods = [...METHODS.keys()].filter((method) => method !== 'initialize')
  expect(Object.keys(typed).toSorted()).toEqual(methods.toSorted())
})
