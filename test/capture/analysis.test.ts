import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { Analysis } from '../../src/capture/analysis.js'
import { type Direction, chunkRecord } from '../../src/capture/format.js'
import { META, handshake, ping, request, result, rowsOf, schemas } from './lines.js'

describe('rows', () => {
  it('have method, target, status and duration of both sides of a call', () => {
    const rows = rowsOf(
      ...handshake('2025-11-25'),
      request(1, 'tools/call', { name: 'add' }),
      result(1, { content: [{ type: 'text', text: 'too large' }], isError: true }),
      request(2, 'tools/call', { name: 'add' }),
      '< {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}',
    ).slice(3)
    expect(rows).toMatchObject([
      { kind: 'request', dir: 'in', method: 'tools/call', target: 'add', revision: '2025-11-25' },
      {
        kind: 'response',
        dir: 'out',
        method: 'tools/call',
        target: 'add',
        status: 'error',
        duration: 1_000_000,
        text: 'too large',
      },
      { kind: 'request' },
      { kind: 'response', status: 'error', text: '-32602 no' },
    ])
  })

  it('of open requests and incomplete lines are no findings while the server runs', () => {
    const analysis = new Analysis(schemas)
    const bytes = new TextEncoder().encode(`${ping.slice(2)}\n{"json`)
    analysis.add(chunkRecord('in', 1, 0, bytes))
    expect(analysis.end()).toMatchObject([{ kind: 'unanswered', method: 'ping', findings: [] }])
  })

  it('of a notification are not linked if two requests have the same progress token', () => {
    const call = (id: number) =>
      request(id, 'tools/call', { name: `t${id}`, _meta: { progressToken: 0 } })
    const progress =
      '< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}'
    const targets = (...lines: string[]) =>
      rowsOf(...handshake('2025-11-25'), ...lines)
        .filter(({ method }) => method === 'notifications/progress')
        .map(({ target }) => target)
    expect(targets(call(1), progress)).toEqual(['t1'])
    expect(targets(call(1), call(2), progress)).toEqual([undefined])
  })

  it('show which request a retry continues, only if its request state was returned once', () => {
    const call = (id: number) =>
      request(id, 'tools/call', { name: 'ask', _meta: META, requestState: 's', inputResponses: {} })
    const asks = (id: number) =>
      result(id, { resultType: 'input_required', requestState: 's', inputRequests: {} })
    const first = request(1, 'tools/call', { name: 'ask', _meta: META })
    expect(rowsOf(first, asks(1), call(2))[2]?.text).toBe('continues request 1')
    expect(rowsOf(first, asks(1), call(2), asks(2), call(3))[4]?.text).toBe('')
  })

  it('are made of any bytes without an exception', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...handshake('2025-11-25').map((line) => `${line.slice(2)}\n`),
        ping.slice(2),
        '\n',
      ),
      fc.json().map((json) => `${json}\n`),
      fc
        .record(
          {
            jsonrpc: fc.constant('2.0'),
            id: fc.jsonValue(),
            method: fc.constantFrom(
              'ping',
              'initialize',
              'tools/list',
              'notifications/progress',
              'notifications/cancelled',
            ),
            params: fc.jsonValue(),
            result: fc.jsonValue(),
            error: fc.jsonValue(),
          },
          { requiredKeys: [] },
        )
        .map((message) => `${JSON.stringify(message)}\n`),
    )
    const chunk = fc.tuple(
      fc.constantFrom<Direction>('in', 'out'),
      fc.oneof(
        piece.map((text) => new TextEncoder().encode(text)),
        fc.uint8Array({ maxLength: 20 }),
      ),
    )
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 12 }), (chunks) => {
        const analysis = new Analysis(schemas)
        const offsets = { in: 0, out: 0 }
        const rows = chunks.flatMap(([dir, bytes], ns) => {
          const record = chunkRecord(dir, ns, offsets[dir], bytes)
          offsets[dir] += bytes.length
          return analysis.add(record)
        })
        rows.push(...analysis.end())
        for (const { dir, start, end, findings } of rows)
          for (const finding of findings) {
            expect(finding.dir).toBe(dir)
            expect(finding.start).toBeGreaterThanOrEqual(start)
            expect(finding.end).toBeLessThanOrEqual(end)
          }
      }),
      { numRuns: runs(1000) },
    )
  })
})
