import { describe, expect, it, vi } from 'vitest'
import { MemorySessionStore } from '../../src/http.js'
import { createServer, resource } from '../../src/index.js'
import { Budget } from '../../src/jsonrpc/budget.js'
import { parseMessage } from '../../src/jsonrpc/message.js'
import { METHODS } from '../../src/protocol/methods.js'
import { SessionState, stateChangesOf } from '../../src/transports/http/session-state.js'
import { InitializedSession, message, serving } from './caller.js'

const changes = (method: string, uri: string) =>
  stateChangesOf(parseMessage(message(method, { uri }, 1)), METHODS)

it('keeps the state if a client unsubscribes beyond the memory limit', () => {
  const budget = new Budget(1000)
  const state = new SessionState('', budget)
  state.apply(changes('resources/subscribe', 'note:a'))
  state.apply(changes('resources/subscribe', 'note:b'))
  budget.charge(1000)
  expect(state.apply(changes('resources/unsubscribe', 'note:a'))).toBe(true)
  expect(state.complete).toBe(true)
  expect(state.messages.join()).not.toContain('note:a')
  expect(state.messages.join()).toContain('note:b')
})

describe('memory that is reserved for changes', () => {
  const uri = (n: number) => `note:${n}${'x'.repeat(7000)}`
  const subscribe = (n: number) => changes('resources/subscribe', uri(n))

  it('is limited, and changes that have it always fit', () => {
    const budget = new Budget(1_000_000)
    const state = new SessionState('', budget)
    const reserved = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => state.reserve(subscribe(n)))
    expect(state.reserve(subscribe(10))).toBeUndefined()
    expect(state.reserve(changes('resources/unsubscribe', uri(1)))).toBe(0)
    budget.charge(1_000_000)
    reserved.forEach((each, index) => state.apply(subscribe(index + 1), each))
    expect([state.complete, state.messages.length]).toEqual([true, 9])
    // It is there already.
    expect(state.reserve(subscribe(9))).toBe(0)
    state.apply(subscribe(9), 0)
    budget.release(1_000_000)
    expect(state.reserve(subscribe(10))).toBeUndefined()
    state.remove(subscribe(9))
    const last = state.reserve(subscribe(10)) ?? 0
    expect(last).toBeGreaterThan(7000)
    state.release(last)
    for (let n = 1; n <= 8; n++) state.apply(changes('resources/unsubscribe', uri(n)), 0)
    expect([budget.used, state.messages]).toEqual([0, []])
  })

  it('is limited by the budget', () => {
    const state = new SessionState('', new Budget(20_000))
    const first = state.reserve(subscribe(1))
    expect(state.reserve(subscribe(2))).toBeUndefined()
    state.release(first ?? 0)
    expect(state.reserve(subscribe(2))).toBeDefined()
  })
})

describe('the stored state', () => {
  it('has only the subscriptions of a batch that succeeded, and none that was cancelled', async () => {
    let subscribing = () => {}
    const server = createServer({
      name: 'notes',
      version: '1',
      resources: [resource({ uri: 'note:{id}', read: ({ id }) => id })],
    })
    server.use(async (call, next) => {
      if (call.method !== 'resources/subscribe') return next()
      const { uri } = call.params as { uri: string }
      if (uri === 'note:bad') throw new Error('no')
      if (uri === 'note:cancelled') {
        subscribing()
        await new Promise((_, reject) => call.signal.addEventListener('abort', reject))
      }
      return next()
    })
    const store = new MemorySessionStore()
    const states: string[] = []
    const sessionStore = {
      inProcess: true,
      get: (name: string) => store.get(name),
      delete: (name: string, ttl: number) => store.delete(name, ttl),
      set(name: string, record: { generation: number; state: string }, ttl: number) {
        states.push(record.state)
        return store.set(name, record, ttl)
      },
    }
    await serving(server, { sessionStore, log: { write() {} } }, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-03-26')
      const subscribe = (uri: string, id: number) => message('resources/subscribe', { uri }, id)
      await client.post(`[${subscribe('note:bad', 1)},${subscribe('note:good', 2)}]`)
      const arrived = new Promise<void>((resolve) => (subscribing = resolve))
      const cancelled = client.post(subscribe('note:cancelled', 3))
      await arrived
      await client.post(message('notifications/cancelled', { requestId: 3 }))
      await cancelled
      await client.request('resources/subscribe', { uri: 'note:last' })
      await expect.poll(() => states.at(-1)).toContain('note:last')
      expect(states.at(-1)).toContain('note:good')
      expect(states.at(-1)).not.toMatch(/note:bad|note:cancelled/)
    })
  })

  it('has a subscription of a batch whose id JavaScript cannot express as a number', async () => {
    const server = createServer({
      name: 'notes',
      version: '1',
      resources: [resource({ uri: 'note:{id}', read: ({ id }) => id })],
    })
    const store = new MemorySessionStore()
    const stored = vi.spyOn(store, 'set')
    await serving(server, { sessionStore: store }, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-03-26')
      const subscribe = message('resources/subscribe', { uri: 'note:a' }, 1)
      const { text } = await client.post(
        `[${subscribe.replace('"id":1', '"id":9007199254740993')}]`,
      )
      expect(text).toContain('"id":9007199254740993')
      await expect.poll(() => stored.mock.lastCall?.[1].state).toContain('note:a')
    })
  })

  it('is not read from a batch that was refused', async () => {
    const server = createServer({ name: 'x', version: '1' })
    await serving(server, {}, async ({ url }) => {
      for (const revision of ['2025-11-25', '2025-03-26']) {
        const client = await InitializedSession.open(url, revision)
        const element = message('ping', { x: 'in-batch' }, 1)
        let parsed = 0
        const parse = JSON.parse
        // In the same process: the messages of the batch would be parsed one by one.
        JSON.parse = (text: string, ...rest: []) => {
          if (text === element) parsed++
          return parse(text, ...rest) as unknown
        }
        try {
          const { status } = await client.post(`[${Array(1001).fill(element).join()}]`)
          expect([status, parsed]).toEqual([400, 0])
        } finally {
          JSON.parse = parse
        }
      }
    })
  })
})
