import { afterEach, expect } from 'vitest'
import type { Channel } from '../../src/jsonrpc/channel.js'
import { MemoryChannel } from '../../src/transports/memory.js'
import { StreamChannel } from '../../src/transports/streams.js'
import { hostileServers } from './hostile.js'
import { Judge } from './judge.js'

/* Every message that crosses a channel in any test is judged by the official schemas. */

const violations: string[] = []
const judges = new WeakMap<Channel, Judge>()

function judgeOf(channel: Channel): Judge {
  const judge = judges.get(channel) ?? new Judge((violation) => violations.push(violation), hostileServers.has(channel))
  judges.set(channel, judge)
  return judge
}

for (const { prototype } of [StreamChannel, MemoryChannel] as { prototype: Channel }[]) {
  const { send, receive } = prototype
  prototype.send = function (this: Channel, frame) {
    judgeOf(this).hear('sent', frame)
    send.call(this, frame)
  }
  prototype.receive = function (this: Channel, receiver) {
    const judge = judgeOf(this)
    receive.call(this, {
      frame(frame) {
        judge.hear('received', frame)
        receiver.frame(frame)
      },
      garbage: (error, head, tail) => receiver.garbage(error, head, tail),
      closed: (error) => receiver.closed(error),
    })
  }
}

afterEach(() => {
  expect(violations.splice(0)).toEqual([])
})
