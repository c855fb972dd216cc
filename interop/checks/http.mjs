// Other clients with our server over HTTP.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { program, script } from '../harness.mjs'
import { official } from './clients.mjs'
import { checkTools, heavyProgram, programOf, run } from './hosts.mjs'

const INFO = { name: 'stranger', version: '1.0.0' }
const MESSAGE = 'Grüße 👋'
const MODERN = '2026-07-28'
const HANDSHAKE = '2025-11-25'

export function httpChecks(versions, heavy) {
  const newer = versions['@modelcontextprotocol/client']
  const older = versions['@modelcontextprotocol/sdk']
  return [
    [`HTTP client SDK ${newer} legacy`, (t) => official2(t, undefined, '2025-11-25')],
    [`HTTP client SDK ${newer} auto`, (t) => official2(t, { mode: 'auto' }, '2026-07-28')],
    [
      `HTTP client SDK ${newer} pinned`,
      (t) => official2(t, { mode: { pin: '2026-07-28' } }, '2026-07-28'),
    ],
    [`HTTP client SDK ${older}`, official1],
    [`HTTP mcp-remote ${versions['mcp-remote']} in the middle`, remote],
    ...['legacy', 'auto', 'modern'].map((era) => [
      `HTTP ccmcp in Inspector ${versions['@modelcontextprotocol/inspector']} CLI, ${era}`,
      (t) => inspectorCli(t, era, era === 'legacy' ? HANDSHAKE : MODERN),
    ]),
    [`HTTP ccmcp in Gemini CLI ${versions['@google/gemini-cli']}`, gemini],
    [`HTTP ccmcp in Claude Code ${heavy['@anthropic-ai/claude-code']}`, claude],
    [`HTTP ccmcp in Codex ${heavy['@openai/codex']}`, codex],
  ]
}

/** Reads the URL that a server prints. */
async function address(child) {
  for await (const chunk of child.stderr.iterator({ destroyOnReturn: false })) {
    const [, found] = /serving (\S+)/.exec(String(chunk)) ?? []
    if (found !== undefined) return new URL(found)
  }
  return assert.fail('it has ended')
}

/** Starts our server and returns its URL. */
async function start(t) {
  const child = spawn(process.execPath, script('server.mjs', 'http'), {
    env: { ...process.env, ...t.env },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  t.defer(async () => child.kill('SIGKILL'))
  const url = await t.must('listen', () => address(child))
  return { url, stderr: child.stderr, end: () => child.stdin.end() }
}

async function official2(t, versionNegotiation, revision) {
  const { url, ...server } = await start(t)
  const client = new Client2(INFO, versionNegotiation === undefined ? {} : { versionNegotiation })
  const call = (params, options) => client.callTool(params, options)
  await official(t, { client, transport: new Transport2(url), revision, call, ...server })
}

async function official1(t) {
  const { url, ...server } = await start(t)
  const client = new Client1(INFO)
  const call = (params, options) => client.callTool(params, undefined, options)
  await official(t, {
    client,
    transport: new Transport1(url),
    revision: '2025-11-25',
    call,
    ...server,
  })
}

/** A stdio client with a proxy to HTTP. */
async function remote(t) {
  const { url, ...server } = await start(t)
  const home = t.path('home')
  const env = { ...t.env, HOME: home, MCP_REMOTE_CONFIG_DIR: home }
  const transport = new Stdio1({
    command: process.execPath,
    args: program('mcp-remote', url.href, '--allow-http'),
    env,
    stderr: 'ignore',
  })
  const client = new Client1(INFO)
  const call = (params, options) => client.callTool(params, undefined, options)
  await official(t, { client, transport, revision: '2025-11-25', call, ...server })
}

/** `ccmcp serve --http`, as a user would start it, with a home directory for its client. */
async function hosted(t) {
  const [log, home] = [t.path('log'), t.path('home')]
  mkdirSync(home)
  const args = script('../dist/cli.js', 'serve', '--http', '--port', '0', '--log-file', log)
  const child = spawn(process.execPath, args, {
    cwd: home,
    env: { ...process.env, ...t.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.defer(async () => child.kill('SIGKILL'))
  const url = await t.must('listen', () => address(child))
  const end = async (revision) => {
    child.kill('SIGTERM')
    await t.step('revision', async () => {
      const agreed = [
        ...readFileSync(log, 'utf8').matchAll(/Initialized by .*, protocol (\S+?)"/g),
      ].map(([, id]) => id)
      // Stateless requests log no handshake.
      assert.equal(agreed.at(-1) ?? MODERN, revision)
      return revision
    })
    await t.step('end', () => t.gone())
  }
  return { url: url.href, home, end }
}

async function inspectorCli(t, era, revision) {
  const server = await hosted(t)
  const [node, cli] = programOf('@modelcontextprotocol/inspector')
  const args = (method) => [
    cli,
    '--cli',
    server.url,
    '--transport',
    'http',
    '--protocol-era',
    era,
    '--method',
    ...method,
  ]
  const ask = async (...method) => JSON.parse((await run(t, node, args(method), server)).output)
  await t.must('list', async () =>
    checkTools((await ask('tools/list')).tools.map(({ name }) => name)),
  )
  await t.step('call', async () => {
    const { content } = await ask(
      'tools/call',
      '--tool-name',
      'echo',
      '--tool-arg',
      `message=${MESSAGE}`,
    )
    assert.equal(content[0].text, MESSAGE)
  })
  await server.end(revision)
}

/** It never sends MCP-Protocol-Version. `mcp list` connects and pings; calls require a model. */
async function gemini(t) {
  const server = await hosted(t)
  mkdirSync(join(server.home, '.gemini'))
  writeFileSync(
    join(server.home, '.gemini', 'settings.json'),
    JSON.stringify({ mcpServers: { ccmcp: { httpUrl: server.url } } }),
  )
  const [node, cli] = programOf('@google/gemini-cli')
  await t.must('mcp list', async () => {
    const { output, errors } = await run(t, node, [cli, 'mcp', 'list'], {
      ...server,
      env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    })
    assert.match(output + errors, /ccmcp: .* - Connected/)
    return 'Connected'
  })
  await server.end('2025-06-18')
}

async function claude(t) {
  const cli = heavyProgram('@anthropic-ai/claude-code-linux-x64/claude')
  const server = await hosted(t)
  await t.must('mcp add', async () => {
    await run(
      t,
      cli,
      ['mcp', 'add', '--transport', 'http', 'ccmcp', '-s', 'user', server.url],
      server,
    )
  })
  await t.must('mcp list', async () => {
    const { output } = await run(t, cli, ['mcp', 'list'], server)
    assert.match(output, /ccmcp: .* Connected/)
    return 'Connected'
  })
  await server.end(MODERN)
}

/** It starts with GET and looks for an authorization server. */
async function codex(t) {
  const cli = heavyProgram('@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex')
  const server = await hosted(t)
  mkdirSync(join(server.home, '.codex'))
  writeFileSync(
    join(server.home, '.codex', 'config.toml'),
    `[mcp_servers.ccmcp]\nurl = ${JSON.stringify(server.url)}\n`,
  )
  await t.must('list and call', async () => {
    const { output } = await run(
      t,
      process.execPath,
      [new URL('../clients/codex.mjs', import.meta.url).pathname, cli],
      server,
    )
    const { names, text } = JSON.parse(output)
    assert.equal(text, MESSAGE)
    return checkTools(names)
  })
  await server.end('2025-06-18')
}
