import { expect, it } from 'vitest'
import type { Request } from '../../src/jsonrpc/message.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION } from '../../src/protocol/meta.js'
import { newest } from '../../src/protocol/revisions/index.js'
import { readRequestMeta } from '../../src/protocol/revisions/request-meta.js'

it('reads the _meta of a request once', () => {
  let reads = 0
  const params = {
    get _meta() {
      reads++
      return { [PROTOCOL_VERSION]: newest.id, [CLIENT_CAPABILITIES]: {} }
    },
  }
  const request: Request = { kind: 'request', id: 1, method: 'tools/list', params, frame: '' }
  expect(readRequestMeta(request)?.revision).toBe(newest)
  expect(readRequestMeta(request)?.revision).toBe(newest)
  expect(reads).toBe(1)
})
