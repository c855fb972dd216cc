import { describe, expect, it, vi } from 'vitest'
import { SessionTable } from '../../src/transports/http/session-table.js'
import { fc, runs } from '../fast-check.js'

const MINUTE = 60_000
/** How often it was asked when a session was last used. */
let reads = 0

class Session {
  readonly id: string
  readonly owner: string | undefined
  visits = 0
  #lastUsed: number
  #busy: boolean

  constructor(id: string, lastUsed: number, busy = false) {
    this.id = id
    this.owner = id.split(' ')[0]
    this.#lastUsed = performance.now() - lastUsed
    this.#busy = busy
  }

  get lastUsed(): number {
    reads++
    return this.#lastUsed
  }

  get busy(): boolean {
    this.visits++
    return this.#busy
  }

  used(): void {
    this.#lastUsed = performance.now()
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

describe('many evictions', () => {
  const COUNT = 5000
  /** Replaces idle sessions, one after the other. */
  const replace = (table: SessionTable<Session>, times: number, owner: (i: number) => string) => {
    const order: string[] = []
    reads = 0
    for (let i = 0; i < times; i++) {
      const session = table.evictable('new', MINUTE, false)
      if (session === undefined) break
      order.push(session.id)
      table.delete(session)
      table.add(new Session(`${owner(i)} new ${i}`, 0))
    }
    return order
  }
  const made = (name: (i: number) => string, busy?: (i: number) => boolean) =>
    Array.from({ length: COUNT }, (_, i) => new Session(name(i), 9 * MINUTE - i, busy?.(i)))

  it.each([
    ['of one principal', () => 'ada'],
    ['of one principal each', (i: number) => `ada-${i}`],
    ['of two principals', (i: number) => `ada-${i % 2}`],
  ])('of sessions %s take a few steps each', (_, owner) => {
    const table = tableOf(...made((i) => `${owner(i)} ${i}`))
    expect(replace(table, 1000, (i) => owner(COUNT + i))).toEqual(
      Array.from({ length: 1000 }, (_, i) => `${owner(i)} ${i}`),
    )
    expect(reads).toBeLessThan(1000 * 200)
  })

  it('ask a busy session once a minute, and none that was used', () => {
    const all = made(
      (i) => `ada ${i}`,
      (i) => i < COUNT / 2,
    )
    const table = tableOf(...all)
    const isUsed = (i: number) => i >= COUNT / 2 && i % 2 === 0
    for (const [i, session] of all.entries()) if (isUsed(i)) session.used()
    expect(replace(table, COUNT, () => 'ada')).toEqual(
      all.flatMap(({ id }, i) => (i < COUNT / 2 || isUsed(i) ? [] : [id])),
    )
    expect(all.map(({ visits }) => visits)).toEqual(all.map((_, i) => (isUsed(i) ? 0 : 1)))
  })
})

const SIZE = { maxLength: 60 }

it('is the one that a search of all sessions finds', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(5), fc.nat(30), fc.nat(MINUTE)), SIZE), (steps) => {
        const table = new SessionTable<Session>()
        const all: Session[] = []
        const remove = (session: Session) => {
          table.delete(session)
          all.splice(all.indexOf(session), 1)
        }
        for (const [i, [step, choice, time]] of steps.entries()) {
          // No two sessions are used at the same time.
          vi.advanceTimersByTime(time + 1)
          const chosen = all[choice % Math.max(1, all.length)]
          if (step < 3 || chosen === undefined) {
            const session = new Session(`${choice % 4} ${i}`, 0)
            table.add(session)
            all.push(session)
          } else if (step === 3) chosen.used()
          else if (step === 4) remove(chosen)
          else {
            const found = table.evictable('new', MINUTE, false)
            expect(found).toBe(oldestOfMost(all))
            if (found !== undefined) remove(found)
          }
        }
      }),
      { numRuns: runs(400) },
    )
  } finally {
    vi.useRealTimers()
  }
})

/** Of all sessions that are idle, the first one of the principals that have most. */
function oldestOfMost(all: readonly Session[]): Session | undefined {
  const countOf = (session: Session) => all.filter(({ owner }) => owner === session.owner).length
  const idle = all.filter(({ lastUsed }) => lastUsed < performance.now() - MINUTE)
  const [first] = idle.toSorted((a, b) => countOf(b) - countOf(a) || a.lastUsed - b.lastUsed)
  return first
}
