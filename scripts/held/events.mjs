import { MemoryEventStore } from '../../dist/http.js'
import { heldBytes } from './measure.mjs'

/** A string of its own, as one that was written to a connection. */
const flat = (text) => Buffer.from(text).toString()

/** Appends events to the store in memory until it is full, `perStream` to each stream. */
function events(length, perStream) {
  return async () => {
    const limit = 16 * 1024 * 1024
    const store = new MemoryEventStore({ maxBytes: limit, maxBytesPerStream: limit })
    const before = await heldBytes()
    let count = 0
    for (let free = Infinity; store.size < limit - 5000 && free > 0; free = limit - store.size) {
      const stream = flat(`session-${count}/0p`)
      for (let number = 1; number <= perStream; number++, count++)
        store.append(stream, { number, frame: flat(String(count).padEnd(length, 'x')) }, 60_000)
    }
    const held = (await heldBytes()) - before
    return { count, charged: store.size, held }
  }
}

export const rows = {
  'event of 300 characters': events(300, 50),
  'event of 20 characters': events(20, 50),
  'event of 20 characters in its own stream': events(20, 1),
}
