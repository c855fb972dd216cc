import { describe, expect, it } from 'vitest'
import { type ConnectOptions, type Target, connect, memory } from '../../src/client.js'
import { createServer, form, roots, tool } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { hostileServers } from '../official/hostile.js'

/* Requests of servers to a client, also those that their revision does not have. */

const ALL = revisions.map(({ id }) => id)
const NEWEST = ALL.at(-1) ?? ''

interface Message {
  id?: number
  method?: string
  error?: { code: number }
  result?: object
}

/** Connects to a server of a revision that sends one request; resolves with the client's response. */
async function asked(
  revision: string,
  method: string,
  params: object,
  answers: ConnectOptions,
): Promise<Message> {
  let answered: (message: Message) => void = () => {}
  const answer = new Promise<Message>((resolve) => (answered = resolve))
  let ask = () => {}
  const target: Target = {
    open() {
      const [client, server] = memoryChannels()
      hostileServers.add(client).add(server)
      ask = () => server.send(JSON.stringify({ jsonrpc: '2.0', id: 99, method, params }))
      server.receive({
        frame(frame) {
          const message = JSON.parse(frame) as Message
          if (message.id === 99) return answered(message)
          const opened = {
            protocolVersion: revision,
            supportedVersions: [revision],
            serverInfo: { name: 'x', version: '1' },
          }
          const result = {
            ...opened,
            capabilities: {},
            resultType: 'complete',
            ttlMs: 0,
            cacheScope: 'private',
          }
          if (message.id !== undefined)
            server.send(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
        },
        malformed: () => {},
        closed: () => {},
      })
      return client
    },
  }
  await using client = await connect(target, { revision, ...answers })
  expect(client.revision).toBe(revision)
  ask()
  return await answer
}

describe('a request of the server', () => {
  const answers: ConnectOptions = {
    sample: () => ({ role: 'assistant', content: { type: 'text', text: '' }, model: 'm' }),
    elicit: () => ({ action: 'decline' }),
    roots: () => [],
  }
  const handshakes = revisions.filter(({ lifecycle }) => lifecycle === 'handshake')
  it.each(handshakes.map((revision) => [revision.id, revision.methods.serverRequests] as const))(
    'is −32601 where the revision does not have its method: %s',
    async (id, known) => {
      for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list']) {
        const { error } = await asked(
          id,
          method,
          { messages: [], message: '?', maxTokens: 1 },
          answers,
        )
        expect([method, error?.code]).toEqual([method, known.includes(method) ? undefined : -32601])
      }
    },
  )

  it.each(ALL)('is −32602 for a URL elicitation if the revision has none: %s', async (id) => {
    const revision = revisions.find((each) => each.id === id)
    if (revision?.methods.serverRequests.includes('elicitation/create') !== true) return
    const { error } = await asked(
      id,
      'elicitation/create',
      { mode: 'url', message: '?', url: 'https://example.com/' },
      answers,
    )
    expect(error?.code).toBe(revision.urlElicitation === 'none' ? -32602 : undefined)
  })
})

describe('a sampling result', () => {
  const HANDSHAKE = revisions
    .filter(({ lifecycle }) => lifecycle === 'handshake')
    .map(({ id }) => id)
  it.each(HANDSHAKE)(
    'with several content blocks is joined for a revision that allows one: %s',
    async (revision) => {
      const { result } = await asked(
        revision,
        'sampling/createMessage',
        { messages: [], maxTokens: 1 },
        {
          sample: () => ({
            role: 'assistant',
            content: [
              { type: 'text', text: 'one' },
              { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
            ],
            model: 'm',
          }),
        },
      )
      expect(JSON.stringify(result)).toMatch(/one.*audio\/wav/)
    },
  )
})

describe('several input requests', () => {
  it('are all aborted when one of them fails', async () => {
    const server = createServer({
      name: 'x',
      version: '1',
      tools: [
        tool({
          name: 'it',
          run: (_, call) =>
            call.ask({
              slow: form({ message: '?', schema: { type: 'object', properties: {} } }),
              folders: roots(),
            }),
        }),
      ],
    })
    let signal: AbortSignal | undefined
    await using client = await connect(memory(server), {
      revision: NEWEST,
      elicit: (_, given) => (({ signal } = given), new Promise(() => {})),
      roots: () => Promise.reject(new Error('no folders today')),
    })
    await expect(client.callTool('it')).rejects.toThrow('no folders today')
    expect(signal?.aborted).toBe(true)
  })

  it('do not extend the timeout of later calls after they were cancelled', async () => {
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } } } as const
    const server = createServer({
      name: 'impatient',
      version: '1',
      state: { ttl: 10 },
      tools: [
        tool({
          name: 'ask',
          run: (_, call) => call.ask({ sure: form({ message: 'Sure?', schema }) }),
        }),
        tool({ name: 'silent', run: () => new Promise(() => {}) }),
      ],
    })
    await using client = await connect(memory(server), {
      revision: '2025-11-25',
      elicit: () => new Promise(() => {}),
    })
    expect((await client.callTool('ask')).isError).toBe(true)
    await expect(client.callTool('silent', {}, { timeout: 20, maxTimeout: 5000 })).rejects.toThrow(
      'No response within 20 ms',
    )
  })
})
