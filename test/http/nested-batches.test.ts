import { describe, expect, it } from 'vitest'
import { json, peerTo, result, scripted } from '../http-client/scripted.js'
import { InitializedSession, serving } from './caller.js'
import { nestedBatch, parsesOf } from './nested-batch.js'
import { servedOverHttp } from './served.js'
import { SseCaller } from './sse-caller.js'

/* A batch in a batch is invalid. It must not be parsed again at each level: that would block the process. */

const REVISION = '2025-03-26'

describe('batches in batches are not parsed again at each level', () => {
  it('in a session', async () => {
    await serving(servedOverHttp().server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, REVISION)
      const parses = (depth: number) =>
        parsesOf(async () => {
          const { json: answer } = await client.post(nestedBatch(depth))
          expect(answer).toMatchObject([{ id: null, error: { code: -32600 } }])
        })
      expect(await parses(100)).toBe(await parses(2))
    })
  })

  it('over HTTP+SSE', async () => {
    await serving(servedOverHttp().server, { legacySse: true }, async ({ url }) => {
      const caller = await SseCaller.initialized(new URL('/sse', url).href, REVISION)
      const parses = (depth: number) =>
        parsesOf(async () => {
          expect((await caller.post(nestedBatch(depth))).status).toBe(202)
          expect(await caller.stream.message()).toMatchObject([{ error: { code: -32600 } }])
        })
      expect(await parses(100)).toBe(await parses(2))
      caller.stream.disconnect()
    })
  })

  it('in a client', async () => {
    const { url } = await scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (message.id === undefined) return void response.writeHead(202).end()
      if (message.method === 'initialize')
        return json(response, 200, result(message.id, { protocolVersion: REVISION }))
      const nested = nestedBatch(Number(message.params?.['depth']))
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`[${nested},${JSON.stringify(result(message.id, { ok: 1 }))}]`)
    })
    const { peer } = await peerTo(url)
    const parses = (depth: number) =>
      parsesOf(async () => {
        expect(await peer.request('x', { depth })).toEqual({ ok: 1 })
      })
    expect(await parses(100)).toBe(await parses(2))
  })
})
