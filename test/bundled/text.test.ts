import { describe, expect, it } from 'vitest'
import { textServer } from '../../src/bundled/text.js'
import { CCMCP, Child, call, text } from '../stdio/child.js'
import { answers, call as called, initialize } from '../drive.js'

const one = async (name: string, input: unknown) =>
  (await answers(textServer(), [...initialize('2024-11-05'), called(name, input)]))[1]
const said = (text: string) => ({
  jsonrpc: '2.0',
  id: 1,
  result: { content: [{ type: 'text', text }], isError: false },
})

describe('the text server', () => {
  it('echoes', async () =>
    expect(await one('echo', { text: 'Grüße\n世界' })).toEqual(said('Grüße\n世界')))
  it('counts words', async () => {
    expect(await one('word_count', { text: '  one two\n\tthree ' })).toEqual(said('3'))
    expect(await one('word_count', { text: ' ' })).toEqual(said('0'))
  })
  it('is demo-server 0.1.0', async () => {
    expect(await answers(textServer(), initialize('2024-11-05'))).toMatchObject([
      { result: { serverInfo: { name: 'demo-server', version: '0.1.0' } } },
    ])
  })
  it('rejects bad input before it reaches the handler, with -32602', async () => {
    expect(await one('echo', { text: 5 })).toMatchObject({
      error: { code: -32602, message: 'Invalid arguments for echo: text must be a string, not 5' },
    })
    expect(await one('echo', {})).toMatchObject({ error: { code: -32602 } })
    expect(await one('nope', {})).toMatchObject({
      error: { code: -32602, message: 'Unknown tool: nope' },
    })
  })
})

describe('ccmcp serve text', () => {
  const open =
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}'
  const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  const frame = (message: string) =>
    `Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`

  it('speaks Content-Length frames, counted in bytes', async () => {
    const child = new Child(CCMCP, ['serve', 'text'])
    child.write(
      [
        open,
        initialized,
        call(1, 'echo', { text: 'Grüße, 世界' }),
        call(2, 'word_count', { text: 'a b c' }),
      ]
        .map(frame)
        .join(''),
    )
    child.end()
    await child.closed()
    const [, ...frames] = child.stdout.toString().split(/Content-Length: (?=\d)/)
    expect(frames.slice(1)).toEqual(
      [text(1, 'Grüße, 世界'), text(2, '3')].map((message) =>
        frame(message).slice('Content-Length: '.length),
      ),
    )
    expect(child.code).toBe(0)
  })
  it('survives malformed input', async () => {
    const child = new Child(CCMCP, ['serve', 'text'])
    child.write(
      [open, '{bad', '[]', '{"jsonrpc":"2.0","id":7}', call(1, 'echo', { text: 'alive' })]
        .map(frame)
        .join(''),
    )
    child.end()
    await child.closed()
    expect(child.stdout.toString()).toContain('"code":-32700')
    expect(child.stdout.toString().endsWith(text(1, 'alive'))).toBe(true)
    expect(child.code).toBe(0)
  })
  it('logs structured lines with the request id to stderr', async () => {
    const child = new Child(CCMCP, ['serve', 'text'])
    child.end(open, initialized, '{"jsonrpc":"2.0","id":9,"jsonrpc":"1.0","method":"x"}')
    await child.closed()
    const lines = child.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toContainEqual(expect.objectContaining({ level: 'info', requestId: 0 }))
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warning', requestId: 9 }))
  })
  it('exits with 0 on SIGTERM', async () => {
    const child = new Child(CCMCP, ['serve', 'text'])
    child.send(open, initialized, call(1, 'echo', { text: 'ready' }))
    await child.line(1)
    child.give('SIGTERM')
    await child.closed()
    expect(child.code).toBe(0)
  })
})
