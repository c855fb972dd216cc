// Starts Redis, two processes and nginx, and uses a session through all of them. Needs redis-server and nginx.
//   node examples/cluster/run.mjs          runs the example
//   node examples/cluster/run.mjs --keep   goes on until it is interrupted
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'ccmcp-cluster-'))
const started = []

/** A port below those that connections and `listen(0)` get, so that no other process gets it before it is used. */
async function freePort() {
  const port = randomInt(10_000, 32_000)
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (error.code === 'EADDRINUSE') return freePort()
    throw error
  }
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a program, and waits until its output contains a text. */
async function start(program, args, ready, env = {}) {
  const stdio = ['ignore', ready === undefined ? 'inherit' : 'pipe', 'inherit']
  const child = spawn(program, args, { stdio, env: { ...process.env, ...env } })
  const failed = once(child, 'error').then(([error]) => Promise.reject(error))
  failed.catch(() => {})
  started.push(child)
  if (ready === undefined) await Promise.race([once(child, 'spawn'), failed])
  else
    for (let output = ''; !output.includes(ready);)
      output += (await Promise.race([once(child.stdout, 'data'), failed]))[0]
  return child
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

async function post(url, message, headers = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text}`)
  return { response, json: text === '' ? undefined : JSON.parse(text) }
}

/** Listens for changes at one process, and makes one in each. */
async function watch(url) {
  const version = '2026-07-28'
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'example', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const headers = (method, name) => ({
    'MCP-Protocol-Version': version,
    'Mcp-Method': method,
    ...(name === undefined ? {} : { 'Mcp-Name': name }),
  })
  const notifications = { resourceSubscriptions: ['note://shared'] }
  const message = { id: 1, method: 'subscriptions/listen', params: { notifications, _meta } }
  const listening = new AbortController()
  const { body } = await fetch(url, {
    method: 'POST',
    signal: listening.signal,
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...headers('subscriptions/listen'),
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let received = ''
  const until = async (count, text) => {
    while (received.split(text).length <= count) received += (await reader.read()).value
  }
  await until(1, 'acknowledged')
  const writers = new Set()
  while (writers.size < 2) {
    const params = { name: 'write', _meta }
    const call = { id: writers.size + 2, method: 'tools/call', params }
    const { json } = await post(url, call, headers('tools/call', 'write'))
    writers.add(json.result.content[0].text)
    await until(writers.size, 'resources/updated')
  }
  console.log(`a client of one process was told of the changes in ${writers.size} processes`)
  listening.abort()
}

/** Until nginx listens. */
async function reached(url) {
  for (let attempt = 0; attempt < 500; attempt++) {
    const found = await fetch(url).catch(() => undefined)
    if (found?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`${url} cannot be reached`)
}

async function run() {
  const [redisPort, a, b, port] = await Promise.all([1, 2, 3, 4].map(freePort))
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
  const place = ['--port', String(redisPort), '--bind', '127.0.0.1', '--dir', folder]
  await start('redis-server', [...place, ...durable], 'Ready to accept connections')
  const env = (own) => ({ PORT: String(own), REDIS_URL: `redis://127.0.0.1:${redisPort}` })
  const program = join(here, 'server.mjs')
  const first = await start(process.execPath, [program], '/mcp', env(a))
  await start(process.execPath, [program], '/mcp', env(b))

  const names = ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await Promise.all(names.map((name) => mkdir(join(folder, name))))
  const template = await readFile(join(here, 'nginx.conf'), 'utf8')
  const values = { FOLDER: folder, PORT: port, A: a, B: b }
  const filled = template.replaceAll(/\b(?:FOLDER|PORT|A|B)\b/g, (name) => values[name])
  await writeFile(join(folder, 'nginx.conf'), filled)
  await start('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', 'stderr'])
  await reached(`http://127.0.0.1:${port}/healthz`)
  const url = `http://127.0.0.1:${port}/mcp`
  console.log(`nginx with two processes: ${url}`)

  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'example', version: '1.0.0' },
  }
  const { response } = await post(url, { id: 0, method: 'initialize', params })
  const session = { 'Mcp-Session-Id': response.headers.get('mcp-session-id') }
  await post(url, { method: 'notifications/initialized' }, session)
  const call = async (id) => {
    const message = { id, method: 'tools/call', params: { name: 'where' } }
    const { json } = await post(url, message, session)
    return json.result.content[0].text
  }
  const ids = [1, 2, 3, 4]
  const before = new Set()
  for (const id of ids) before.add(await call(id))
  console.log(`${ids.length} calls of one session: ${before.size} process has served them`)
  await watch(url)
  const owner = [...before][0] === `process ${first.pid}` ? first : started[2]
  await end(owner)
  const after = new Set()
  for (const id of ids) after.add(await call(id))
  const moved = [...after].every((name) => !before.has(name))
  console.log(
    `that process has ended; ${ids.length} more calls: ${moved ? 'the other one' : 'none'}`,
  )
  if (process.argv.includes('--keep')) await once(process, 'SIGINT')
}

try {
  await run()
} catch (error) {
  const missing = error.code === 'ENOENT' ? ': install redis-server and nginx' : ''
  console.error(`${error.message}${missing}`)
  process.exitCode = 1
} finally {
  await Promise.all(started.toReversed().map((child) => end(child).catch(() => {})))
  await rm(folder, { recursive: true, force: true })
}
