import { describe, expect, it } from 'vitest'
import {
  Child,
  GREETING,
  HANDSHAKE,
  TOOLS,
  call,
  ping,
  pong,
  serving,
  servingIsolated,
  stopped,
  text,
} from './child.js'
import { proves } from '../requirements/proves.js'

describe('the end of stdin', () => {
  it('lets every request get its response, then exits with 0', async () => {
    proves('stdio.shutdown')
    const server = new Child(process.execPath, [TOOLS])
    server.end(
      ...HANDSHAKE,
      call(1, 'echo', { text: 'one' }),
      ping(2),
      call(3, 'nap', { ms: 20 }),
      ping(4),
    )
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'one'), pong(2), pong(4), text(3, 'slept')])
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('serves an unterminated last line', async () => {
    const server = new Child(process.execPath, [TOOLS])
    server.write(`${ping(1)}\n${ping(2)}`)
    server.end()
    await server.closed()
    expect(server.stdout.toString()).toBe(`${pong(1)}\n${pong(2)}\n`)
    expect(server.code).toBe(0)
  })

  it('sends an error for a last line that is truncated', async () => {
    const server = new Child(process.execPath, [TOOLS])
    server.write(ping(1).slice(0, -1))
    server.end()
    await server.closed()
    expect(server.lines).toEqual([
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: unexpected end at position 39","data":{"position":39}}}',
    ])
    expect(server.code).toBe(0)
  })

  it('exits with 0 and no output if there was no request', async () => {
    const server = new Child(process.execPath, [TOOLS])
    server.end()
    await server.closed()
    expect(server.stdout.toString()).toBe('')
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('waits for a call of 300 ms in progress', async () => {
    const server = await serving()
    server.end(call(1, 'nap', { ms: 300 }))
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'slept')])
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('ends a call with an error after 5 s and exits with 0', async () => {
    const server = await serving()
    const began = Date.now()
    server.end(call(1, 'never'), call(2, 'nap', { ms: 50 }))
    expect(await server.line(1)).toBe(text(2, 'slept'))
    await server.closed()
    expect(Date.now() - began).toBeGreaterThan(4900)
    expect(server.lines.slice(2)).toEqual([stopped(1)])
    expect(server.stderr).toBe('begun 1\n')
    expect(server.code).toBe(0)
  })

  it('exits despite a timer, a listening socket and a file watcher of user code', async () => {
    proves('stdio.shutdown')
    const server = await serving({ env: { HANDLES: '1' } })
    server.end(ping(1))
    await server.closed()
    expect(server.lines).toEqual([GREETING, pong(1)])
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('exits despite them on separate file descriptors too', async () => {
    const server = await servingIsolated({ env: { HANDLES: '1' } })
    server.end(ping(1))
    await server.closed()
    expect(server.lines).toEqual([GREETING, pong(1)])
    expect(server.code).toBe(0)
  })

  it('with `exit: false`, resolves and leaves the process and its stdout to user code', async () => {
    const server = await serving({ env: { OPTIONS: '{"exit":false}', AFTER: '1' } })
    server.end(ping(1))
    await server.closed()
    expect(server.lines).toEqual([GREETING, pong(1), 'served'])
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })
})
