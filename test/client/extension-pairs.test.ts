import { describe, expect, it } from 'vitest'
import {
  type Client,
  type ClientExtension,
  type ConnectOptions,
  type Target,
  connect,
  http,
  memory,
} from '../../src/client.js'
import { type ExtensionDefinition, extension } from '../../src/extensions.js'
import { listen } from '../../src/http.js'
import { RpcError, type Server, createServer, form, tool } from '../../src/index.js'
import { handshakeRevisions, newest } from '../../src/protocol/revisions/index.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'
import { inProcessHttp, memoryChannels } from '../../src/testing.js'
import { extensionNames } from '../official/schema-validator.js'

/* Both sides of an extension: our server and our client. */

const ID = 'com.example/notes'
const CHANGED = 'notifications/notes/changed'
extensionNames.add(CHANGED).add('note_held')

type Notify = (method: string, params: object) => void
const fields = { type: 'object', properties: { name: { type: 'string' } } } as const

function notes(more: Partial<ExtensionDefinition> = {}) {
  const streams = new Set<Notify>()
  const opened: unknown[] = []
  const server = createServer({
    name: 'x',
    version: '1',
    tools: [tool({ name: 'it', run: () => 'done' })],
    extensions: [
      extension({
        id: ID,
        settings: { version: 1 },
        resultTypes: ['note_held'],
        methods: {
          'notes/get': { nameParam: 'note', serve: ({ note }) => ({ note }) },
          'notes/rename': {
            nameParam: 'note',
            mayRequireInput: true,
            serve: async ({ note }, call) => {
              const { to } = await call.ask({ to: form({ message: 'Name?', schema: fields }) })
              return { note, to: to.name }
            },
          },
        },
        listen: {
          notes: (value) => {
            let notify: Notify
            return {
              acknowledged: value === 'none' ? undefined : value,
              start(given) {
                opened.push(value)
                notify = given
                streams.add(given)
              },
              stop: () => void streams.delete(notify),
            }
          },
        },
        ...more,
      }),
    ],
  })
  const changed = (note: string) => {
    for (const notify of streams) notify(CHANGED, { note })
  }
  return { server, streams, opened, changed }
}

const client = (more: Partial<ClientExtension> = {}): ClientExtension => ({
  id: ID,
  methods: {
    'notes/get': { nameParam: 'note' },
    'notes/rename': { nameParam: 'note', mayRequireInput: true },
  },
  ...more,
})

interface Opened extends AsyncDisposable {
  target: Target
}

const targets: Readonly<Record<string, (server: Server) => Promise<Opened>>> = {
  memory: async (server) => ({ target: memory(server), [Symbol.asyncDispose]: async () => {} }),
  'in-process HTTP': async (server) => ({
    target: inProcessHttp(server),
    [Symbol.asyncDispose]: async () => {},
  }),
  http: async (server) => {
    const listening = await listen(server, { port: 0, log: { write: () => true } })
    return {
      target: http(listening.url),
      [Symbol.asyncDispose]: () => listening.close(0),
    }
  },
}

const open = (target: Target, extension = client(), options: ConnectOptions = {}) =>
  connect(target, { extensions: [extension], ...options })

describe.each(Object.entries(targets))('an extension over %s', (_, targetOf) => {
  it('has methods with a name parameter, and methods that ask', async () => {
    await using opened = await targetOf(notes().server)
    await using connected = await open(opened.target, client(), {
      elicit: () => ({ action: 'accept', content: { name: 'b' } }),
    })
    expect(await connected.request('notes/get', { note: 'a' })).toMatchObject({ note: 'a' })
    expect(await connected.request('notes/rename', { note: 'ü' })).toMatchObject({
      note: 'ü',
      to: 'b',
    })
  })

  it('has a field of subscriptions/listen, beside the lists of the core', async () => {
    const { server, streams, changed } = notes()
    await using opened = await targetOf(server)
    const heard: unknown[] = []
    const notifications: ClientExtension['notifications'] = {
      [CHANGED]: ({ note }, { settings }) => heard.push([note, settings]),
    }
    await using connected = await open(opened.target, client({ notifications }))
    const lists: unknown[] = []
    await connected.watch('tools', (change) => lists.push(change))
    const subscription = await connected.listen('notes', ['a'])
    expect(streams.size).toBe(1)
    changed('a')
    server.tools.add(tool({ name: 'other', run: () => '' }))
    await expect.poll(() => heard).toEqual([['a', { version: 1 }]])
    await expect.poll(() => lists).toContainEqual({ list: 'tools' })
    await subscription.unsubscribe()
    await expect.poll(() => streams.size).toBe(0)
  })
})

/** Serves the first connection by the first server, and so on; the last one serves all others. */
function breakable(...servers: readonly Server[]): { target: Target; disconnect(): Promise<void> } {
  const sessions: ServerSession[] = []
  const open = () => {
    const server = servers[sessions.length] ?? servers.at(-1)
    if (server === undefined) throw new Error('There is no server')
    const [channel, other] = memoryChannels()
    sessions.push(new ServerSession(checkServer(server), other, { remote: false }))
    return channel
  }
  return { target: { open }, disconnect: async () => await sessions.at(-1)?.close() }
}

describe('client.listen', () => {
  const withNotes = async (
    use: (connected: Client, made: ReturnType<typeof notes>) => Promise<void>,
  ) => {
    const made = notes()
    await using connected = await open(memory(made.server))
    await use(connected, made)
  }

  it('sends the lists of several calls for the same field as one', () =>
    withNotes(async (connected, { opened }) => {
      const first = await connected.listen('notes', ['a'])
      await connected.listen('notes', ['b', 'a'])
      await first.unsubscribe()
      await expect.poll(() => opened).toEqual([['a'], ['a', 'b'], ['b', 'a']])
    }))

  it('rejects another value for the same field', () =>
    withNotes(async (connected) => {
      await connected.listen('notes', true)
      await connected.listen('notes', true)
      await expect(connected.listen('notes', false)).rejects.toThrow('with another value')
    }))

  it('rejects where the server does not accept the field, or does not know it', () =>
    withNotes(async (connected) => {
      const rejection = { code: 'NOT_SUPPORTED' }
      await expect(connected.listen('notes', 'none')).rejects.toMatchObject(rejection)
      await expect(connected.listen('others', true)).rejects.toMatchObject(rejection)
    }))

  it('rejects a field of the core protocol, and a missing value', () =>
    withNotes(async (connected) => {
      await expect(connected.listen('toolsListChanged', true)).rejects.toThrow('use client.watch')
      await expect(connected.listen('resourceSubscriptions', [])).rejects.toThrow(
        'use client.subscribe',
      )
      await expect(connected.listen('notes', undefined)).rejects.toThrow('is missing')
    }))

  it('rejects where the client has not declared the extension', async () => {
    await using connected = await connect(memory(notes().server))
    await expect(connected.listen('notes', true)).rejects.toMatchObject({ code: -32021 })
  })

  it('rejects in revisions without subscriptions/listen', async () => {
    await using connected = await open(memory(notes().server), client(), {
      revision: handshakeRevisions.at(-1)?.id ?? '',
    })
    await expect(connected.listen('notes', true)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  })

  it('listens again after a reconnect, and calls onMissed', async () => {
    const { server, streams, opened, changed } = notes()
    const heard: unknown[] = []
    const { target, disconnect } = breakable(server)
    const notifications = { [CHANGED]: ({ note }: { note?: unknown }) => heard.push(note) }
    await using connected = await open(target, client({ notifications }), {
      reconnect: { delay: 1 },
    })
    let missed = 0
    await connected.listen('notes', ['a'], { onMissed: () => void missed++ })
    await disconnect()
    await expect.poll(() => missed).toBe(1)
    expect(opened).toEqual([['a'], ['a']])
    await expect.poll(() => streams.size).toBe(1)
    changed('again')
    await expect.poll(() => heard).toEqual(['again'])
  })

  it('emits unsubscribed where a server that was replaced refuses the value', async () => {
    const refuse = () => {
      throw new RpcError(-32602, 'Invalid params: "notes" must be true')
    }
    const refusing = notes({ listen: { notes: refuse } }).server
    const { target, disconnect } = breakable(notes().server, refusing)
    await using connected = await open(target, client(), { reconnect: { delay: 1 } })
    const lost: unknown[] = []
    connected.on('unsubscribed', (event) => lost.push(event))
    await connected.watch('tools', () => {})
    await connected.listen('notes', ['a'])
    await disconnect()
    await expect.poll(() => lost).toMatchObject([{ field: 'notes', value: ['a'] }])
  })
})

it('gives the settings of the server to the handler of a result type', async () => {
  const { server } = notes({ callTool: () => ({ resultType: 'note_held' }) })
  const resultTypes: ClientExtension['resultTypes'] = {
    note_held: (_, { settings, method }) => ({
      content: [{ type: 'text', text: JSON.stringify([method, settings]) }],
    }),
  }
  await using connected = await open(memory(server), client({ resultTypes }))
  expect((await connected.callTool('it')).content).toMatchObject([
    { text: '["tools/call",{"version":1}]' },
  ])
})

it('explains a response that needs input where the extension does not say so', async () => {
  const elicit = () => ({ action: 'decline' as const })
  await using connected = await open(memory(notes().server), { id: ID }, { elicit })
  expect(connected.revision).toBe(newest.id)
  await expect(connected.request('notes/rename', { note: 'a' })).rejects.toThrow(
    'for a method of an extension, set "mayRequireInput" in its "methods"',
  )
})

describe('the members of an extension', () => {
  it('are added to the client, with their types', async () => {
    const extended: ClientExtension<{ note(name: string): Promise<unknown> }> = {
      id: ID,
      connected: ({ request }) => ({ note: (note) => request('notes/get', { note }) }),
    }
    const silent = { id: 'com.example/silent', connected: () => {} }
    await using connected = await connect(memory(notes().server), {
      extensions: [silent, extended],
    })
    expect(await connected.note('a')).toMatchObject({ note: 'a' })
    await connected.close()
    await expect(connected.note('a')).rejects.toMatchObject({ code: 'CHANNEL_CLOSED' })
  })

  it('fail the connection if they cannot be made', async () => {
    const { server } = notes()
    const fails = () => {
      throw new Error('boom')
    }
    await expect(open(memory(server), client({ connected: fails }))).rejects.toThrow('boom')
  })
})

it('rejects a method of an extension in a revision that it does not name', async () => {
  const { server } = notes()
  const [older = ''] = handshakeRevisions.map(({ id }) => id)
  await using connected = await open(memory(server), client({ revisions: [newest.id] }), {
    revision: older,
  })
  await expect(connected.request('notes/get', { note: 'a' })).rejects.toMatchObject({
    code: 'NOT_SUPPORTED',
  })
})

it('is not accepted where the server acknowledges a part of the list', async () => {
  const { server } = notes({
    listen: {
      notes: () => ({ acknowledged: ['a'], start: () => {}, stop: () => {} }),
    },
  })
  await using connected = await open(memory(server))
  await connected.listen('notes', ['a'])
  await expect(connected.listen('notes', ['b'])).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
})
