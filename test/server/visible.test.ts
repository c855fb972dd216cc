import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { type Caller, type Server, createServer, prompt, resource, tool } from '../../src/index.js'
import { statelessRequest, send, serving } from '../http/caller.js'

/* `visible` may be asynchronous. It applies to lists and to calls. */

type Visible = (caller: Caller) => boolean | Promise<boolean>
const later = async (value: boolean) => {
  await new Promise((resolve) => setImmediate(resolve))
  return value
}
const FORMS: Record<string, Visible> = {
  'a promise of true': () => later(true),
  'a promise of false': () => later(false),
  'a promise of something else': () => later('yes' as unknown as boolean),
  'a thenable of true': () =>
    ({ then: (resolve: (value: boolean) => void) => resolve(true) }) as unknown as Promise<boolean>,
  true: () => true,
  false: () => false,
}

function serverOf(visible: Visible): Server {
  const input = {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
  } as const
  return createServer({
    name: 'visible',
    version: '1',
    tools: [
      tool({ name: 'it', input, visible, run: () => 'done' }),
      tool({ name: 'last', run: () => 'done' }),
    ],
    resources: [
      resource({ uri: 'note://one', visible, read: () => 'one' }),
      resource({
        uri: 'page://{name}',
        visible,
        read: () => 'page',
        list: () => [{ uri: 'page://1', name: '1' }],
      }),
      // Must not match the URIs of the hidden ones.
      resource({ uri: 'note:{+any}', read: () => 'any' }),
      resource({ uri: 'page:{+any}', read: () => 'any' }),
    ],
    prompts: [
      prompt({ name: 'it', visible, arguments: { a: { values: ['x'] } }, build: () => 'built' }),
    ],
  })
}

const names = async (items: AsyncIterable<{ name: string }>) => {
  const found: string[] = []
  for await (const { name } of items) found.push(name)
  return found
}

describe.each(Object.entries(FORMS))('visible as %s', (form, visible) => {
  const seen = form.includes('true')
  const code = (promise: Promise<unknown>) =>
    promise.then(
      () => 'served',
      (error: { code: number }) => error.code,
    )

  it.each(['2024-11-05', '2026-07-28'])('in %s', async (revision) => {
    await using client = await connect(memory(serverOf(visible)), { revision })
    expect(await names(client.tools())).toEqual(seen ? ['it', 'last'] : ['last'])
    expect(await names(client.resources())).toEqual(seen ? ['note://one', '1'] : [])
    expect(await names(client.resourceTemplates())).toEqual(
      seen ? ['page://{name}', 'note:{+any}', 'page:{+any}'] : ['note:{+any}', 'page:{+any}'],
    )
    expect(await names(client.prompts())).toEqual(seen ? ['it'] : [])
    const missing = revision === '2026-07-28' ? -32602 : -32002
    expect([
      await code(client.callTool('it')),
      await code(client.readResource('note://one')),
      await code(client.readResource('page://1')),
      await code(client.getPrompt('it', { a: 'x' })),
      await code(client.complete({ prompt: 'it' }, { name: 'a', value: '' })),
    ]).toEqual(
      seen
        ? ['served', 'served', 'served', 'served', 'served']
        : [-32602, missing, missing, -32602, -32602],
    )
  })

  it('over HTTP, with parameters in headers', async () => {
    await serving(serverOf(visible), {}, async ({ url }) => {
      const { json } = await send(
        url,
        statelessRequest('tools/call', { name: 'it', arguments: { region: 'x' } }),
      )
      expect(json).toMatchObject({ error: { code: seen ? -32020 : -32602 } })
    })
  })

  it('for subscribers', async () => {
    const server = serverOf(visible)
    await using client = await connect(memory(server), { revision: '2025-11-25' })
    const told: unknown[] = []
    client.on('notifications/resources/updated', ({ uri }) => void told.push(uri))
    await client.request('resources/subscribe', { uri: 'note://one' })
    server.updated('note://one')
    await client.request('ping')
    expect(told).toEqual(seen ? ['note://one'] : [])
  })
})
