import { describe, expect, it } from 'vitest'
import { ConnectionError } from '../../src/client.js'
import { proves } from './proves.js'
import { ScriptedServer, type Sent, collect, settle, textResult } from './scripted-server.js'
import { handshakes, modern } from './wire.js'

/* How a client opens a connection. */

const META = 'io.modelcontextprotocol/'
const newestHandshake = '2025-11-25'
const refusal = (code: number, data?: object) => ({
  error: { code, message: 'no', ...(data && { data }) },
})

/* https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle */
describe.each(handshakes)('the handshake of a client in %s', (revision) => {
  it('is initialize, and initialized after the response; nothing is sent in between', async () => {
    proves('lifecycle.client-begins', 'lifecycle.initialized', 'lifecycle.client-waits')
    const opened: Sent[] = []
    const server = new ScriptedServer(revision, {
      open: (message) => void opened.push(message),
      respond: () => ({ tools: [] }),
    })
    const connecting = server.connect()
    await settle()
    expect(server.received.map(({ method }) => method)).toEqual(['initialize'])
    server.reply(opened[0] ?? {}, {
      protocolVersion: revision,
      capabilities: {},
      serverInfo: { name: 'x', version: '1' },
    })
    const client = await connecting
    await client.request('tools/list')
    expect(server.received.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
    ])
  })

  it('proposes the latest version, or the one that was asked for, and accepts an older one', async () => {
    proves('lifecycle.client-version')
    const server = new ScriptedServer(revision)
    expect((await server.connect()).revision).toBe(revision)
    const other = new ScriptedServer(revision, {
      open: ({ method }) => (method === 'initialize' ? 'default' : refusal(-32_601)),
    })
    // Without a revision the client chooses.
    const client = await other.connect({ revision: undefined as unknown as string })
    expect(client.revision).toBe(revision)
    const proposed = [server, other].map(
      ({ received }) =>
        received.find(({ method }) => method === 'initialize')?.params?.['protocolVersion'],
    )
    expect(proposed).toEqual([revision, newestHandshake])
  })

  it('ends with a disconnect if the server responds with an unknown version', async () => {
    proves('lifecycle.client-disconnects')
    const server = new ScriptedServer(revision, {
      open: () => ({
        protocolVersion: '1999-01-01',
        capabilities: {},
        serverInfo: { name: 'x', version: '1' },
      }),
    })
    await expect(server.connect()).rejects.toThrow(ConnectionError)
    await settle()
    expect(server.disconnected).toBe(true)
    expect(server.received.map(({ method }) => method)).toEqual(['initialize'])
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning */
describe('a client that supports handshake and stateless revisions', () => {
  const auto = { revision: undefined as unknown as string }

  it('sends server/discover first, and initialize after any other error', async () => {
    proves('versioning.probe', 'stdio.probe')
    for (const code of [-32_601, -32_602, -32_600, -32_000, -32_603, 1]) {
      const server = new ScriptedServer(newestHandshake, {
        open: ({ method }) => (method === 'initialize' ? 'default' : refusal(code)),
      })
      expect((await server.connect(auto)).revision).toBe(newestHandshake)
      expect(server.received.slice(0, 2).map(({ method }) => method)).toEqual([
        'server/discover',
        'initialize',
      ])
    }
    const server = new ScriptedServer(modern)
    expect((await server.connect(auto)).revision).toBe(modern)
    expect(server.received.map(({ method }) => method)).toEqual(['server/discover'])
  })

  it('remembers which kind of server it is, and does not probe again', async () => {
    proves('versioning.era')
    const server = new ScriptedServer(newestHandshake)
    await server.connect(auto)
    server.received.length = 0
    await server.connect(auto)
    await settle()
    expect(server.received.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
    ])
  })

  it('chooses one of the versions that a server supports, or reports that there is none', async () => {
    proves('versioning.client-selects')
    const supporting = (...supported: string[]) =>
      new ScriptedServer(newestHandshake, {
        open: ({ method }) =>
          method === 'initialize' ? 'default' : refusal(-32_022, { requested: modern, supported }),
      })
    const older = supporting('2025-11-25', '2025-06-18')
    expect((await older.connect(auto)).revision).toBe('2025-11-25')
    const newer = supporting('2099-01-01')
    await expect(newer.connect(auto)).rejects.toThrow(/no protocol revision in common.*2099-01-01/)
    expect(newer.received.map(({ method }) => method)).toEqual(['server/discover'])
    const several = new ScriptedServer(modern, {
      open: () => ({ supportedVersions: ['2099-01-01', modern], capabilities: {} }),
    })
    expect((await several.connect(auto)).revision).toBe(modern)
  })

  it('treats servers of every name alike, and one without a name', async () => {
    proves('discover.info-clients')
    for (const serverInfo of [
      { name: 'ccmcp', version: '1' },
      { name: '💥', version: '' },
      undefined,
    ]) {
      const server = new ScriptedServer(modern, {
        open: () => ({
          supportedVersions: [modern],
          capabilities: {},
          ...(serverInfo && { _meta: { [`${META}serverInfo`]: serverInfo } }),
        }),
        respond: () => textResult('same'),
      })
      const client = await server.connect()
      expect(client.server).toEqual(serverInfo)
      expect(await client.callTool('x')).toMatchObject(textResult('same'))
    }
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/basic#meta */
describe('_meta of a stateless request', () => {
  it('has the protocol version, the client info and the capabilities, in every request', async () => {
    proves('meta.required', 'meta.client-info')
    const answers: Record<string, object> = {
      'tools/list': { tools: [] },
      'tools/call': textResult(''),
      'resources/list': { resources: [] },
      'resources/templates/list': { resourceTemplates: [] },
      'resources/read': { contents: [] },
      'prompts/list': { prompts: [] },
      'prompts/get': { messages: [] },
      'completion/complete': { completion: { values: [] } },
    }
    const server = new ScriptedServer(modern, {
      respond: ({ method = '' }) => ({ ...answers[method] }),
    })
    const info = { name: 'host', version: '3' }
    const client = await server.connect({ info, roots: () => [] })
    await collect(client.tools())
    await collect(client.resources())
    await collect(client.resourceTemplates())
    await collect(client.prompts())
    await client.callTool('x', {}, { onProgress: () => {} })
    await client.request('tools/call', { name: 'x', _meta: { 'example.org/own': 1 } })
    await client.readResource('note://1')
    await client.getPrompt('x')
    await client.complete({ prompt: 'x' }, { name: 'a', value: '' })
    expect(new Set(server.received.map(({ method }) => method))).toEqual(
      new Set(['server/discover', ...Object.keys(answers)]),
    )
    for (const { params } of server.received)
      expect(params?.['_meta']).toMatchObject({
        [`${META}protocolVersion`]: modern,
        [`${META}clientInfo`]: info,
        [`${META}clientCapabilities`]: { roots: {} },
      })
    expect(
      server.received.some(({ params }) => 'example.org/own' in Object(params?.['_meta'])),
    ).toBe(true)
  })
})
