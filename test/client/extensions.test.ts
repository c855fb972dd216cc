import { describe, expect, it } from 'vitest'
import {
  type ClientExtension,
  type ExtensionConnection,
  type Target,
  connect,
  memory,
} from '../../src/client.js'
import { extension } from '../../src/extensions.js'
import { createServer } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { hostileServers } from '../official/hostile.js'

/* A made-up extension: `tools/call` may answer with a ticket, which the tool `redeem` exchanges for the result. */

const NEWEST = '2026-07-28'
const HANDSHAKE = '2025-11-25'
const ID = 'com.example/tickets'

interface Received {
  id?: number
  method: string
  params?: Record<string, unknown>
}

/** A server of one revision; `respond` gives the result of a request that opens nothing. */
function server(
  revision: string,
  respond: (received: Received, notify: (method: string, params: object) => void) => object,
): Target & { received: Received[] } {
  const received: Received[] = []
  return {
    received,
    open() {
      const [client, other] = memoryChannels()
      hostileServers.add(client).add(other)
      const notify = (method: string, params: object) =>
        other.send(JSON.stringify({ jsonrpc: '2.0', method, params }))
      other.receive({
        frame(frame) {
          const message = JSON.parse(frame) as Received
          received.push(message)
          if (message.id === undefined) return
          const opening = {
            protocolVersion: revision,
            supportedVersions: [revision],
            capabilities: {},
            serverInfo: { name: 's', version: '1' },
            resultType: 'complete',
            ttlMs: 0,
            cacheScope: 'public',
          }
          const opens = message.method === 'initialize' || message.method === 'server/discover'
          const result = opens ? opening : respond(message, notify)
          other.send(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
        },
        malformed: () => {},
        closed: () => {},
      })
      return client
    },
  }
}

const tickets = (more: Partial<ClientExtension> = {}): ClientExtension => ({
  id: ID,
  revisions: [NEWEST],
  settings: { maxWait: 5 },
  resultTypes: {
    ticket: ({ ticket }, { request }) =>
      request('tools/call', { name: 'redeem', arguments: { ticket } }),
  },
  ...more,
})

/** What a client declares: in `initialize`, or with a request. */
function declared({ params }: Received): unknown {
  const meta = params?.['_meta'] as Record<string, unknown> | undefined
  const capabilities =
    meta?.['io.modelcontextprotocol/clientCapabilities'] ?? params?.['capabilities']
  return (capabilities as { extensions?: unknown } | undefined)?.extensions
}

describe('the settings of a client extension', () => {
  it.each(revisions.map(({ id }) => id))(
    'are declared in %s only where the extension names it',
    async (revision) => {
      for (const named of [NEWEST, HANDSHAKE]) {
        const target = server(revision, () => ({ resultType: 'complete', content: [] }))
        await using client = await connect(target, {
          revision,
          extensions: [tickets({ revisions: [named] })],
          capabilities: { extensions: { 'com.example/other': {} } },
        })
        await client.callTool('x')
        const expected = {
          'com.example/other': {},
          ...(named === revision ? { [ID]: { maxWait: 5 } } : {}),
        }
        const [opening, ...others] = target.received
        expect(opening && declared(opening)).toEqual(expected)
        const call = others.find(({ method }) => method === 'tools/call')
        expect(call && declared(call)).toEqual(revision === NEWEST ? expected : undefined)
      }
    },
  )

  it('of the server are known to the extension once it is connected', async () => {
    const made = createServer({
      name: 'x',
      version: '1',
      extensions: [extension({ id: ID, settings: { version: 2 } })],
    })
    const seen: unknown[] = []
    const connected = ({ settings }: ExtensionConnection) => void seen.push(settings)
    await using client = await connect(memory(made), { extensions: [{ id: ID, connected }] })
    expect(client.revision).toBe(NEWEST)
    expect(seen).toEqual([{ version: 2 }])
  })

  it('are an empty object by default', async () => {
    const target = server(NEWEST, () => ({}))
    const { settings: _, ...bare } = tickets()
    await using client = await connect(target, { extensions: [bare] })
    expect(client.revision).toBe(NEWEST)
    expect(target.received.map(declared)).toEqual([{ [ID]: {} }])
  })
})

describe('the result type of a client extension', () => {
  const ticketing = (revision: string) =>
    server(revision, ({ params }) =>
      params?.['name'] === 'redeem'
        ? {
            resultType: 'complete',
            content: [{ type: 'text', text: JSON.stringify(params['arguments']) }],
          }
        : { resultType: 'ticket', ticket: 't-1', content: [] },
    )
  const redeemed = [{ type: 'text', text: '{"ticket":"t-1"}' }]

  it('is completed by its handler', async () => {
    const target = ticketing(NEWEST)
    await using client = await connect(target, { extensions: [tickets()] })
    expect((await client.callTool('x')).content).toEqual(redeemed)
    expect(target.received.map(({ method }) => method)).toEqual([
      'server/discover',
      'tools/call',
      'tools/call',
    ])
  })

  it('is an error without the extension', async () => {
    await using client = await connect(ticketing(NEWEST))
    await expect(client.callTool('x')).rejects.toThrow(
      'the unknown resultType "ticket"; the client has no extensions',
    )
    const extensions = [{ id: 'com.example/a' }, { id: 'com.example/b' }]
    await using other = await connect(ticketing(NEWEST), { extensions })
    await expect(other.callTool('x')).rejects.toThrow(
      'the extensions of the client are com.example/a, com.example/b',
    )
  })

  it('is not looked at in a revision that the extension does not name', async () => {
    const target = ticketing(HANDSHAKE)
    await using client = await connect(target, { revision: HANDSHAKE, extensions: [tickets()] })
    expect((await client.callTool('x')).content).toEqual([])
  })

  it('is completed in a handshake revision that the extension names', async () => {
    const target = ticketing(HANDSHAKE)
    await using client = await connect(target, {
      revision: HANDSHAKE,
      extensions: [tickets({ revisions: [HANDSHAKE] })],
    })
    expect((await client.callTool('x')).content).toEqual(redeemed)
  })

  it('fails the call if its handler does not return an object, or always returns the same type', async () => {
    const returning = async (result: object) => {
      const resultTypes = { ticket: () => result as Record<string, unknown> }
      await using client = await connect(ticketing(NEWEST), {
        extensions: [tickets({ resultTypes })],
      })
      await client.callTool('x')
    }
    await expect(returning([])).rejects.toThrow('is not an object')
    await expect(returning({ resultType: 'ticket' })).rejects.toThrow(
      `Extension ${ID}: the handler of the resultType "ticket" must not return that type again`,
    )
  })
})

it('calls the notification handlers of an extension in the revisions that it names', async () => {
  for (const revision of [NEWEST, HANDSHAKE]) {
    const target = server(revision, (_, notify) => {
      notify('notifications/tickets/ready', { ticket: 't-1' })
      return { resultType: 'complete', content: [] }
    })
    const heard: unknown[] = []
    const notifications = {
      'notifications/tickets/ready': (params: unknown) => heard.push(params),
    }
    await using client = await connect(target, {
      revision,
      extensions: [tickets({ notifications })],
    })
    await client.callTool('x')
    expect(heard).toEqual(revision === NEWEST ? [{ ticket: 't-1' }] : [])
  }
})

it.each([
  ['an id without a prefix', { id: 'tickets' }, '"id" must be'],
  ['no revision', { revisions: [] }, '"revisions" must list'],
  ['an unknown revision', { revisions: ['1999-01-01'] }, 'unknown protocol revision "1999-01-01"'],
  ['a result type of the core', { resultTypes: { complete: () => ({}) } }, 'core protocol'],
  [
    'a notification of the core',
    { notifications: { 'notifications/message': () => {} } },
    'core protocol',
  ],
  ['a method of the core', { methods: { 'tools/call': {} } }, 'core protocol'],
  ['an unknown property of a method', { methods: { x: { name: 'y' } as never } }, '"methods.x"'],
  ['settings that are no object', { settings: [] as never }, '"settings" must be an object'],
  ['an unknown member', { setings: {} }, 'did you mean "settings"?'],
  ['a handler that is no function', { resultTypes: { x: 1 as never } }, 'must be a function'],
  ['a member "connected" that is no function', { connected: 1 as never }, 'must be a function'],
] as [string, Partial<ClientExtension>, string][])(
  'refuses an extension with %s',
  async (_, more, message) => {
    const target = memory(createServer({ name: 's', version: '1' }))
    await expect(connect(target, { extensions: [tickets(more)] })).rejects.toThrow(message)
  },
)

it('refuses two extensions with the same id, notification or result type', async () => {
  const target = memory(createServer({ name: 's', version: '1' }))
  const other = tickets({ id: 'com.example/other' })
  await expect(connect(target, { extensions: [tickets(), tickets()] })).rejects.toThrow('the id')
  await expect(connect(target, { extensions: [tickets(), other] })).rejects.toThrow(
    'the result type "ticket"',
  )
})
