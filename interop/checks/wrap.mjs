// ccmcp wrap in the configuration of real hosts: they connect through the tap, and unwrap restores the file.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { heavyProgram, programOf, registered, run } from './hosts.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const CLI = here('../../dist/cli.js')

export function wrapChecks(versions, heavy) {
  return [
    [`wrap in Gemini CLI ${versions['@google/gemini-cli']}`, gemini],
    [`wrap in Claude Code ${heavy['@anthropic-ai/claude-code']}`, claude],
    [`wrap in Codex ${heavy['@openai/codex']}`, codex],
  ]
}

/** Wraps the server of a host, uses the host, and unwraps the server. */
async function wrapped(t, server, host, path, use) {
  const command = (...args) => run(t, process.execPath, [CLI, ...args, '--host', host], server)
  const before = readFileSync(path, 'utf8')
  await t.must('wrap', async () => {
    const { output, errors } = await command('wrap', 'ccmcp')
    assert.match(output, /^ccmcp: wrapped in /, errors)
    assert.match(readFileSync(path, 'utf8'), /"tap"/)
  })
  await t.must('use', use)
  await t.step('capture', async () => {
    const folder = join(server.home, '.local', 'state', 'ccmcp', 'captures')
    const records = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
    assert.ok(records.length > 0)
    assert.match(records.join('\n'), /initialize|server\/discover/)
    return `${records.length}`
  })
  await t.step('unwrap', async () => {
    const now = readFileSync(path, 'utf8')
    await command('unwrap', '--all')
    const after = readFileSync(path, 'utf8')
    assert.doesNotMatch(after, /"tap"/)
    if (host === 'claude-code') {
      // It writes to the file while it runs.
      const serversOf = (text) => JSON.parse(text).mcpServers
      assert.deepEqual(serversOf(after), serversOf(before))
      return
    }
    assert.notEqual(now, before)
    assert.equal(after, before)
  })
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return path
}

async function gemini(t) {
  const server = registered(t)
  const path = write(
    join(server.home, '.gemini', 'settings.json'),
    `// settings\n${JSON.stringify({ mcpServers: { ccmcp: { command: server.command } } })}`,
  )
  const [node, program] = programOf('@google/gemini-cli')
  const env = { GEMINI_CLI_TRUST_WORKSPACE: 'true' }
  await wrapped(t, server, 'gemini', path, async () => {
    const { output, errors } = await run(t, node, [program, 'mcp', 'list'], { ...server, env })
    assert.match(output + errors, /ccmcp: .* - Connected/)
    return 'Connected'
  })
}

async function claude(t) {
  const program = heavyProgram('@anthropic-ai/claude-code-linux-x64/claude')
  const server = registered(t)
  await run(t, program, ['mcp', 'add', 'ccmcp', '-s', 'user', '--', server.command], server)
  await wrapped(t, server, 'claude-code', join(server.home, '.claude.json'), async () => {
    const { output } = await run(t, program, ['mcp', 'list'], server)
    assert.match(output, /ccmcp: .* Connected/)
    return 'Connected'
  })
}

async function codex(t) {
  const program = heavyProgram('@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex')
  const server = registered(t)
  const path = write(
    join(server.home, '.codex', 'config.toml'),
    `# mine\n[mcp_servers.ccmcp]\ncommand = ${JSON.stringify(server.command)} # the server\n`,
  )
  await wrapped(t, server, 'codex', path, async () => {
    const client = [here('../clients/codex.mjs'), program]
    const { output } = await run(t, process.execPath, client, server)
    assert.equal(JSON.parse(output).text, 'Grüße 👋')
    return 'called a tool'
  })
}
