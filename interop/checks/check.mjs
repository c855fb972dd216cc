// `ccmcp check` on other servers: it finds nothing but what was confirmed by hand (docs/check.md).
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { program, script } from '../harness.mjs'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** An error for an unknown tool is a result with isError; ids beyond 2^53 get no response, or a rounded one. */
const SDK_1 = ['inexact-id', 'unknown-tool-error']
/** After a notification that belongs to no request, a stateless connection is taken for one with a handshake. */
const SDK_2 = ['inconsistent', 'inexact-id']

export function checkChecks(versions) {
  const version = (name) => versions[name]
  const everything = '@modelcontextprotocol/server-everything'
  const filesystem = '@modelcontextprotocol/server-filesystem'
  const checked = (label, args, known) => [`check of ${label}`, (t) => checks(t, args, known)]
  return [
    checked(
      `SDK ${version('@modelcontextprotocol/sdk')}`,
      () => script('servers/sdk-1.mjs'),
      SDK_1,
    ),
    checked(
      `SDK ${version('@modelcontextprotocol/server')}`,
      () => script('servers/sdk-2.mjs'),
      SDK_2,
    ),
    checked(`tmcp ${version('tmcp')}`, () => script('servers/tmcp.mjs'), SDK_1),
    checked(`fastmcp ${version('fastmcp')}`, () => script('servers/fastmcp.mjs'), ['inexact-id']),
    checked(`everything ${version(everything)}`, () => program(everything), SDK_1),
    checked(
      `filesystem ${version(filesystem)}`,
      (t) => {
        const root = t.path('root')
        mkdirSync(root)
        return program(filesystem, root)
      },
      SDK_1,
    ),
  ]
}

/** On a busy machine a server may be killed before it has answered at the end of its input. */
const TIMING = new Set(['lost-at-end', 'slow-start'])

async function checks(t, args, known) {
  const { stdout, stderr } = await run(t, [
    'check',
    '--format',
    'json',
    '--',
    process.execPath,
    ...args(t),
  ])
  await t.must('finds only what is known', async () => {
    const { findings, probes } = JSON.parse(
      stdout || `{"findings":[{"rule":${JSON.stringify(stderr)}}]}`,
    )
    const rules = findings.map(({ rule }) => rule).filter((rule) => !TIMING.has(rule))
    assert.deepEqual(new Set(rules), new Set(known))
    return `${probes.length} probes, ${known.join(', ')}`
  })
}

async function run(t, args) {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, ...t.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise((resolve) => child.once('close', resolve))
  t.defer(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'])
    child[name].setEncoding('utf8').on('data', (chunk) => (output[name] += chunk))
  await exited
  return output
}
