// Writes a capture with many frames, as a busy host and server would produce it: calls with results of several sizes,
// errors, progress, log messages, requests of the server, and now and then a stray line.
//
//   node bench/big-capture.mjs FILE [FRAMES]
import { closeSync, openSync, writeSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const REVISION = '2025-11-25'
const TOOLS = ['search', 'read_file', 'write_file', 'add', 'run_tests', 'fetch_page', 'summarize']
const WORDS = 'the quick brown fox jumps over the lazy dog — naïve café 日本語 '
/** Bytes that are collected before they are written. */
const BLOCK = 1024 * 1024

/** Numbers that look random and are the same in every run. */
function numbers(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** The messages of the session: direction, text and the nanoseconds before it. */
export function* messages(count) {
  const random = numbers(1)
  const rpc = (message) => JSON.stringify({ jsonrpc: '2.0', ...message })
  const info = (name) => ({ name, version: '1.0.0' })
  yield [
    'in',
    rpc({
      id: 0,
      method: 'initialize',
      params: { protocolVersion: REVISION, capabilities: { roots: {} }, clientInfo: info('load') },
    }),
    1e6,
  ]
  yield [
    'out',
    rpc({
      id: 0,
      result: {
        protocolVersion: REVISION,
        capabilities: { tools: {}, logging: {} },
        serverInfo: info('busy'),
      },
    }),
    3e6,
  ]
  yield ['in', rpc({ method: 'notifications/initialized' }), 1e5]
  let asked = 0
  for (let id = 1, sent = 3; sent < count; id++) {
    const name = TOOLS[Math.floor(random() * TOOLS.length)]
    const query = WORDS.slice(0, 5 + Math.floor(random() * 40))
    const call = { name, arguments: { query, limit: id % 50 }, _meta: { progressToken: id } }
    yield ['in', rpc({ id, method: 'tools/call', params: call }), 2e4 + random() * 1e5]
    sent++
    const chance = random()
    if (chance < 0.1) {
      yield [
        'out',
        rpc({
          method: 'notifications/progress',
          params: { progressToken: id, progress: 1, total: 2 },
        }),
        1e5,
      ]
      sent++
    } else if (chance < 0.15) {
      yield [
        'out',
        rpc({
          method: 'notifications/message',
          params: { level: 'info', logger: 'busy', data: `call ${id}: ${query}` },
        }),
        1e5,
      ]
      sent++
    } else if (chance < 0.16) {
      yield ['out', rpc({ id: `ask-${++asked}`, method: 'roots/list' }), 1e5]
      yield [
        'in',
        rpc({ id: `ask-${asked}`, result: { roots: [{ uri: 'file:///tmp', name: 'tmp' }] } }),
        5e5,
      ]
      sent += 2
    } else if (chance < 0.1602) {
      yield ['out', `Processed ${id} calls so far`, 1e4]
      sent++
    }
    const took = 2e5 * (1 + TOOLS.indexOf(name)) * (0.5 + random() * random() * 20)
    if (random() < 0.03)
      yield [
        'out',
        rpc({ id, error: { code: -32602, message: `Unknown argument in ${name}` } }),
        took,
      ]
    else
      yield [
        'out',
        rpc({
          id,
          result: {
            content: [{ type: 'text', text: WORDS.repeat(Math.floor(random() * 4)) + id }],
          },
        }),
        took,
      ]
    sent++
  }
}

export function writeBigCapture(path, count) {
  const file = openSync(path, 'w', 0o600)
  let pending = `${JSON.stringify({ type: 'capture', version: 1, transport: 'stdio', startedAt: '2026-01-02T03:04:05.000Z', by: 'ccmcp' })}\n`
  const offsets = { in: 0, out: 0 }
  let ns = 0
  let written = 0
  for (const [dir, text, wait] of messages(count)) {
    if (written++ === count) break
    ns += Math.round(wait)
    const line = `${text}\n`
    pending += `${JSON.stringify({ type: 'chunk', dir, ns, offset: offsets[dir], text: line })}\n`
    offsets[dir] += Buffer.byteLength(line)
    if (pending.length < BLOCK) continue
    writeSync(file, pending)
    pending = ''
  }
  pending += `${JSON.stringify({ type: 'event', event: 'exit', ns, code: 0 })}\n`
  writeSync(file, pending)
  closeSync(file)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [path, count = '1000000'] = process.argv.slice(2)
  if (path === undefined)
    throw new Error('Missing FILE; usage: node bench/big-capture.mjs FILE [FRAMES]')
  writeBigCapture(path, Number(count))
}
