// Real hosts and servers with `ccmcp tap` between them: recorders before and behind the tap see the same bytes, and the
// capture has exactly these.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../scripts/free-port.mjs'
import { until } from '../harness.mjs'
import { HttpRecorder } from '../recorders/http.mjs'
import { heavyProgram, programOf, run } from './hosts.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const CLI = here('../../dist/cli.js')
const EVERYTHING = here('../node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const MESSAGE = 'Grüße 👋'
const CLAUDE = '@anthropic-ai/claude-code-linux-x64/claude'
const CODEX = '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex'

/** How each host connects to a server and, where it can without a model, calls a tool. */
const HOSTS = {
  Inspector: inspector,
  Gemini: gemini,
  'Claude Code': claude,
  Codex: codex,
}
/** The commands of servers on stdio and over HTTP. */
const SERVERS = {
  ccmcp: { stdio: [CLI, 'serve'], http: (port) => [CLI, 'serve', '--http', '--port', port] },
  'server-everything': {
    stdio: [EVERYTHING, 'stdio'],
    http: () => [EVERYTHING, 'streamableHttp'],
  },
}

export function tapChecks() {
  return Object.entries(HOSTS).flatMap(([host, use]) =>
    Object.entries(SERVERS).flatMap(([server, commands]) => [
      [`tap ${host} to ${server} over stdio`, (t) => overStdio(t, use, commands.stdio)],
      [`tap ${host} to ${server} over HTTP`, (t) => overHttp(t, use, commands.http)],
    ]),
  )
}

function homeOf(t) {
  const home = t.path('home')
  mkdirSync(home)
  return home
}

async function overStdio(t, use, server) {
  const home = homeOf(t)
  const [command, folder] = [t.path('tapped'), t.path('records')]
  mkdirSync(folder)
  const node = process.execPath
  const recorder = here('../recorders/stdio.mjs')
  // A host may start it several times; each run has files of its own.
  const line = [
    `'${node}' '${recorder}' "$FILES.before"`,
    `'${node}' '${CLI}' tap --capture "$FILES.ndjson" --`,
    `'${node}' '${recorder}' "$FILES.behind"`,
    [node, ...server].map((word) => `'${word}'`).join(' '),
  ]
  writeFileSync(
    command,
    `#!/bin/sh\necho $$ >> '${t.env.INTEROP_PIDS}'\nFILES='${folder}'/$$\nexec ${line.join(' ')}\n`,
    { mode: 0o755 },
  )
  await t.must('host', () => use(t, { home, command }))
  await t.step('bytes', async () => {
    await t.gone()
    const runs = readdirSync(folder).filter((name) => name.endsWith('.ndjson'))
    assert.ok(runs.length > 0, 'the tap was not started')
    await until(() => runs.every((name) => hasEnded(join(folder, name))), 'the captures have ended')
    let total = 0
    for (const name of runs) {
      const files = join(folder, name.replace(/\.ndjson$/, ''))
      const chunks = recordsOf(join(folder, name)).filter(({ type }) => type === 'chunk')
      for (const dir of ['in', 'out']) {
        const recorded = Buffer.concat(chunks.filter((each) => each.dir === dir).map(bytesOf))
        const before = readFileSync(`${files}.before.${dir}`)
        const behind = readFileSync(`${files}.behind.${dir}`)
        assert.ok(before.equals(behind), `${dir}: ${before.length} before, ${behind.length} behind`)
        assert.ok(
          recorded.equals(before),
          `${dir}: ${recorded.length} recorded, ${before.length} sent`,
        )
        total += before.length
      }
    }
    assert.ok(total > 0, 'nothing was sent')
    return `equal (${total} in ${runs.length} ${runs.length === 1 ? 'run' : 'runs'})`
  })
  const captures = readdirSync(folder).filter((name) => name.endsWith('.ndjson'))
  await noErrors(
    t,
    captures.map((name) => join(folder, name)),
  )
}

/** A tool that reports errors which are none is worse than no tool. */
async function noErrors(t, captures) {
  await t.step('findings', async () => {
    for (const path of captures)
      await run(t, process.execPath, [CLI, 'check', path], { home: t.path('home') })
    return 'without errors'
  })
}

async function overHttp(t, use, server) {
  const home = homeOf(t)
  const port = await freePort()
  start(t, server(String(port)), { PORT: String(port) })
  await t.must('listen', () => listening(port))
  const behind = new HttpRecorder(port)
  const capture = t.path('capture.ndjson')
  const behindPort = await behind.listen()
  const url = `http://127.0.0.1:${behindPort}/mcp`
  const tap = start(t, [CLI, 'tap', url, '--capture', capture])
  const [line] = await once(tap.stdout.setEncoding('utf8'), 'data')
  const before = new HttpRecorder(Number(new URL(line.trim()).port))
  const beforePort = await before.listen()
  t.defer(async () => {
    before.close()
    behind.close()
  })
  await t.must('host', () => use(t, { home, url: `http://127.0.0.1:${beforePort}/mcp` }))
  await t.step('bytes', async () => {
    tap.kill('SIGTERM')
    await once(tap, 'exit')
    assert.ok(hasEnded(capture), 'the capture has no end')
    const seen = before.exchanges()
    const recorded = exchangesOf(recordsOf(capture))
    assert.ok(seen.length > 0, 'nothing was sent')
    // As the tap has received them, and as it has forwarded them.
    pairUp(recorded.map(received), seen, 'before')
    pairUp(recorded.map(forwarded), behind.exchanges(), 'behind')
    const changed = new Set(
      recorded.flatMap(({ request, response }) => changesOf(request, response)),
    )
    const total = seen.reduce(
      (sum, { request, response }) => sum + request.body.length + (response?.body.length ?? 0),
      0,
    )
    const aborted = recorded.filter(({ isAborted }) => isAborted).length
    const cut = aborted === 0 ? '' : `, ${aborted} broken off`
    return `equal (${seen.length} requests${cut}, bodies of ${total}, changed: ${[...changed].join(', ')})`
  })
  await noErrors(t, [capture])
}

const changesOf = (...heads) =>
  heads.flatMap((head) => (head?.changes ?? []).map(({ name }) => name))

const received = ({ request, response, isAborted }) => ({
  request,
  response: response && { ...response, headers: applied(response) },
  isAborted,
})
const forwarded = ({ request, response, isAborted }) => ({
  request: { ...request, headers: applied(request) },
  response,
  isAborted,
})

/** Each recorded exchange must be one that was seen, and the other way round. */
function pairUp(recorded, seen, where) {
  assert.equal(recorded.length, seen.length, `requests ${where} the tap`)
  const left = new Set(seen)
  for (const exchange of recorded) {
    const match = [...left].find((each) => isSame(exchange, each))
    assert.ok(
      match,
      `not seen ${where} the tap: ${headsOf(exchange)}, but ${[...left].map(headsOf).join(', ')}`,
    )
    left.delete(match)
  }
}

/** If one side has disconnected, what was on its way may have reached only a part of the others. */
function isSame(recorded, seen) {
  const { isAborted } = recorded
  return (
    isSameMessage(recorded.request, seen.request, isAborted) &&
    isSameMessage(recorded.response, seen.response, isAborted)
  )
}

function isSameMessage(one, other, isAborted) {
  if (one === undefined || other === undefined) return isAborted || one === other
  if (headOf(one) !== headOf(other)) return false
  const length = Math.min(one.body.length, other.body.length)
  if (!isAborted && one.body.length !== other.body.length) return false
  return one.body.subarray(0, length).equals(other.body.subarray(0, length))
}

const headOf = (message) => message && JSON.stringify([message.line, message.headers])
const headsOf = ({ request, response }) => `${headOf(request)} ${headOf(response)}`

/** Headers with the recorded changes. */
function applied({ headers, changes = [] }) {
  const left = [...changes]
  const kept = headers.flatMap(([name, value]) => {
    const index = left.findIndex((change) => change.name === name && change.from === value)
    if (index === -1) return [[name, value]]
    const [{ to }] = left.splice(index, 1)
    return to === undefined ? [] : [[name, to]]
  })
  return [...kept, ...left.map(({ name, to }) => [name, to])]
}

/** The exchanges of a capture. */
function exchangesOf(records) {
  const exchanges = new Map()
  for (const record of records) {
    const { exchange: id, type, event } = record
    if (id === undefined) continue
    if (event === 'request') {
      const { method, target, version, headers, changes } = record
      const line = `${method} ${target} HTTP/${version}`
      exchanges.set(id, { request: { line, headers, changes, body: Buffer.alloc(0) } })
    }
    const exchange = exchanges.get(id)
    if (event === 'response') {
      const { status, reason, headers, changes } = record
      const line = `HTTP/1.1 ${status} ${reason}`
      exchange.response = { line, headers, changes, body: Buffer.alloc(0) }
    }
    if (event === 'aborted') exchange.isAborted = true
    if (type !== 'chunk') continue
    const message = record.dir === 'in' ? exchange.request : exchange.response
    assert.equal(record.offset, message.body.length)
    message.body = Buffer.concat([message.body, bytesOf(record)])
  }
  return [...exchanges.values()]
}

function recordsOf(path) {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

function bytesOf({ text, base64 }) {
  return text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text)
}

function hasEnded(path) {
  return existsSync(path) && readFileSync(path, 'utf8').includes('"event":"exit"')
}

function start(t, args, env = {}) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.defer(async () => child.kill('SIGKILL'))
  child.stdout.resume()
  return child
}

async function listening(port) {
  let isUp = false
  const attempt = async () => {
    isUp ||= await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  }
  await until(
    () => {
      void attempt()
      return isUp
    },
    'the server listens',
    20_000,
  )
}

/** Lists the tools and calls one, in the legacy and in the newest era. */
async function inspector(t, { home, command, url }) {
  const [node, cli] = programOf('@modelcontextprotocol/inspector')
  const target = url === undefined ? [command] : [url, '--transport', 'http']
  for (const era of ['legacy', 'auto']) {
    const args = [cli, '--cli', ...target, '--protocol-era', era, '--method', 'tools/call']
    const call = ['--tool-name', 'echo', '--tool-arg', `message=${MESSAGE}`]
    const { output } = await run(t, node, [...args, ...call], { home })
    assert.ok(JSON.parse(output).content[0].text.includes(MESSAGE), output)
  }
  return 'called twice'
}

async function gemini(t, { home, command, url }) {
  mkdirSync(join(home, '.gemini'))
  const server = url === undefined ? { command } : { httpUrl: url }
  const settings = JSON.stringify({ mcpServers: { ccmcp: server } })
  writeFileSync(join(home, '.gemini', 'settings.json'), settings)
  const [node, cli] = programOf('@google/gemini-cli')
  const env = { GEMINI_CLI_TRUST_WORKSPACE: 'true' }
  const { output, errors } = await run(t, node, [cli, 'mcp', 'list'], { home, env })
  assert.match(output + errors, /ccmcp: .* - Connected/)
  return 'connected'
}

async function claude(t, { home, command, url }) {
  const cli = heavyProgram(CLAUDE)
  const server = url === undefined ? ['--', command] : [url]
  const transport = url === undefined ? [] : ['--transport', 'http']
  await run(t, cli, ['mcp', 'add', ...transport, 'ccmcp', '-s', 'user', ...server], { home })
  const { output } = await run(t, cli, ['mcp', 'list'], { home })
  assert.match(output, /ccmcp: .* Connected/)
  return 'connected'
}

async function codex(t, { home, command, url }) {
  const cli = heavyProgram(CODEX)
  mkdirSync(join(home, '.codex'))
  const server = url === undefined ? `command = '${command}'` : `url = '${url}'`
  writeFileSync(join(home, '.codex', 'config.toml'), `[mcp_servers.ccmcp]\n${server}\n`)
  const args = [here('../clients/codex.mjs'), cli]
  const { output } = await run(t, process.execPath, args, { home })
  assert.ok(JSON.parse(output).text.includes(MESSAGE), output)
  return 'called'
}
