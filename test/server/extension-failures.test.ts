import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { type ExtensionDefinition, type ExtensionStream, extension } from '../../src/extensions.js'
import { createServer, form, tool } from '../../src/index.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION, SUBSCRIPTION_ID } from '../../src/protocol/meta.js'
import { handshakeRevisions, newest } from '../../src/protocol/revisions/index.js'
import { connectInMemory } from '../../src/testing.js'
import { drive } from '../drive.js'
import { extensionNames } from '../official/schema-validator.js'

const ID = 'com.example/streams'
extensionNames.add('notifications/it')

const serverOf = (...definitions: Partial<ExtensionDefinition>[]) =>
  createServer({
    name: 'x',
    version: '1',
    tools: [tool({ name: 'it', run: () => 'done' })],
    extensions: definitions.map((each) => extension({ id: ID, ...each })),
  })

const requestLine = (method: string, params: object, id: unknown = 1) => {
  const capabilities = { extensions: { [ID]: {} } }
  const _meta = { [PROTOCOL_VERSION]: newest.id, [CLIENT_CAPABILITIES]: capabilities }
  return `${JSON.stringify({ jsonrpc: '2.0', id: 0, method, params: { ...params, _meta } }).replace('"id":0', `"id":${String(id)}`)}\n`
}

const listenLine = (id?: unknown) =>
  requestLine('subscriptions/listen', { notifications: { it: true } }, id)

/** Log lines are JSON. */
const unescaped = (log: string) => log.replaceAll('\\"', '"')

const streamOf = (more: Partial<ExtensionStream>): ExtensionStream => ({
  acknowledged: true,
  start: () => {},
  stop: () => {},
  ...more,
})

describe('a stream of an extension', () => {
  it('whose start throws is stopped, ends with an error and frees its memory', async () => {
    const events: string[] = []
    const good = streamOf({ start: () => events.push('start'), stop: () => events.push('stop') })
    const bad = streamOf({
      acknowledged: 'x'.repeat(1000),
      start: () => {
        throw new Error('boom')
      },
      stop: () => events.push('stop of bad'),
    })
    const server = serverOf({ listen: { it: () => good, that: () => bad } })
    const params = { notifications: { it: true, that: true } }
    // More than the limit of streams, and together more bytes than the limit.
    const ids = Array.from({ length: 120 }, (_, index) => index)
    const lines = ids.map((id) => requestLine('subscriptions/listen', params, id))
    const { output, log } = await drive(server, lines.join(''), { maxRetained: 50_000 })
    expect(events).toEqual(ids.flatMap(() => ['start', 'stop', 'stop of bad']))
    expect(output.match(/"message":"Internal error"/g)).toHaveLength(ids.length)
    expect(unescaped(log)).toContain('boom')
    expect(log).not.toContain('memory limit')
  })

  it.each([
    ['nothing', undefined],
    ['an object without stop', { acknowledged: true, start: () => {} }],
  ])('is refused with a clear message if the field returns %s', async (_, stream) => {
    const server = serverOf({ listen: { it: () => stream as never } })
    const { output, log } = await drive(server, listenLine())
    expect(output).toContain('-32603')
    expect(unescaped(log)).toContain(
      `Extension ${ID}: the listen field "it" must return { acknowledged, start, stop }`,
    )
  })

  it('is not acknowledged or started if "acknowledged" is undefined', async () => {
    const events: string[] = []
    const server = serverOf({
      listen: {
        it: () =>
          streamOf({
            acknowledged: undefined,
            start: () => events.push('start'),
            stop: () => events.push('stop'),
          }),
      },
    })
    const { output } = await drive(server, listenLine())
    expect(output).toContain('"params":{"notifications":{}')
    expect(events).toEqual([])
  })

  it.each([7, '"a"', '123456789012345678901'])(
    'sends the id %s of its request in the _meta of its notifications, which may have more',
    async (id) => {
      const _meta = { 'com.example/more': 1, [SUBSCRIPTION_ID]: 'forged' }
      const server = serverOf({
        listen: {
          it: () =>
            streamOf({ start: (notify) => notify('notifications/it', { value: 1, _meta }) }),
        },
      })
      const { output } = await drive(server, listenLine(id))
      const line = output.split('\n').find((each) => each.includes('notifications/it')) ?? ''
      expect(line.match(/"_meta"/g)).toHaveLength(1)
      expect(line).toContain(`"_meta":{"com.example/more":1,"${SUBSCRIPTION_ID}":${String(id)}}`)
      expect(line).not.toContain('forged')
    },
  )

  it('cannot send params that are no object', async () => {
    const errors: unknown[] = []
    const start: ExtensionStream['start'] = (notify) => {
      for (const [method, params] of [['notifications/it', [1]], ['notifications/it'], [1, {}]])
        try {
          notify(method as string, params as object)
        } catch (error) {
          errors.push(error)
        }
    }
    const { output } = await drive(
      serverOf({ listen: { it: () => streamOf({ start }) } }),
      listenLine(),
    )
    expect(errors.map(String)).toEqual(Array(3).fill(expect.stringContaining('notify: pass')))
    expect(output).not.toContain('notifications/it')
  })
})

describe('start of an extension', () => {
  it('that throws stops the extensions that were started before it', async () => {
    const events: string[] = []
    const named = (name: string): Partial<ExtensionDefinition> => ({
      id: `com.example/${name}`,
      start: () => void events.push(`start ${name}`),
      stop: () => void events.push(`stop ${name}`),
    })
    const throwing = {
      ...named('c'),
      start: () => {
        throw new Error('boom')
      },
    }
    const server = serverOf(named('a'), named('b'), throwing, named('d'))
    await expect(drive(server, '')).rejects.toThrow('boom')
    await expect.poll(() => events).toEqual(['start a', 'start b', 'stop b', 'stop a'])
  })

  it('that rejects is logged', async () => {
    // oxlint-disable-next-line typescript/no-misused-promises -- as careless code does
    const server = serverOf({ start: () => Promise.reject(new Error('boom')) })
    const { log } = await drive(server, requestLine('server/discover', {}))
    expect(unescaped(log)).toContain(`Extension ${ID} failed to start`)
  })

  it('is called by connectInMemory, and stop when the channel is closed', async () => {
    const events: string[] = []
    const channel = connectInMemory(
      serverOf({ start: () => void events.push('start'), stop: () => void events.push('stop') }),
    )
    channel.receive({ frame: () => {}, malformed: () => {}, closed: () => {} })
    expect(events).toEqual(['start'])
    await channel.close()
    await expect.poll(() => events).toEqual(['start', 'stop'])
  })
})

describe('a result that no client could understand is an internal error with a clear log', () => {
  it.each<[string, Partial<ExtensionDefinition>, string]>([
    [
      'nothing from callTool',
      { callTool: () => undefined as never },
      'callTool returned no result; return an object, such as the result of run()',
    ],
    [
      'a result type that was not declared',
      { callTool: () => Promise.resolve({ resultType: 'receipt' }) },
      'callTool returned the resultType "receipt", which no extension of the server has; add it to "resultTypes"',
    ],
    [
      'neither content nor a result type',
      { callTool: () => ({ value: 1 }) },
      'callTool returned neither "content" nor a "resultType"',
    ],
  ])('%s', async (_, definition, message) => {
    const { output, log } = await drive(
      serverOf(definition),
      requestLine('tools/call', { name: 'it' }),
    )
    expect(output).toContain('-32603')
    expect(unescaped(log)).toContain(`Extension ${ID}: ${message}`)
  })

  it.each<[unknown, string]>([
    [undefined, 'serve returned no result; return an object'],
    [{ resultType: 'receipt' }, 'serve returned the resultType "receipt"'],
  ])('%j from serve', async (result, message) => {
    const methods = { 'it/get': { serve: () => result as object } }
    const { output, log } = await drive(serverOf({ methods }), requestLine('it/get', {}))
    expect(output).toContain('-32603')
    expect(unescaped(log)).toContain(`Extension ${ID}: ${message}`)
  })
})

describe('callTool and call.ask', () => {
  const fields = { type: 'object', properties: { name: { type: 'string' } } } as const

  it.each([
    [newest.id, ['1 Suspended', '2 result']],
    [handshakeRevisions.at(-1)?.id ?? '', ['1 result']],
  ])('in %s is called with the attempts and outcomes %j', async (revision, expected) => {
    const seen: string[] = []
    const server = createServer({
      name: 'x',
      version: '1',
      tools: [
        tool({
          name: 'it',
          run: async (_, call) =>
            (await call.ask({ q: form({ message: '?', schema: fields }) })).q.name ?? '',
        }),
      ],
      extensions: [
        extension({
          id: ID,
          async callTool({ call }, run) {
            const { attempt } = call
            try {
              const result = await run()
              seen.push(`${attempt} result`)
              return result
            } catch (error) {
              seen.push(`${attempt} ${error instanceof Error ? error.constructor.name : ''}`)
              throw error
            }
          },
        }),
      ],
    })
    await using client = await connect(memory(server), {
      revision,
      elicit: () => ({ action: 'accept', content: { name: 'Ada' } }),
    })
    expect((await client.callTool('it')).content).toMatchObject([{ text: 'Ada' }])
    expect(seen).toEqual(expected)
  })
})
