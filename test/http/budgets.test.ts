import { expect, it } from 'vitest'
import { Budgets } from '../../src/transports/http/budgets.js'

const budgets = () =>
  new Budgets({
    retained: 1e9,
    retainedPerPrincipal: 1e9,
    retainedPerSession: 1e9,
    pending: 1e9,
    pendingPerClient: 1e9,
    incomplete: 1e9,
    body: 1e9,
  })

it('removes principals that use no memory', () => {
  const all = budgets()
  const idle = all.of('idle')
  const used = all.of('used')
  used.pending.charge(1)
  const sending = all.of('sending')
  sending.incomplete.charge(1)
  for (let i = 0; i < 5000; i++) all.of(`p${i}`)
  expect(all.of('idle')).not.toBe(idle)
  expect(all.of('used')).toBe(used)
  expect(all.of('sending')).toBe(sending)
})

it('does not visit all principals for each new one', () => {
  const all = budgets()
  let visits = 0
  for (let i = 0; i < 10_000; i++) {
    const { retained } = all.of(`p${i}`)
    retained.charge(1)
    Object.defineProperty(retained, 'used', { get: () => ++visits })
  }
  expect(visits).toBeLessThan(50_000)
})
