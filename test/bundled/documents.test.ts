import { expect, it } from 'vitest'
import { grammarServer } from '../../src/bundled/grammar.js'
import { createServer, tool } from '../../src/index.js'
import { CCMCP, Child } from '../stdio/child.js'
import { call, drive, initialize } from '../drive.js'

/* Further requirements of the documents. */

it('serves a request before notifications/initialized with a warning', async () => {
  const [open = ''] = initialize('2024-11-05')
  const { output, log } = await drive(
    grammarServer(),
    `${open}\n${call('conjugate', { verb: 'eat', tense: 'past_simple', person: '3sg' }, 1)}\n`,
  )
  expect(output).toContain('"text":"ate"')
  expect(JSON.parse(log)).toMatchObject({
    level: 'warning',
    message: 'tools/call was received before notifications/initialized; it is served anyway',
    requestId: 1,
  })
})

it('rejects a malformed tool schema when the server is created', () => {
  const malformed = tool({
    name: 'bad',
    input: { type: 'object', properties: { verb: { type: 'strng' } } } as never,
    run: () => '',
  })
  expect(() => createServer({ name: 's', version: '1', tools: [malformed] })).toThrow(
    /Tool "bad": its input schema/,
  )
})

it('responds to the round trip of document 001', async () => {
  const child = new Child(CCMCP, ['serve', 'grammar'])
  child.end(
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"0.1"}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"conjugate","arguments":{"verb":"eat","tense":"past simple","person":"3rd singular"}}}',
  )
  await child.closed()
  expect(child.lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      id: 0,
      result: {
        protocolVersion: '2024-11-05',
        serverInfo: { name: 'minimcp-grammar', version: '0.1.0' },
      },
    },
    {
      id: 1,
      result: {
        tools: [
          { name: 'conjugate', inputSchema: { required: ['verb', 'tense', 'person'] } },
          {},
          {},
          {},
        ],
      },
    },
    { id: 2, result: { content: [{ type: 'text', text: 'ate' }], isError: false } },
  ])
  expect(child.code).toBe(0)
})
