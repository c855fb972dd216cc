import { describe, expect, it, vi } from 'vitest'
import {
  type ChangeBusDefinition,
  type ChangeReceiver,
  type Changes,
  changeBus,
} from '../../src/http.js'
import { ChangeHub } from './change-hub.js'
import { EVERYTHING, Port, changeBusContract } from './change-bus-contract.js'

describe('a bus in one process', () => {
  let hub = new ChangeHub()
  changeBusContract(
    () => hub.bus(),
    () => (hub = new ChangeHub()),
  )
})

describe('changeBus', () => {
  const until = (condition: () => unknown) =>
    vi.waitFor(condition, { timeout: 60_000, interval: 5 })
  const make = (definition: Partial<ChangeBusDefinition>) => {
    const port = new Port()
    const reports: { message: string; error?: unknown }[] = []
    const bus = changeBus({ publish() {}, open() {}, close() {}, ...definition })
    const end = bus.share(port, (entry) => void reports.push(entry))
    return { port, reports, end }
  }

  it('publishes what has failed again, merged with what has changed since, and logs that once', async () => {
    const published: Changes[] = []
    let failures = 3
    const { port, reports, end } = make({
      async publish(changes) {
        if (failures-- > 0) throw new Error('away')
        published.push(changes)
      },
    })
    port.emit({ uri: 'note:1' })
    await until(() => expect(reports).toHaveLength(1))
    port.emit({ uri: 'note:2' }, { list: 'tools' }, { uri: 'note:1' })
    await until(() => expect(published).toHaveLength(1))
    expect(published).toMatchObject([{ lists: ['tools'] }])
    const [changes] = published
    expect(typeof changes === 'object' && changes.uris.toSorted()).toEqual(['note:1', 'note:2'])
    expect(reports).toMatchObject([{ message: expect.stringContaining('could not be published') }])
    await end()
  })

  it('publishes nothing for what is no URI', async () => {
    const publish = vi.fn()
    const { port, end } = make({ publish })
    for (const uri of [undefined, null, 7, {}]) port.emit({ uri } as unknown as { uri: string })
    await end()
    expect(publish).not.toHaveBeenCalled()
  })

  it('holds a bounded set while nothing can be published, which ends in everything', async () => {
    const published: Changes[] = []
    let release = () => {}
    const { port, end } = make({
      publish(changes) {
        published.push(changes)
        return new Promise((resolve) => (release = resolve))
      },
    })
    port.emit({ uri: 'note:first' })
    await until(() => expect(published).toHaveLength(1))
    for (let turn = 0; turn < 100; turn++) {
      for (let count = 0; count < 1000; count++) port.emit({ uri: `note:${turn}/${count}` })
      await Promise.resolve()
    }
    expect(published).toHaveLength(1)
    release()
    await until(() => expect(published).toHaveLength(2))
    expect(published).toEqual([{ lists: [], uris: ['note:first'] }, 'everything'])
    release()
    port.emit({ uri: 'note:last' })
    await until(() => expect(published).toHaveLength(3))
    expect(published[2]).toEqual({ lists: [], uris: ['note:last'] })
    release()
    await end()
  })

  it('closes in time where nothing can be published', async () => {
    const closed = vi.fn()
    const never = make({ publish: () => new Promise(() => {}), close: closed })
    never.port.emit({ uri: 'note:1' })
    vi.useFakeTimers()
    try {
      const ended = never.end()
      await vi.advanceTimersByTimeAsync(2000)
      await ended
    } finally {
      vi.useRealTimers()
    }
    expect(closed).toHaveBeenCalledOnce()
    const failing = make({
      publish: () => Promise.reject(new Error('away')),
      close: () => Promise.reject(new Error('closing failed')),
    })
    failing.port.emit({ uri: 'note:1' })
    await until(() => expect(failing.reports).toHaveLength(1))
    await failing.end()
    expect(failing.reports.map(({ message }) => message)).toEqual([
      expect.stringContaining('they are published when that is possible again'),
      expect.stringContaining('The last changes could not be published'),
      'The change bus failed to close',
    ])
  })

  it('takes invalid changes of another process for everything', () => {
    let receiver: ChangeReceiver | undefined
    const { port } = make({ open: (given) => void (receiver = given) })
    const invalid: unknown[] = [
      'everything',
      undefined,
      null,
      7,
      {},
      { lists: [], uris: [1] },
      { lists: ['other'], uris: [] },
      { lists: 'tools', uris: [] },
    ]
    for (const changes of invalid) {
      receiver?.changed(changes as Changes)
      expect(port.take()).toEqual([EVERYTHING])
    }
    receiver?.changed({ lists: [], uris: [] })
    expect(port.take()).toEqual([])
  })

  it('throws what open throws, and can then be used', () => {
    let fails = true
    const port = new Port()
    const bus = changeBus({
      publish() {},
      close() {},
      open() {
        if (fails) throw new Error('no bus')
      },
    })
    expect(() => bus.share(port, () => {})).toThrow('no bus')
    expect(port.listened).toBe(false)
    fails = false
    bus.share(new Port(), () => {})
  })

  it('rejects an incomplete definition', () => {
    for (const definition of [undefined, {}, { publish() {}, open() {} }])
      expect(() => changeBus(definition as unknown as ChangeBusDefinition)).toThrow(
        'must be a function',
      )
  })
})
