import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import {
  CaptureReader,
  type CaptureRecord,
  type Direction,
  bytesOf,
} from '../../src/capture/format.js'
import { loadSchemaChecks } from '../../src/capture/schema-check.js'
import { connect, http, stdio } from '../../src/client.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { CLI } from '../cli/command.js'
import { CCMCP, Child, killAll } from '../stdio/child.js'

/* `ccmcp serve --capture`. */

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-serve-'))
  file = join(folder, 'x.ndjson')
})
afterEach(async () => {
  await killAll()
  rmSync(folder, { recursive: true, force: true })
})

function recordsOf(): CaptureRecord[] {
  const reader = new CaptureReader()
  const records = [...reader.push(readFileSync(file)), ...reader.end()]
  expect(reader.unreadable).toBe(0)
  return records
}
const recorded = (dir: Direction, exchange?: number) =>
  Buffer.concat(
    recordsOf().flatMap((record) =>
      record.type === 'chunk' && record.dir === dir && record.exchange === exchange
        ? [bytesOf(record)]
        : [],
    ),
  )
async function rowsOf(): Promise<Row[]> {
  const analysis = new Analysis(await loadSchemaChecks())
  return [...recordsOf().flatMap((record) => analysis.add(record)), ...analysis.end()]
}

describe('ccmcp serve --capture', () => {
  it.each([
    ['the program', process.execPath, [CLI]],
    ['the launcher', CCMCP, []],
  ])('records every byte on stdio, with %s', async (_, command, args) => {
    const child = new Child(command, [...args, 'serve', '--capture', file])
    const sent = '{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n\nnot JSON ü\n'
    child.write(Buffer.from(sent))
    await child.line(1)
    child.end()
    await child.closed()
    expect(child.code).toBe(0)
    expect(child.stderr).toContain(`recording to ${file}`)
    expect(recorded('in').toString()).toBe(sent)
    expect(recorded('out').equals(child.stdout)).toBe(true)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(recordsOf().at(-1)).toMatchObject({ event: 'exit', code: 0 })
  })

  it.each(revisions.map(({ id }) => [id]))('records sessions of %s on stdio', async (revision) => {
    const client = await connect(
      // The server must not be killed before it has written the capture.
      stdio(process.execPath, [CLI, 'serve', '--capture', file], {
        env: process.env,
        exitTimeout: 60_000,
      }),
      { revision },
    )
    await client.callTool('add', { a: 1, b: 2 })
    await client.close()
    const rows = await rowsOf()
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
    expect(rows.find(({ kind, target }) => kind === 'response' && target === 'add')).toMatchObject({
      status: 'ok',
      revision,
    })
  })

  it('records the bytes and heads of HTTP', async () => {
    const args = ['serve', '--http', '--sse', '--port', '0', '--capture', file]
    const child = new Child(process.execPath, [CLI, ...args])
    await child.said('serving http')
    const [, url = ''] = /serving (http\S+)/.exec(child.stderr) ?? []
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'nothing', params: { ü: 1 } })
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
    })
    const text = await response.text()
    const used = revisions.map(({ id }) => id)
    for (const revision of used) {
      const client = await connect(http(url), { revision })
      await client.callTool('add', { a: 1, b: 2 }, { onProgress() {} })
      await client.close()
    }
    child.give('SIGTERM')
    await child.closed()
    expect(child.code).toBe(0)
    expect(recorded('in', 1).toString()).toBe(body)
    expect(recorded('out', 1).toString()).toBe(text)
    const head = recordsOf().find(
      (record) => record.type === 'event' && record.event === 'response',
    )
    expect(head).toMatchObject({ exchange: 1, status: response.status })
    const names = (head as unknown as { headers: [string, string][] }).headers.map(([name]) =>
      name.toLowerCase(),
    )
    for (const [name] of response.headers) expect(names).toContain(name)
    const rows = await rowsOf()
    expect(
      rows
        .filter(({ kind, target }) => kind === 'response' && target === 'add')
        .map(({ revision, status }) => [revision, status]),
    ).toEqual(used.map((revision) => [revision, 'ok']))
    expect(
      rows.filter(({ exchange = 0 }) => exchange > 1).flatMap(({ findings }) => findings),
    ).toEqual([])
    expect(recordsOf().at(-1)).toMatchObject({ event: 'exit' })
  })

  it.runIf(process.platform === 'linux')(
    'serves without a capture that cannot be written',
    async () => {
      const child = new Child(process.execPath, [CLI, 'serve', '--capture', '/dev/full'])
      child.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
      expect(await child.line(0)).toContain('"id":1')
      await child.said('cannot write the capture')
      child.send('{"jsonrpc":"2.0","id":2,"method":"ping"}')
      expect(await child.line(1)).toContain('"id":2')
      child.end()
      await child.closed()
      expect(child.code).toBe(0)
    },
  )
})
