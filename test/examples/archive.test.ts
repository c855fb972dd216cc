import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Client, connect, stdio } from '../../src/client.js'
import { revisions } from '../../src/protocol/revisions/index.js'

/* The example with side effects that must not be repeated; each of them is counted in a file. */

const EXAMPLE = fileURLToPath(new URL('../../examples/archive.mjs', import.meta.url))
const STATE_KEY = 'a secret that some processes share among them'
const ALL = revisions.map(({ id }) => id)
const BY_RESULT = revisions.filter(({ asksBy }) => asksBy === 'result').map(({ id }) => id)

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ccmcp-archive-'))
  writeFileSync(join(home, 'ledger'), '')
})
afterEach(() => rmSync(home, { recursive: true }))

const ledger = () => readFileSync(join(home, 'ledger'), 'utf8').split('\n').filter(Boolean)
const counts = () =>
  Object.fromEntries(
    ['ticket', 'archive'].map((what) => [
      what,
      ledger().filter((line) => line.startsWith(what)).length,
    ]),
  )

function start(revision: string, env: Record<string, string> = {}): Promise<Client> {
  const environment = { ...process.env, LEDGER: join(home, 'ledger'), ...env } as Record<
    string,
    string
  >
  return connect(stdio(process.execPath, [EXAMPLE], { env: environment }), {
    revision,
    roots: () => [{ uri: 'file:///work' }],
  })
}

describe.each(ALL)('in %s', (revision) => {
  it('runs every step once', async () => {
    await using client = await start(revision)
    const result = await client.callTool('archive', { label: 'a' })
    expect(result).toMatchObject({ content: [{ text: 'Archived file:///work as a-1' }] })
    expect(counts()).toEqual({ ticket: 1, archive: 1 })
  })
})

describe.each(BY_RESULT)('in %s', (revision) => {
  it('also when another process with the same key handles the retry', async () => {
    const state = await firstState(revision, { STATE_KEY })
    await using other = await start(revision, { STATE_KEY })
    const result = await other.request('tools/call', retryOf(state))
    expect(result).toMatchObject({ content: [{ text: 'Archived file:///work as a-1' }] })
    expect(counts()).toEqual({ ticket: 1, archive: 1 })
    expect(new Set(ledger().map((line) => line.split(' ')[1])).size).toBe(1)
  })

  it('fails in a process with another key', async () => {
    const state = await firstState(revision, { STATE_KEY })
    await using other = await start(revision, { STATE_KEY: STATE_KEY.toUpperCase() })
    await expect(other.request('tools/call', retryOf(state))).rejects.toMatchObject({
      code: -32602,
    })
    expect(counts()).toEqual({ ticket: 1, archive: 0 })
  })

  it('a state that is used twice repeats the remaining steps with the same key', async () => {
    const state = await firstState(revision, { STATE_KEY })
    await using other = await start(revision, { STATE_KEY })
    for (let time = 0; time < 2; time++) await other.request('tools/call', retryOf(state))
    expect(counts()).toEqual({ ticket: 1, archive: 2 })
    expect(new Set(ledger().map((line) => line.split(' ')[1])).size).toBe(1)
  })

  it('a state that is used twice runs once with single-use states', async () => {
    const state = await firstState(revision, { STATE_KEY })
    await using other = await start(revision, { STATE_KEY, ONCE: '1' })
    await other.request('tools/call', retryOf(state))
    await expect(other.request('tools/call', retryOf(state))).rejects.toMatchObject({
      code: -32602,
    })
    expect(counts()).toEqual({ ticket: 1, archive: 1 })
  })
})

const retryOf = (requestState: string) => ({
  name: 'archive',
  arguments: { label: 'a' },
  inputResponses: { folders: { roots: [{ uri: 'file:///work' }] } },
  requestState,
})

/** Starts a call in a new process and returns the state for the client. */
async function firstState(revision: string, env: Record<string, string>): Promise<string> {
  let state = ''
  const environment = { ...process.env, LEDGER: join(home, 'ledger'), ...env } as Record<
    string,
    string
  >
  await using client = await connect(stdio(process.execPath, [EXAMPLE], { env: environment }), {
    revision,
    roots: () => Promise.reject(new Error('gone for lunch')),
    tap: ({ direction, frame }) => {
      const message = JSON.parse(frame) as { result?: { requestState?: string } }
      if (direction === 'in') state ||= message.result?.requestState ?? ''
    },
  })
  await expect(client.callTool('archive', { label: 'a' })).rejects.toThrow('gone for lunch')
  return state
}
