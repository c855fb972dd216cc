import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createServer, tool } from '../../src/index.js'
import { call, drive, initialize } from '../drive.js'
import { proves } from './proves.js'
import { handshakes } from './wire.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio */

const server = createServer({
  name: 'stdio',
  version: '1',
  tools: [
    tool({
      name: 'echo',
      input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      run({ text }, { log }) {
        log.warning(text)
        return text
      },
    }),
  ],
})

describe.each(handshakes)('stdio in %s', (revision) => {
  it('writes one message per line, also when a text contains newlines', async () => {
    proves('stdio.newlines', 'stdio.stdout')
    const text = 'one\ntwo\r\nthree\r\u2028\u2029\u0085\u000b\u000c\0'
    const { output } = await drive(
      server,
      [...initialize(revision), call('echo', { text }), call('nope\n', {}, 2)].join('\n'),
    )
    expect(output.endsWith('\n')).toBe(true)
    const messages = output
      .slice(0, -1)
      .split('\n')
      .map((line) => JSON.parse(line) as { jsonrpc: string; id?: unknown; method?: string })
    expect(messages.map(({ jsonrpc, id, method }) => [jsonrpc, id ?? method])).toEqual([
      ['2.0', 'init'],
      ['2.0', 'notifications/message'],
      ['2.0', 1],
      ['2.0', 2],
    ])
    expect(output).not.toContain('\r')
  })

  it('is UTF-8 in both directions; invalid bytes are a parse error and the next message is served', async () => {
    proves('transports.utf8')
    const text = 'Grüße, 世界 👋'
    const chunks: Buffer[] = []
    const sink = new Writable({
      write(chunk: Buffer, _, done) {
        chunks.push(Buffer.from(chunk))
        done()
      },
    })
    const latin1 = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"caf'),
      Buffer.from([0xe9]),
      Buffer.from('"}\n'),
    ])
    const lines = Buffer.concat([
      Buffer.from(`${initialize(revision).join('\n')}\n`),
      latin1,
      Buffer.from(call('echo', { text }, 2)),
    ])
    await drive(server, lines, { output: sink })
    const output = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
    const [, refusal, , answer] = output
      .split('\n')
      .map((line) => (line === '' ? {} : JSON.parse(line))) as Record<string, unknown>[]
    expect(refusal).toMatchObject({ error: { code: -32700 } })
    expect(answer).toMatchObject({ id: 2, result: { content: [{ text }] } })
  })
})
