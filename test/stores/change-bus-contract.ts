import { afterEach, expect, it, vi } from 'vitest'
import type { ChangeBus, ChangePort, SharedChange } from '../../src/http.js'

type Received = SharedChange | { readonly everything: true }

/** What a bus sees of a server. */
export class Port implements ChangePort {
  readonly received: Received[] = []
  readonly #listeners = new Set<(change: SharedChange) => void>()

  listenLocal(listener: (change: SharedChange) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  receive(change: Received): void {
    this.received.push(change)
  }

  /** A change in this process. */
  emit(...changes: readonly SharedChange[]): void {
    for (const change of changes) for (const listener of this.#listeners) listener(change)
  }

  get listened(): boolean {
    return this.#listeners.size > 0
  }

  take(): Received[] {
    return this.received.splice(0)
  }
}

export const EVERYTHING = { everything: true }
const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })

/** What every `ChangeBus` must do. Call it within `describe`; `create` makes one more bus of a server, `renew` begins another server. */
export function changeBusContract(create: () => ChangeBus, renew: () => void): void {
  const ends: (() => Promise<void>)[] = []
  const reports: unknown[] = []
  /** Ends the use of a bus. It has a second for its last changes, which does not pass here. */
  const inTime = async (end: () => Promise<unknown>) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      await end()
    } finally {
      vi.useRealTimers()
    }
  }
  afterEach(async () => {
    await inTime(() => Promise.all(ends.splice(0).map((end) => end())))
    expect(reports.splice(0)).toEqual([])
  })
  const share = (bus: ChangeBus, port: Port) => {
    const end = bus.share(port, (entry) => void reports.push(entry))
    ends.push(end)
    return end
  }
  /** Processes that get each other's changes. */
  const start = async (count: number) => {
    renew()
    const all = Array.from({ length: count }, () => ({ bus: create(), port: new Port() }))
    for (const { bus, port } of all) share(bus, port)
    const heard = (by: Port, uri: string) =>
      all.every(
        ({ port }) =>
          port === by || port.received.some((each) => 'uri' in each && each.uri === uri),
      )
    // Until each of them reads; then until what was emitted has come.
    for (const [index, { port }] of all.entries())
      await until(() => {
        port.emit({ uri: `ready:${index}` })
        expect(heard(port, `ready:${index}`)).toBe(true)
      })
    for (const [index, { port }] of all.entries()) port.emit({ uri: `last:${index}` })
    for (const [index, { port }] of all.entries())
      await until(() => expect(heard(port, `last:${index}`)).toBe(true))
    for (const { port } of all) port.take()
    return all
  }
  const pair = async () => {
    const [one, other] = await start(2)
    if (one === undefined || other === undefined) throw new Error('not started')
    return [one, other] as const
  }

  it('passes changes to all other processes, and not back', async () => {
    const all = await start(3)
    const changes: SharedChange[] = [
      { list: 'tools' },
      { list: 'prompts' },
      { list: 'resources' },
      { uri: 'note:1' },
    ]
    all[0]?.port.emit(...changes)
    for (const { port } of all.slice(1)) {
      await until(() => expect(port.received).toHaveLength(4))
      expect(port.take()).toEqual(changes)
    }
    all[2]?.port.emit({ uri: 'note:2' })
    for (const index of [0, 1])
      await until(() => expect(all[index]?.port.take()).toEqual([{ uri: 'note:2' }]))
    expect(all[2]?.port.received).toEqual([])
  })

  it('keeps the order of the changes of each process', async () => {
    const [{ port }, other] = await pair()
    const uris = Array.from({ length: 50 }, (_, number) => `note:${number}`)
    for (const uri of uris) {
      port.emit({ uri })
      await Promise.resolve()
    }
    await until(() => expect(other.port.received).toHaveLength(50))
    expect(other.port.take()).toEqual(uris.map((uri) => ({ uri })))
  })

  it('merges the changes of one turn', async () => {
    const [{ port }, other] = await pair()
    for (let count = 0; count < 100; count++) port.emit({ list: 'tools' }, { uri: 'note:1' })
    port.emit({ uri: 'note:last' })
    await until(() => expect(other.port.received).toContainEqual({ uri: 'note:last' }))
    expect(other.port.take()).toEqual([{ list: 'tools' }, { uri: 'note:1' }, { uri: 'note:last' }])
  })

  it('passes any URI on as it is', async () => {
    const [{ port }, other] = await pair()
    const uris = ['', 'a b', 'ü:語😀', 'x:"\\\n\0', 'x:\u2028', '\ud800', 'everything', '0']
    port.emit(...uris.map((uri) => ({ uri })))
    await until(() => expect(other.port.received).toHaveLength(uris.length))
    expect(other.port.take()).toEqual(uris.map((uri) => ({ uri })))
  })

  it.each([
    ['too many changes', Array.from({ length: 100_000 }, (_, number) => `note:${number}`)],
    ['a URI that is too long', [`note:${'x'.repeat(70_000)}`]],
    ['URIs that are too long together', ['a', 'b', 'c'].map((each) => each + 'ü'.repeat(15_000))],
  ])('passes %s on as a change of everything, once', async (_, uris) => {
    const [{ port }, other] = await pair()
    port.emit({ list: 'tools' }, ...uris.map((uri) => ({ uri })))
    await until(() => expect(other.port.received).not.toEqual([]))
    port.emit({ uri: 'note:after' })
    await until(() => expect(other.port.received).toContainEqual({ uri: 'note:after' }))
    expect(other.port.take()).toEqual([EVERYTHING, { uri: 'note:after' }])
  })

  it('publishes changes of a process that does not serve the server, also its own', async () => {
    const [one, other] = await pair()
    await create().publish({ uri: 'note:1' })
    for (const { port } of [one, other])
      await until(() => expect(port.take()).toEqual([{ uri: 'note:1' }]))
    await one.bus.publish({ list: 'prompts' })
    for (const { port } of [one, other])
      await until(() => expect(port.take()).toEqual([{ list: 'prompts' }]))
    // As in JavaScript.
    await expect(one.bus.publish({} as SharedChange)).rejects.toThrow('publish: pass')
    await expect(one.bus.publish({ list: 'x' } as unknown as SharedChange)).rejects.toThrow()
  })

  it('publishes the last changes before it ends, and can be used again', async () => {
    const [one, other] = await pair()
    const again = share(one.bus, one.port)
    await ends[0]?.()
    one.port.emit({ uri: 'note:1' })
    await until(() => expect(other.port.take()).toEqual([{ uri: 'note:1' }]))
    one.port.emit({ uri: 'note:2' })
    await inTime(again)
    expect(one.port.listened).toBe(false)
    await until(() => expect(other.port.take()).toEqual([{ uri: 'note:2' }]))
    other.port.emit({ uri: 'note:3' })
    // Also before it has ended.
    const last = share(one.bus, one.port)
    const ending = last()
    share(one.bus, one.port)
    await ending
    await until(() => {
      other.port.emit({ uri: 'note:4' })
      expect(one.port.received).toContainEqual({ uri: 'note:4' })
    })
    const fresh = new Port()
    expect(() => share(one.bus, fresh)).toThrow('used by another server')
    expect(fresh.listened).toBe(false)
  })
}
