import { vi } from 'vitest'
import {
  type ChangeBusDefinition,
  type ListenOptions,
  MemoryEventStore,
  MemorySessionStore,
  type EventStore,
  type SessionStore,
  changeBus,
  listen,
} from '../../src/http.js'
import { type Server, createServer, tool } from '../../src/index.js'
import {
  InitializedSession,
  POST,
  statelessRequest,
  message,
  send,
  serving,
} from '../http/caller.js'
import { type Hook, type Row, outcome, row } from './modes.js'

const REVISION = '2025-11-25'
const quiet = { write: () => true }

function served(): Server {
  return createServer({
    name: 'hooks',
    version: '1',
    tools: [
      tool({ name: 'plain', run: () => 'done' }),
      tool({
        name: 'told',
        run: async (_, call) => {
          call.log.warning('first')
          await new Promise((resolve) => setImmediate(resolve))
          return 'done'
        },
      }),
    ],
  })
}

async function overHttp(
  options: ListenOptions,
  use: (url: string) => Promise<string>,
  server = served(),
): Promise<string> {
  let came = ''
  await serving(server, { log: quiet, ...options }, async ({ url }) => {
    came = await use(url)
    vi.useRealTimers()
    // The next request is served.
    if (
      options.auth === undefined &&
      (await send(url, statelessRequest('tools/call', { name: 'plain' }))).status !== 200
    )
      came += ', then nothing'
  })
  return came
}

/** The outcome of a request, with fake timers. */
async function soon(send: () => Promise<unknown>, hook: Hook): Promise<string> {
  if (hook.mode === 'never settles') vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  return await outcome(send(), hook, () => vi.advanceTimersByTimeAsync(10_000))
}

const eventStore = (hooks: Partial<Record<keyof EventStore, Hook>>): EventStore => {
  const store = new MemoryEventStore()
  return {
    append: hooks.append ?? ((stream, event) => store.append(stream, event)),
    read: hooks.read ?? ((stream, after) => store.read(stream, after)),
    delete: hooks.delete ?? ((stream) => store.delete(stream)),
  }
}
const sessionStore = (hooks: Partial<Record<'get' | 'set' | 'delete', Hook>>): SessionStore => {
  const store = new MemorySessionStore()
  return {
    get: hooks.get ?? ((name) => store.get(name)),
    set: hooks.set ?? ((name, record, ttl) => store.set(name, record, ttl)),
    delete: hooks.delete ?? ((name, ttl) => store.delete(name, ttl)),
  }
}

/** A call whose response is an event stream, and its events. */
async function told(url: string): Promise<string> {
  const client = await InitializedSession.open(url, REVISION)
  const { text } = await client.request('tools/call', { name: 'told' })
  return text.includes('first') && text.includes('"done"') ? 'answered' : text
}

/** A call after a change, with such a bus. */
function withBus(hooks: Partial<ChangeBusDefinition>): Promise<string> {
  const server = served()
  const changes = changeBus({ publish() {}, open() {}, close() {}, ...hooks })
  const use = (url: string) => {
    server.tools.changed()
    return told(url)
  }
  return overHttp({ changes }, use, server)
}

export const HTTP_ROWS: readonly Row[] = [
  row('verify', 'HTTP 503', 'HTTP 503', (verify) =>
    overHttp({ auth: { verify } }, (url) => {
      const sending = statelessRequest('tools/call', { name: 'plain' })
      const headers = {
        ...(sending.headers as Record<string, string>),
        authorization: 'Bearer abcdefghijklmnop',
      }
      return soon(() => send(url, { ...sending, headers }), verify)
    }),
  ),
  row('prepare', 'Error: boom', 'nothing yet', async (prepare) => {
    let giveUp: (came: string) => void = () => {}
    const givenUp = new Promise<string>((resolve) => (giveUp = resolve))
    const listening = outcome(
      listen(served(), { port: 0, log: quiet, auth: { verify: () => undefined, prepare } }),
      prepare,
      () => giveUp('nothing yet'),
    )
    return await Promise.race([listening, givenUp])
  }),
  row('append of an event store', 'answered', 'answered', (append) =>
    overHttp({ eventStore: eventStore({ append }) }, told),
  ),
  row('delete of an event store', 'HTTP 204', 'HTTP 204', (remove) =>
    overHttp({ eventStore: eventStore({ delete: remove }) }, async (url) => {
      const client = await InitializedSession.open(url, REVISION)
      for (let count = 0; count < 40; count++) await client.request('tools/call', { name: 'told' })
      return `HTTP ${(await client.end()).status}`
    }),
  ),
  row('read of an event store', 'the stream has ended', 'the stream is open', (read) =>
    overHttp({ eventStore: eventStore({ read }) }, async (url) => {
      const client = await InitializedSession.open(url, REVISION)
      await client.request('tools/call', { name: 'told' })
      const stream = await client.listen('0p.0')
      if (read.mode !== 'never settles') await stream.ended()
      await client.request('ping')
      const came = stream.isOpen ? 'the stream is open' : 'the stream has ended'
      stream.disconnect()
      return came
    }),
  ),
  row('set of a session store', 'answered', 'answered', (set) =>
    overHttp({ sessionStore: sessionStore({ set }) }, told),
  ),
  row('get of a session store', 'HTTP 503', 'HTTP 503', (get) =>
    overHttp({ sessionStore: sessionStore({ get }) }, (url) =>
      soon(
        () =>
          send(url, {
            headers: { ...POST, 'mcp-session-id': 'A'.repeat(32) },
            body: message('ping', {}, 1),
          }),
        get,
      ),
    ),
  ),
  row('delete of a session store', 'HTTP 503', 'HTTP 503', (remove) =>
    overHttp({ sessionStore: sessionStore({ delete: remove }) }, async (url) => {
      const client = await InitializedSession.open(url, REVISION)
      return await soon(() => client.end(), remove)
    }),
  ),
  row('publish of a change bus', 'answered', 'answered', (publish) => withBus({ publish })),
  row('open of a change bus', 'answered', 'answered', (open) =>
    // What it throws is thrown by `listen`.
    withBus({ open: open.mode === 'throws' ? async () => open() : open }),
  ),
  row('close of a change bus', 'answered', 'answered', (close) => withBus({ close })),
  row('tap of listen', 'answered', 'answered', (tap) => overHttp({ tap }, told)),
  row('write of a log of listen', 'answered', 'answered', (write) =>
    overHttp({ log: { write }, logLevel: 'debug' }, told),
  ),
  row('visible of a tool with header parameters', 'HTTP 500', 'Error: given up', (visible) => {
    const input = {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    } as const
    const server = served()
    server.tools.add(tool({ name: 'it', input, visible, run: () => '' }))
    return overHttp(
      {},
      (url) => {
        const controller = new AbortController()
        const { headers, body } = statelessRequest('tools/call', { name: 'it', arguments: {} })
        const request = {
          method: 'POST',
          headers: headers as Record<string, string>,
          body: String(body),
          signal: controller.signal,
        }
        return outcome(fetch(url, request), visible, () => controller.abort(new Error('given up')))
      },
      server,
    )
  }),
]
