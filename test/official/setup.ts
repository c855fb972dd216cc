import { afterEach, expect } from 'vitest'
import { type Channel, type Exchange, rerouted } from '../../src/jsonrpc/channel.js'
import { StatelessExchange } from '../../src/transports/http/stateless-exchange.js'
import { HttpSession } from '../../src/transports/http/session.js'
import { MemoryChannel } from '../../src/transports/memory.js'
import { StreamChannel } from '../../src/transports/streams.js'
import { hostileServers } from './hostile.js'
import { Judge } from './judge.js'

/* Every message that crosses a channel in any test is judged by the official schemas. */

const violations: string[] = []
const judges = new WeakMap<Channel, Judge>()

function judgeOf(channel: Channel): Judge {
  const judge =
    judges.get(channel) ??
    new Judge((violation) => violations.push(violation), hostileServers.has(channel))
  judges.set(channel, judge)
  return judge
}

/** What is answered on a way of its own is heard as well. */
function heard(exchange: Exchange | undefined, judge: Judge): Exchange | undefined {
  if (exchange === undefined) return undefined
  const send: Exchange['send'] = (frame, message) => {
    judge.hear('sent', frame)
    exchange.send(frame, message)
  }
  return rerouted(exchange, send, (frame, response) => {
    if (frame !== undefined) judge.hear('sent', frame)
    exchange.reply(frame, response)
  })
}

for (const { prototype } of [StreamChannel, MemoryChannel, HttpSession, StatelessExchange] as {
  prototype: Channel
}[]) {
  const { send, receive } = prototype
  // The one request of this channel is answered by its exchange, which is heard.
  if (prototype !== StatelessExchange.prototype) {
    prototype.send = function (this: Channel, frame, message) {
      judgeOf(this).hear('sent', frame)
      send.call(this, frame, message)
    }
  }
  prototype.receive = function (this: Channel, receiver) {
    const judge = judgeOf(this)
    receive.call(this, {
      frame(frame, exchange, message) {
        judge.hear('received', frame)
        receiver.frame(frame, heard(exchange, judge), message)
      },
      garbage: (error, head, tail) => receiver.garbage(error, head, tail),
      ready: () => receiver.ready?.(),
      failed: (id, error) => receiver.failed?.(id, error),
      closed: (error) => receiver.closed(error),
    })
  }
}

afterEach(() => {
  expect(violations.splice(0)).toEqual([])
})
