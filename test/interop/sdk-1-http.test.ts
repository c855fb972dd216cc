import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { type Listening, MemorySessionStore, listen } from '../../src/http.js'
import { servedOverHttp } from '../http/served.js'

/* The official SDK 1.x client over HTTP. */

let served: ReturnType<typeof servedOverHttp>
let listening: Listening
let sessions: MemorySessionStore
let client: Client
let transport: StreamableHTTPClientTransport
const heard: string[] = []

beforeEach(async () => {
  served = servedOverHttp()
  sessions = new MemorySessionStore()
  const port = await freePort()
  listening = await listen(served.server, { port, retryInterval: 20, sessionStore: sessions })
  heard.length = 0
  client = new Client({ name: 'sdk-1', version: '1.0.0' }, { capabilities: { elicitation: {} } })
  client.setNotificationHandler(
    ToolListChangedNotificationSchema,
    () => void heard.push('tools changed'),
  )
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ params }) => void heard.push(`updated ${params.uri}`),
  )
  client.setRequestHandler(ElicitRequestSchema, () => ({
    action: 'accept',
    content: { name: 'Ada' },
  }))
  transport = new StreamableHTTPClientTransport(new URL(listening.url))
  await client.connect(transport)
})
afterEach(async () => {
  await client.close()
  await listening.close(0)
})

describe('SDK 1.x client over HTTP', () => {
  it('calls a tool and receives progress', async () => {
    expect(transport.sessionId).toBeDefined()
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({
      content: [{ text: 'hi' }],
    })
    const seen: number[] = []
    const onprogress = ({ progress }: { progress: number }) => {
      seen.push(progress)
      served.gate.open('g')
    }
    await client.callTool({ name: 'steps', arguments: { gate: 'g' } }, undefined, { onprogress })
    expect(seen).toEqual([1, 2])
  })

  it('receives change notifications on its GET stream', async () => {
    await expect.poll(() => listening.openResponses).toBe(1)
    await client.subscribeResource({ uri: 'note://one' })
    served.server.updated('note://one')
    served.server.tools.disable('big')
    await expect.poll(() => heard.toSorted()).toEqual(['tools changed', 'updated note://one'])
  })

  it('keeps its session across a restart of the server', async () => {
    await client.subscribeResource({ uri: 'note://one' })
    const { sessionId } = transport
    const { port } = listening
    await listening.close()
    served = servedOverHttp()
    listening = await listen(served.server, { port, retryInterval: 20, sessionStore: sessions })
    // The client reopens its GET stream by itself.
    await expect.poll(() => listening.openResponses).toBe(1)
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({
      content: [{ text: 'hi' }],
    })
    expect(transport.sessionId).toBe(sessionId)
    // What has changed meanwhile is not known.
    await expect.poll(() => heard).toEqual(['tools changed', 'updated note://one'])
    served.server.updated('note://one')
    await expect.poll(() => heard.slice(2)).toEqual(['updated note://one'])
  })

  it('responds to elicitation requests', async () => {
    expect(await client.callTool({ name: 'ask' })).toMatchObject({
      content: [{ text: 'It is Ada' }],
    })
  })

  it('reconnects for a response after call.releaseStream()', async () => {
    const pending = client.callTool({ name: 'polled', arguments: { gate: 'p' } })
    setImmediate(() => served.gate.open('p'))
    expect(await pending).toMatchObject({ content: [{ text: 'polled p' }] })
  })

  it('cancels a call', async () => {
    const controller = new AbortController()
    const pending = client.callTool({ name: 'steps', arguments: { gate: 'never' } }, undefined, {
      signal: controller.signal,
      onprogress: () => controller.abort('enough'),
    })
    await expect(pending).rejects.toThrow('enough')
    await expect.poll(() => served.ended.get('never')).toContain('enough')
  })

  it('ends its session', async () => {
    expect(listening.sessions).toBe(1)
    await transport.terminateSession()
    expect(listening.sessions).toBe(0)
  })
})
