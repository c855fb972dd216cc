import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, it } from 'vitest'

/* The examples of HTTP applications run unchanged, with the official SDK client. */

const folder = fileURLToPath(new URL('../../examples/http/', import.meta.url))
const running: ChildProcess[] = []
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL')
})

async function start(example: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [folder + example], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.push(child)
  for await (const line of createInterface(child.stdout)) return { child, url: line }
  throw new Error(`${example} has ended without printing its URL`)
}

it('there are four examples', () => {
  expect(readdirSync(folder)).toEqual(['express.mjs', 'fastify.mjs', 'hono.mjs', 'node-http.mjs'])
})

describe.each(readdirSync(folder))('%s', (example) => {
  it('serves the official client and exits on SIGTERM with an open stream', async () => {
    const { child, url } = await start(example)
    const client = new Client({ name: 'sdk', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { 'Accept-Language': 'eo' } },
    })
    await client.connect(transport)
    expect(transport.sessionId).toBeDefined()
    expect(await client.callTool({ name: 'hello' })).toMatchObject({
      content: [{ text: 'Hello, reader of eo' }],
    })
    const stream = await fetch(url, {
      headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': transport.sessionId ?? '' },
    })
    // The session has an open stream, whether it is this one or the SDK's own.
    expect([200, 409]).toContain(stream.status)
    const elsewhere = await fetch(new URL('/', url))
    expect([elsewhere.status, await elsewhere.text()]).toEqual(
      example === 'node-http.mjs'
        ? [404, 'There is only /mcp here']
        : [200, 'The application itself'],
    )
    const foreign = await fetch(url, {
      method: 'POST',
      headers: { Origin: 'https://evil.example' },
    })
    expect(foreign.status).toBe(403)

    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    expect(code).toBe(0)
    await client.close()
  })
})
