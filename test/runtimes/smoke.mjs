// A smoke test of the built package on Bun and Deno (Node has the whole suite): the client over memory and stdio in every
// revision, and the HTTP handler behind the runtime's own HTTP server. Prints one line per check.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { connect, memory, stdio } from 'ccmcp/client'
import { httpHandler } from 'ccmcp/http'
import { server } from './server.mjs'

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url))
const isDeno = 'Deno' in globalThis
const runArgs = isDeno ? ['run', '-A', SERVER, 'stdio'] : [SERVER, 'stdio']

/** Starts the runtime's own HTTP server on a free port of the loopback interface. */
function serveHttp(handler) {
  const hostname = '127.0.0.1'
  if (isDeno) {
    const listening = globalThis.Deno.serve({ hostname, port: 0, onListen() {} }, handler)
    return { port: listening.addr.port, stop: () => listening.shutdown() }
  }
  const listening = globalThis.Bun.serve({ hostname, port: 0, fetch: handler })
  return { port: listening.port, stop: () => listening.stop(true) }
}

async function useClient(target, revision) {
  const client = await connect(target, { revision })
  try {
    assert.equal(client.revision, revision)
    const progress = []
    const result = await client.callTool(
      'count',
      {},
      { onProgress: (each) => progress.push(each.progress) },
    )
    assert.deepEqual(result.content, [{ type: 'text', text: 'done' }])
    assert.equal(progress.at(-1), 3)
    assert.equal((await client.callTool('add', { a: 2, b: 40 })).content[0].text, '42')
  } finally {
    await client.close()
  }
}

async function useHttp() {
  const handler = httpHandler(server)
  const { port, stop } = serveHttp(handler)
  const post = (body, headers = {}) =>
    fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    })
  try {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'smoke', version: '1' },
    }
    const opened = await post({ id: 1, method: 'initialize', params })
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') }
    assert.equal((await opened.json()).result.protocolVersion, '2025-11-25')
    assert.equal((await post({ method: 'notifications/initialized' }, session)).status, 202)
    const count = { name: 'count', arguments: {}, _meta: { progressToken: 1 } }
    const streamed = await post({ id: 2, method: 'tools/call', params: count }, session)
    assert.equal(streamed.headers.get('content-type'), 'text/event-stream')
    assert.match(await streamed.text(), /notifications\/progress[^]*"text":"done"/)
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const headers = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'add',
    }
    const add = { name: 'add', arguments: { a: 1, b: 2 }, _meta: meta }
    const stateless = await post({ id: 3, method: 'tools/call', params: add }, headers)
    assert.equal((await stateless.json()).result.content[0].text, '3')
  } finally {
    await handler.close(0)
    await stop()
  }
}

for (const revision of REVISIONS) {
  await useClient(memory(server), revision)
  await useClient(stdio(process.execPath, runArgs), revision)
}
console.log(`ok memory and stdio, ${REVISIONS.length} revisions`)
await useHttp()
console.log('ok HTTP handler: session, stream, stateless request')
// A listener of the runtime's own server may linger.
process.exit(0)
