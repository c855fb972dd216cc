import { describe, expect, it, vi } from 'vitest'
import { SessionTable } from '../../src/transports/http/session-table.js'

const MINUTE = 60_000

class Session {
  readonly id: string
  readonly owner: string | undefined
  lastUsed: number
  visits = 0
  #busy: boolean

  constructor(id: string, lastUsed: number, busy = false) {
    this.id = id
    this.owner = id.split(' ')[0]
    this.lastUsed = performance.now() - lastUsed
    this.#busy = busy
  }

  get busy(): boolean {
    this.visits++
    return this.#busy
  }
}

function tableOf(...sessions: Session[]): SessionTable<Session> {
  const table = new SessionTable<Session>()
  for (const session of sessions) table.add(session)
  return table
}
const evicted = (table: SessionTable<Session>, owner: string, ownOnly = false) =>
  table.evictable(owner, MINUTE, ownOnly)?.id

describe('the session that is evicted', () => {
  const sessions = () => [
    new Session('ada 1', 3 * MINUTE, true),
    new Session('ada 2', MINUTE + 1000),
    new Session('ada 3', 2 * MINUTE),
    new Session('bob 1', 9 * MINUTE),
    new Session('bob 2', 8 * MINUTE),
    new Session('cy 1', 10 * MINUTE),
  ]

  it('is of the principal that has most, whoever asks', () => {
    for (const owner of ['ada', 'bob', 'cy', 'dan'])
      expect(evicted(tableOf(...sessions()), owner), owner).toBe('ada 3')
  })

  it('is of the next one if that has none that is idle', () => {
    const table = tableOf(...sessions().filter(({ id }) => !/ada [23]/.test(id)))
    for (const used of [new Session('ada 4', 0), new Session('ada 5', MINUTE - 1000)])
      table.add(used)
    for (const owner of ['ada', 'bob', 'cy', 'dan'])
      expect(evicted(table, owner), owner).toBe('bob 1')
  })

  it('was idle for longest, of principals that have as many', () => {
    const table = tableOf(new Session('ada 1', 2 * MINUTE), new Session('bob 1', 3 * MINUTE))
    expect([evicted(table, 'ada'), evicted(table, 'bob')]).toEqual(['bob 1', 'bob 1'])
  })

  it('is one of the own sessions of a principal at its own limit', () => {
    const table = tableOf(...sessions())
    expect(evicted(table, 'cy', true)).toBe('cy 1')
    expect(evicted(table, 'dan', true)).toBeUndefined()
    expect(evicted(table, 'eve')).toBe('ada 3')
  })

  it('is not one that has ended', () => {
    const all = sessions()
    const table = tableOf(...all)
    for (const each of all.slice(1, 4)) table.delete(each)
    // Not the one of the table.
    table.delete(new Session('bob 2', 0))
    expect([table.size, evicted(table, 'dan')]).toEqual([3, 'cy 1'])
  })
})

describe('a search without a result', () => {
  it('is not repeated for the same principal at once, and does not keep others from theirs', () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const used = [new Session('ada 1', 0), new Session('ada 2', 5 * MINUTE, true)]
      const table = tableOf(...used, new Session('bob 1', 2 * MINUTE))
      for (let i = 0; i < 10; i++) expect(evicted(table, 'ada', true)).toBeUndefined()
      expect(used[1]?.visits).toBe(1)
      expect(evicted(table, 'bob')).toBe('bob 1')
      expect(evicted(table, 'dan')).toBe('bob 1')
      vi.advanceTimersByTime(2 * MINUTE)
      expect(evicted(table, 'ada')).toBe('ada 1')
    } finally {
      vi.useRealTimers()
    }
  })

  it('visits only sessions that may be the result', () => {
    const all = Array.from({ length: 1000 }, (_, i) => new Session(`ada ${i}`, 9 * MINUTE - i))
    expect(evicted(tableOf(...all), 'bob')).toBe('ada 0')
    expect(all.reduce((sum, { visits }) => sum + visits, 0)).toBe(1)
  })
})
