import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Listening, listen, tokens } from '../../src/http.js'
import { servedOverHttp } from '../http/served.js'

/* The official SDK 1.x client over HTTP+SSE. */

let served: ReturnType<typeof servedOverHttp>
let listening: Listening
let client: Client
const heard: string[] = []
const token = 'alice-token-0123456789'

beforeEach(async () => {
  served = servedOverHttp()
  listening = await listen(served.server, {
    port: 0,
    legacySse: true,
    auth: tokens([{ token, id: 'alice', scopes: [] }]),
  })
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
})
afterEach(async () => {
  await client.close()
  await listening.close(0)
})

const requestInit = { headers: { authorization: `Bearer ${token}` } }

async function connect(): Promise<void> {
  await client.connect(new SSEClientTransport(new URL('/sse', listening.url), { requestInit }))
}

describe('SDK 1.x client over HTTP+SSE', () => {
  it('calls a tool, receives progress and is asked', async () => {
    await connect()
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({
      content: [{ text: 'hi' }],
    })
    const seen: number[] = []
    const onprogress = ({ progress }: { progress: number }) => {
      seen.push(progress)
      served.gate.open('g')
    }
    await client.callTool({ name: 'steps', arguments: { gate: 'g' } }, undefined, { onprogress })
    // It drops progress that arrives together with the response.
    expect(seen[0]).toBe(1)
    expect(await client.callTool({ name: 'ask', arguments: {} })).toMatchObject({
      content: [{ text: 'It is Ada' }],
    })
  })

  it('receives change notifications', async () => {
    await connect()
    await client.subscribeResource({ uri: 'note://one' })
    served.server.updated('note://one')
    served.server.tools.disable('big')
    await expect.poll(() => heard.toSorted()).toEqual(['tools changed', 'updated note://one'])
  })

  it('gets errors, and cancels a call', async () => {
    await connect()
    await expect(client.readResource({ uri: 'note://none' })).rejects.toMatchObject({
      code: -32002,
    })
    const controller = new AbortController()
    const { signal } = controller
    const call = client.callTool({ name: 'quiet', arguments: { gate: 'x' } }, undefined, { signal })
    await expect.poll(() => listening.openResponses).toBe(2)
    controller.abort('enough')
    await expect(call).rejects.toThrow('enough')
    await expect.poll(() => served.ended.get('x')).toBe('stopped: enough')
  })

  it('cancels its calls when it closes', async () => {
    await connect()
    void client.callTool({ name: 'quiet', arguments: { gate: 'x' } }).catch(() => {})
    await expect.poll(() => listening.openResponses).toBe(2)
    await client.close()
    await expect.poll(() => served.ended.get('x')).toContain('stopped')
    expect(listening.sessions).toBe(0)
  })

  it('falls back to it where Streamable HTTP is refused', async () => {
    const url = new URL('/sse', listening.url)
    const streamable = new StreamableHTTPClientTransport(url, { requestInit })
    // Its own types disagree under exactOptionalPropertyTypes.
    await expect(client.connect(streamable as never)).rejects.toThrow('Method Not Allowed')
    await connect()
    expect(await client.listTools()).toMatchObject({ tools: expect.any(Array) })
  })
})
