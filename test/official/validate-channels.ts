import { expect } from 'vitest'
import { type Channel, type Exchange, rerouted } from '../../src/jsonrpc/channel.js'
import { StatelessExchange } from '../../src/transports/http/stateless-exchange.js'
import { HttpSession } from '../../src/transports/http/session.js'
import { MemoryChannel } from '../../src/transports/memory.js'
import { StreamChannel } from '../../src/transports/streams.js'
import { afterEveryTest } from '../after-every-test.js'
import { hostileServers } from './hostile.js'
import { SchemaValidator } from './schema-validator.js'

/* Every message that crosses a channel in any test is validated against the official schemas. */

const violations: string[] = []
const validators = new WeakMap<Channel, SchemaValidator>()

function validatorOf(channel: Channel): SchemaValidator {
  const validator =
    validators.get(channel) ??
    new SchemaValidator((violation) => violations.push(violation), hostileServers.has(channel))
  validators.set(channel, validator)
  return validator
}

/** Also validates the responses that are sent through an exchange. */
function validated(
  exchange: Exchange | undefined,
  validator: SchemaValidator,
): Exchange | undefined {
  if (exchange === undefined) return undefined
  const send: Exchange['send'] = (frame, message) => {
    validator.add('sent', frame)
    exchange.send(frame, message)
  }
  return rerouted(exchange, send, (frame, response) => {
    if (frame !== undefined) validator.add('sent', frame)
    exchange.reply(frame, response)
  })
}

for (const { prototype } of [StreamChannel, MemoryChannel, HttpSession, StatelessExchange] as {
  prototype: Channel
}[]) {
  const { send, receive } = prototype
  // Responses on this channel go through its exchange, which is wrapped.
  if (prototype !== StatelessExchange.prototype) {
    prototype.send = function (this: Channel, frame, message) {
      validatorOf(this).add('sent', frame)
      send.call(this, frame, message)
    }
  }
  prototype.receive = function (this: Channel, receiver) {
    const validator = validatorOf(this)
    receive.call(this, {
      frame(frame, exchange, message) {
        validator.add('received', frame)
        receiver.frame(frame, validated(exchange, validator), message)
      },
      malformed: (error, head, tail) => receiver.malformed(error, head, tail),
      ready: () => receiver.ready?.(),
      drained: () => receiver.drained?.(),
      failed: (id, error) => receiver.failed?.(id, error),
      closed: (error) => receiver.closed(error),
    })
  }
}

afterEveryTest(() => expect(violations.splice(0)).toEqual([]))
