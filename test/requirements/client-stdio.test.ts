import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type Client, connect, stdio } from '../../src/client.js'
import { proves } from './proves.js'
import { ids } from './wire.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio */

const script = fileURLToPath(new URL('recording-server.mjs', import.meta.url))
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function start(revision: string) {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-requirements-'))
  const file = join(folder, 'end')
  let log = ''
  const target = stdio(process.execPath, [script, file, revision], {
    stderr: (text) => (log += text),
    exitTimeout: 60_000,
  })
  const client = await connect(target, { revision })
  closing.push(async () => {
    await client.close()
    rmSync(folder, { recursive: true })
  })
  return { client, log: () => log, ended: () => readFileSync(file, 'utf8') }
}

async function textOf(client: Client, tool: string): Promise<string> {
  const [first] = (await client.callTool(tool)).content
  return first?.type === 'text' ? first.text : ''
}

const messagesIn = (input: string) =>
  input
    .trimEnd()
    .split('\n')
    .map(
      (line) =>
        JSON.parse(line) as {
          jsonrpc: string
          id?: unknown
          method?: string
          params?: { requestId?: unknown }
        },
    )

describe.each(ids)('a client over stdio in %s', (revision) => {
  it('starts the server once, writes only messages, and takes its log for no error', async () => {
    proves('transports.stdio-clients', 'stdio.stdin', 'stdio.stderr', 'stateless.process')
    const { client, log } = await start(revision)
    await client.callTool('multi\nline', { text: 'one\ntwo\r\n\u2028' })
    const pids = await Promise.all([textOf(client, 'pid'), textOf(client, 'pid')])
    expect(new Set(pids).size).toBe(1)
    const input = await textOf(client, 'input')
    for (const message of messagesIn(input))
      expect(message).toMatchObject({ jsonrpc: '2.0', method: expect.any(String) })
    await expect.poll(log).toContain('ERROR')
  })

  it('cancels a request by a notification', async () => {
    proves('cancellation.stdio', 'stdio.cancel-clients')
    const { client } = await start(revision)
    const controller = new AbortController()
    const pending = client.callTool('wait', {}, { signal: controller.signal })
    await textOf(client, 'pid')
    controller.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    const messages = messagesIn(await textOf(client, 'input'))
    const waiting = messages.find((each) => JSON.stringify(each).includes('"wait"'))
    const cancelled = messages.filter(({ method }) => method === 'notifications/cancelled')
    expect(cancelled.map(({ params }) => params?.requestId)).toEqual([waiting?.id])
  })

  it('shuts the server down by closing its input', async () => {
    proves('lifecycle.shutdown', 'stdio.shutdown-clients')
    const { client, ended } = await start(revision)
    await client.close()
    expect(ended()).toBe('end of input')
  })
})
