import { expect, it } from 'vitest'
import { PostQueue } from '../../src/transports/http/client/post-queue.js'

/** CPU time of sending so many messages, in milliseconds. */
async function sendAll(count: number): Promise<number> {
  let sent = 0
  let done = () => {}
  const all = new Promise<void>((resolve) => (done = resolve))
  const queue = new PostQueue(
    () => {
      if (++sent === count) done()
      return Promise.resolve()
    },
    () => {},
  )
  const before = process.cpuUsage()
  for (let number = 0; number < count; number++) queue.add({ frame: '{}', message: undefined })
  await all
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

it('a message costs the same however many wait', async () => {
  await sendAll(2000)
  const one = await sendAll(5000)
  const many = await sendAll(100_000)
  // Twenty times as many; a queue that moves all the others for each takes a thousand times as long.
  expect(many / one).toBeLessThan(100)
})
