import { describe, expect, it, vi } from 'vitest'
import { connect } from '../../src/client.js'
import { scriptedServer, settle } from './scripted-server.js'

describe.each(['2025-11-25', '2026-07-28'])('updates of resources in %s', (revision) => {
  it('each is parsed once, however much is subscribed to and cached', async () => {
    const server = scriptedServer({
      revision,
      serve(asked, end) {
        if (asked.method === 'resources/read') {
          const contents = [{ uri: asked.params['uri'], text: 'x' }]
          end.answer(asked, { contents, ttlMs: 60_000, cacheScope: 'private' })
        } else if (asked.method === 'subscriptions/listen') end.acknowledge(asked)
        else return false
        return true
      },
    })
    await using client = await connect(server)
    const heard: string[] = []
    for (let index = 0; index < 50; index++) {
      const uri = `file:///docs/${index}`
      await client.subscribe(uri, (change) => heard.push(change.uri))
      await client.readResource(uri)
    }
    const parse = vi.spyOn(globalThis, 'URL')
    try {
      for (let index = 0; index < 50; index++)
        server.server.notify('notifications/resources/updated', {
          uri: `file:///docs/${index}/part`,
        })
      await settle()
      // By the subscriptions, and by the cache: for the update and for what it drops.
      expect(parse.mock.calls.length).toBeLessThanOrEqual(3 * 50)
    } finally {
      parse.mockRestore()
    }
    expect(heard).toHaveLength(50)
    await client.readResource('file:///docs/7')
    expect(server.of('resources/read')).toHaveLength(51)
  })
})
