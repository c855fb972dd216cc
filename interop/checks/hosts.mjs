// Published clients and hosts with ./ccmcp, registered as a user would: each lists the tools and calls one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Skipped, newerNode } from '../harness.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const CCMCP = here('../../ccmcp')
const MESSAGE = 'Grüße 👋'
const MODERN = '2026-07-28'
const HANDSHAKE = '2025-11-25'

export function hostChecks(versions, heavy) {
  const inspector = versions['@modelcontextprotocol/inspector']
  const official = versions['@modelcontextprotocol/client']
  return [
    [`ccmcp in Inspector ${inspector} CLI, legacy`, (t) => inspectorCli(t, 'legacy', HANDSHAKE)],
    [`ccmcp in Inspector ${inspector} CLI, auto`, (t) => inspectorCli(t, 'auto', MODERN)],
    [`ccmcp in Inspector ${inspector} CLI, modern`, (t) => inspectorCli(t, 'modern', MODERN)],
    [
      `ccmcp in SDK ${versions['@modelcontextprotocol/sdk']}`,
      (t) => library(t, ['sdk-1.mjs'], HANDSHAKE),
    ],
    [`ccmcp in SDK ${official} as it comes`, (t) => library(t, ['sdk-2.mjs'], HANDSHAKE)],
    [`ccmcp in SDK ${official} auto`, (t) => library(t, ['sdk-2.mjs', 'auto'], MODERN, 2)],
    [`ccmcp in AI SDK ${versions['@ai-sdk/mcp']}`, (t) => library(t, ['ai-sdk.mjs'], MODERN)],
    [`ccmcp in mcporter ${versions['mcporter']}`, mcporter],
    [`ccmcp in mcp-cli ${versions['@wong2/mcp-cli']}`, mcpCli],
    [
      `ccmcp in LangChain ${versions['@langchain/mcp-adapters']}`,
      (t) => library(t, ['langchain.mjs'], HANDSHAKE),
    ],
    [`ccmcp in Mastra ${versions['@mastra/mcp']}`, (t) => library(t, ['mastra.mjs'], MODERN, 2)],
    [
      `ccmcp in OpenAI Agents ${versions['@openai/agents']}`,
      (t) => library(t, ['openai-agents.mjs'], MODERN, 2),
    ],
    [`ccmcp in Gemini CLI ${versions['@google/gemini-cli']}`, gemini],
    [`ccmcp in Claude Code ${heavy['@anthropic-ai/claude-code']}`, claude],
    [`ccmcp in Codex ${heavy['@openai/codex']}`, codex],
  ]
}

/** A command that starts ./ccmcp, counts its starts, and stores its log. */
export function registered(t) {
  const [command, log, home] = ['ccmcp', 'log', 'home'].map((name) => t.path(name))
  writeFileSync(
    command,
    `#!/bin/sh\necho $$ >> '${t.env.INTEROP_PIDS}'\nexec '${CCMCP}' --log-file '${log}' "$@"\n`,
    { mode: 0o755 },
  )
  writeFileSync(log, '')
  mkdirSync(home)
  return { command, home, log: () => readFileSync(log, 'utf8') }
}

/** Runs a program and returns its output. */
export async function run(t, program, args, { home, cwd = home, env = {} }) {
  // A separate working directory, with the server's Node first in PATH.
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  const child = spawn(program, args, {
    cwd,
    env: { PATH, HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.defer(async () => child.kill('SIGKILL'))
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.setEncoding('utf8').toArray(),
    child.stderr.setEncoding('utf8').toArray(),
    new Promise((resolve, reject) => child.on('exit', resolve).on('error', reject)),
  ])
  const [output, errors] = [stdout.join(''), stderr.join('')]
  assert.equal(code, 0, `exit code ${code}: ${errors.slice(-500)} ${output.slice(-500)}`)
  return { output, errors }
}

/** The program of an installed package, run by a Node that is new enough. */
export function programOf(name, folder = '../node_modules') {
  const home = here(`${folder}/${name}/`)
  const { bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
  return [newerNode(), join(home, typeof bin === 'string' ? bin : Object.values(bin)[0])]
}

export function checkTools(names) {
  for (const name of ['hello', 'add', 'echo'])
    assert.ok(names.includes(name), `${name} is missing in ${names.join(', ')}`)
  return `(${names.length})`
}

/** Checks the negotiated revision, the number of processes, and that all of them have exited. */
async function aftermath(t, { log }, revision, starts) {
  await t.step('revision', async () => {
    const agreed = [...log().matchAll(/Initialized by .*, protocol (\S+?)"/g)].map(([, id]) => id)
    // Stateless requests log no handshake.
    assert.equal(agreed.at(-1) ?? MODERN, revision)
    return revision
  })
  await t.step('starts', async () => {
    assert.equal(t.pids().length, starts)
    await t.gone()
    return String(starts)
  })
}

async function library(t, [script, ...args], revision, starts = 1) {
  const server = registered(t)
  const { names } = await t.must('list and call', async () => {
    const { output } = await run(
      t,
      newerNode(),
      [here(`../clients/${script}`), server.command, ...args],
      server,
    )
    const result = JSON.parse(output)
    assert.equal(result.text, MESSAGE)
    return result
  })
  await t.step('tools', async () => checkTools(names))
  await aftermath(t, server, revision, starts)
}

async function inspectorCli(t, era, revision) {
  const server = registered(t)
  const [node, program] = programOf('@modelcontextprotocol/inspector')
  const ask = async (...method) =>
    JSON.parse(
      (
        await run(
          t,
          node,
          [program, '--cli', server.command, '--protocol-era', era, '--method', ...method],
          server,
        )
      ).output,
    )
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
  await aftermath(t, server, revision, 2)
}

async function mcporter(t) {
  const server = registered(t)
  const [node, program] = programOf('mcporter')
  await t.must('list', async () => {
    const { output } = await run(
      t,
      node,
      [program, 'list', '--stdio', server.command, '--json'],
      server,
    )
    return checkTools(
      [...output.matchAll(/"name": "(\w+)"/g)]
        .map(([, name]) => name)
        .filter((name) => name !== 'ccmcp'),
    )
  })
  await t.step('call', async () => {
    const { output } = await run(
      t,
      node,
      [program, 'call', '--stdio', server.command, 'echo', `message=${MESSAGE}`],
      server,
    )
    assert.equal(output.trim(), MESSAGE)
  })
  await aftermath(t, server, HANDSHAKE, 2)
}

/** It lists tools only in a terminal. */
async function mcpCli(t) {
  const server = registered(t)
  const config = join(server.home, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({ mcpServers: { ccmcp: { command: server.command, args: [] } } }),
  )
  const [node, program] = programOf('@wong2/mcp-cli')
  await t.must('call', async () => {
    const args = [
      program,
      '-c',
      config,
      'call-tool',
      'ccmcp:echo',
      '--args',
      JSON.stringify({ message: MESSAGE }),
    ]
    const { output } = await run(t, node, args, server)
    assert.ok(output.includes(`"text": "${MESSAGE}"`), output)
  })
  await aftermath(t, server, HANDSHAKE, 1)
}

/** `mcp list` connects and pings; calls require a model. */
async function gemini(t) {
  const server = registered(t)
  mkdirSync(join(server.home, '.gemini'))
  writeFileSync(
    join(server.home, '.gemini', 'settings.json'),
    JSON.stringify({ mcpServers: { ccmcp: { command: server.command } } }),
  )
  const [node, program] = programOf('@google/gemini-cli')
  await t.must('mcp list', async () => {
    const { output, errors } = await run(t, node, [program, 'mcp', 'list'], {
      ...server,
      env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    })
    assert.match(output + errors, /ccmcp: .* - Connected/)
    return 'Connected'
  })
  await aftermath(t, server, '2025-06-18', 1)
}

export function heavyProgram(path) {
  const program = here(`../heavy/node_modules/${path}`)
  if (!existsSync(program))
    throw new Skipped(
      'several hundred megabytes; "node interop/run.mjs --heavy" installs and tries it',
    )
  return program
}

/** Its health check initializes and lists; calls require a model. */
async function claude(t) {
  const program = heavyProgram('@anthropic-ai/claude-code-linux-x64/claude')
  const server = registered(t)
  await t.must('mcp add', async () => {
    await run(t, program, ['mcp', 'add', 'ccmcp', '-s', 'user', '--', server.command], server)
  })
  await t.must('mcp list', async () => {
    const { output } = await run(t, program, ['mcp', 'list'], server)
    assert.match(output, /ccmcp: .* Connected/)
    assert.doesNotMatch(output, /failed/)
    return 'Connected'
  })
  await aftermath(t, server, MODERN, 1)
}

async function codex(t) {
  const program = heavyProgram('@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex')
  const server = registered(t)
  mkdirSync(join(server.home, '.codex'))
  writeFileSync(
    join(server.home, '.codex', 'config.toml'),
    `[mcp_servers.ccmcp]\ncommand = ${JSON.stringify(server.command)}\n`,
  )
  const { names } = await t.must('list and call', async () => {
    const { output } = await run(
      t,
      process.execPath,
      [here('../clients/codex.mjs'), program],
      server,
    )
    const result = JSON.parse(output)
    assert.equal(result.text, MESSAGE)
    return result
  })
  await t.step('tools', async () => checkTools(names))
  // One process for the status, one for the thread.
  await aftermath(t, server, '2025-06-18', 2)
}
