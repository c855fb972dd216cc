import { describe, expect, it, vi } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { createServer, resource } from '../../src/index.js'
import { checkServer } from '../../src/server/context.js'
import { ChangeEmitter } from '../../src/server/registry.js'
import { SubscribedUris } from '../../src/server/subscribed-uris.js'
import { normalizeUri } from '../../src/server/uri.js'
import { InitializedSession, open, statelessRequest } from '../http/caller.js'

/* Who is told that a resource has changed. */

const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })

describe('subscribed resources', () => {
  it('are told of their own changes only, in any spelling, until they are removed', () => {
    const keyOf = (uri: string) => normalizeUri(uri).text
    const changes = new ChangeEmitter(keyOf)
    const heard: string[] = []
    const [one, other] = ['one', 'other'].map(
      (name) => new SubscribedUris(changes, (key) => heard.push(`${name} ${key}`)),
    )
    const told = (...uris: string[]) => {
      heard.length = 0
      for (const uri of uris) changes.emit({ uri })
      return heard
    }
    one?.add('note:a', keyOf('note:a'))
    one?.add('NOTE:%61', keyOf('NOTE:%61'))
    other?.add('note:a', keyOf('note:a'))
    other?.add('note:b', keyOf('note:b'))
    expect(told('note:c', 'note:%61')).toEqual(['one note:a', 'other note:a'])
    expect(told('Note:b')).toEqual(['other note:b'])
    expect([
      one?.delete('note:a', keyOf('note:a')),
      one?.delete('note:a', keyOf('note:a')),
    ]).toEqual([true, false])
    expect(told('note:a')).toEqual(['one note:a', 'other note:a'])
    expect(one?.delete('NOTE:%61', keyOf('NOTE:%61'))).toBe(true)
    expect(told('note:a')).toEqual(['other note:a'])
    other?.stop()
    other?.add('note:c', keyOf('note:c'))
    other?.delete('note:b', keyOf('note:b'))
    expect(told('note:a', 'note:b', 'note:c')).toEqual([])
  })

  it('are forgotten with their clients, however these end', async () => {
    const note = resource({ uri: 'note:{name}', name: 'note', read: () => 'text' })
    const server = createServer({ name: 'notes', version: '1', resources: [note] })
    const { changes } = checkServer(server)
    const subscribed: string[] = []
    const { subscribe, unsubscribe } = changes
    vi.spyOn(changes, 'subscribe').mockImplementation((key, changed) => {
      subscribed.push(key)
      subscribe.call(changes, key, changed)
    })
    vi.spyOn(changes, 'unsubscribe').mockImplementation((key, changed) => {
      subscribed.splice(subscribed.indexOf(key), 1)
      unsubscribe.call(changes, key, changed)
    })
    for (const revision of ['2025-11-25', '2026-07-28']) {
      const client = await connect(memory(server), { revision })
      for (const uri of ['note:a', 'note:%61', 'note:b']) await client.subscribe(uri, () => {})
      expect(new Set(subscribed)).toEqual(new Set(['note:a', 'note:b']))
      await client.close()
      await until(() => expect(subscribed).toEqual([]))
    }
    await using listening = await listen(server, { port: 0 })
    const session = await InitializedSession.open(listening.url, '2025-11-25')
    await session.request('resources/subscribe', { uri: 'note:a' })
    const notifications = { resourceSubscriptions: ['note:b', 'note:c'] }
    const stream = await open(
      listening.url,
      statelessRequest('subscriptions/listen', { notifications }),
    )
    await stream.has('acknowledged')
    expect(subscribed.toSorted()).toEqual(['note:a', 'note:b', 'note:c'])
    stream.disconnect()
    await until(() => expect(subscribed).toEqual(['note:a']))
    await session.end()
    expect(subscribed).toEqual([])
  })
})
