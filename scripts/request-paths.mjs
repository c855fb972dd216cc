// Prints the files of src/ that three requests execute, as the request paths in ARCHITECTURE.md, and the re-entries
// (see instrument.mjs): node scripts/request-paths.mjs
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ReentryCounter, instrumentFolder } from './instrument.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-paths-'))
const inspector = new Session()
const counter = new ReentryCounter()
/** The HTTP request itself: reading a header or writing the response is no re-entry. */
const REQUEST_OBJECT = / → transports\/http\/node-context\.ts$/

/** Runs `request` and prints the files in which a function was called meanwhile. */
async function trace(title, request) {
  await inspector.post('Profiler.takePreciseCoverage') // resets the counters
  const edges = await counter.count(request)
  const { result } = await inspector.post('Profiler.takePreciseCoverage')
  const base = pathToFileURL(`${folder}/`).href
  const files = result
    .filter(({ url, functions }) => url.startsWith(base) && functions.some(wasCalled))
    .map(({ url }) => url.slice(base.length).replace(/\.js$/, '.ts'))
  const reentries = [...edges].filter(([edge]) => !REQUEST_OBJECT.test(edge))
  const total = reentries.reduce((sum, [, count]) => sum + count, 0)
  console.log(`${title}: ${files.length} files\n  ${files.toSorted().join('\n  ')}`)
  console.log(` ${total} re-entries`)
  for (const [edge, count] of reentries) console.log(`  ${count} ${edge}`)
}

/** The function without a name at offset 0 is the module itself. */
const wasCalled = ({ ranges: [{ startOffset, count }], functionName }) =>
  count > 0 && (startOffset > 0 || functionName !== '')

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'paths', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: { elicitation: {} },
  clientInfo: { name: 'paths', version: '1' },
}
const message = (id, method, params) => ({ jsonrpc: '2.0', id, method, params })

try {
  const args = `-p tsconfig.build.json --outDir ${folder} --declaration false --emitDeclarationOnly false`
  const tsc = spawnSync('node_modules/.bin/tsc', args.split(' '), { cwd: root, encoding: 'utf8' })
  if (tsc.status !== 0) throw new Error(`tsc failed: ${tsc.stdout}`)
  instrumentFolder(folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir')
  const { createServer, form, tool } = await import(join(folder, 'index.js'))
  const { serve } = await import(join(folder, 'stdio.js'))
  const { listen } = await import(join(folder, 'http.js'))
  inspector.connect()
  await inspector.post('Profiler.enable')
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

  const schema = { type: 'object', properties: { ok: { type: 'boolean' } } }
  const server = createServer({
    name: 'paths',
    version: '1',
    tools: [
      tool({ name: 'hello', run: () => 'Hello.' }),
      tool({
        name: 'ask',
        run: async (_, call) =>
          String((await call.ask({ it: form({ message: '?', schema }) })).it.ok),
      }),
    ],
  })

  const input = new PassThrough()
  const output = new PassThrough()
  const responses = output[Symbol.asyncIterator]()
  const served = serve(server, { input, output })
  const send = async (request) => {
    input.write(`${JSON.stringify(request)}\n`)
    await responses.next()
  }
  await send(message(1, 'initialize', initialize))
  await trace('stdio, tools/call', () => send(message(2, 'tools/call', { name: 'hello' })))
  input.end()
  await served

  const listening = await listen(server, { port: 0, logLevel: 'error' })
  const post = (body, headers) =>
    fetch(listening.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    })
  await trace('stateless POST, tools/call', async () => {
    const headers = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'hello',
    }
    const response = await post(message(1, 'tools/call', { name: 'hello', _meta: meta }), headers)
    await response.text()
  })
  await trace('HTTP session, tools/call with an elicitation', async () => {
    const opened = await post(message(1, 'initialize', initialize))
    const headers = {
      'mcp-session-id': opened.headers.get('mcp-session-id'),
      'mcp-protocol-version': '2025-11-25',
    }
    await opened.text()
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers)
    const response = await post(message(2, 'tools/call', { name: 'ask' }), headers)
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const asked = /"id":("?[^",]+"?),"method":"elicitation\/create"/.exec(chunk)
      if (asked !== null)
        await post(
          {
            jsonrpc: '2.0',
            id: JSON.parse(asked[1]),
            result: { action: 'accept', content: { ok: true } },
          },
          headers,
        )
    }
  })
  await listening.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
