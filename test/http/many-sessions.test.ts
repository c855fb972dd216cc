import { expect, it, vi } from 'vitest'
import { type EventStore, httpHandler } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { STEPS } from '../../src/jsonrpc/small-steps.js'
import { POST, message } from './caller.js'

const HOUR = 3_600_000

it('that are idle end over several turns of the event loop', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    let ended = 0
    const eventStore: EventStore = {
      append: () => {},
      read: () => [],
      delete: () => void ended++,
    }
    const server = createServer({
      name: 'x',
      version: '1',
      tools: [tool({ name: 'x', run: () => 'x' })],
    })
    const handle = httpHandler(server, { keepAlive: 0, eventStore })
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    }
    const body = message('initialize', params, 1)
    for (let i = 0; i < 3 * STEPS; i++)
      await handle(new Request('http://localhost/mcp', { method: 'POST', headers: POST, body }))
    vi.advanceTimersByTime(HOUR)
    await Promise.resolve()
    for (const turns of [1, 2, 3]) {
      expect(ended).toBe(turns * STEPS)
      await new Promise(setImmediate)
    }
  } finally {
    vi.useRealTimers()
  }
})
