import { describe, expect, it } from 'vitest'
import {
  CCMCP,
  Child,
  GREETING,
  PARENT,
  HANDSHAKE,
  TOOLS,
  call,
  heldTimers,
  ping,
  pong,
  serving,
  servingIsolated,
  stopped,
  text,
} from './child.js'

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  it('lets the call in progress finish, then exits with 0', async () => {
    const server = await serving()
    server.send(call(1, 'wait', { ms: 300 }))
    await server.said('begun 1')
    server.give(signal)
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'waited')])
    expect(server.stderr).toBe('begun 1\n')
    expect(server.code).toBe(0)
  })

  it('ends an idle server immediately with 0', async () => {
    const server = await serving()
    server.give(signal)
    await server.closed()
    expect(server.lines).toEqual([GREETING])
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('ends a call with an error after 1 s and exits with 0', async () => {
    // Without the 5 s after the end of input.
    const server = await serving({ env: heldTimers(4000) })
    server.send(call(1, 'never'))
    await server.said('begun 1')
    const began = Date.now()
    server.give(signal)
    await server.closed()
    const took = Date.now() - began
    expect(server.lines).toEqual([GREETING, stopped(1)])
    expect(server.code).toBe(0)
    expect(took).toBeGreaterThan(900)
  })

  it('ends calls in progress immediately with an error when sent twice, and exits with 0', async () => {
    // Without the 1 s that one signal would give it.
    const server = await serving({ env: { AGAIN: '1', ...heldTimers(900) } })
    server.send(call(1, 'never'))
    await server.said('begun 1')
    server.give(signal)
    await server.closed()
    expect(server.lines).toEqual([GREETING, stopped(1)])
    expect(server.code).toBe(0)
    expect(server.signal).toBe(null)
  })

  it('lets no new request be accepted', async () => {
    const server = await serving({ env: { SIGNALS: '1' } })
    server.send(call(1, 'never'))
    await server.said('begun 1')
    server.give(signal)
    await server.said(`got ${signal}`)
    server.send(ping(2), call(3, 'wait', { ms: 0 }))
    await server.closed()
    expect(server.lines).toEqual([GREETING, stopped(1)])
    expect(server.stderr).toBe(`begun 1\ngot ${signal}\n`)
    expect(server.code).toBe(0)
  })

  it('shortens the wait after the end of stdin', async () => {
    // Without the 5 s after the end of stdin.
    const server = await serving({ env: { SIGNALS: '1', ...heldTimers(4500) } })
    server.end(call(1, 'never'))
    await server.said('got end')
    server.give(signal)
    await server.closed()
    expect(server.lines).toEqual([GREETING, stopped(1)])
    expect(server.code).toBe(0)
  })

  it('ends a server on separate file descriptors in the same way', async () => {
    const server = await servingIsolated()
    server.send(call(1, 'wait', { ms: 200 }))
    await server.said('begun 1')
    server.give(signal)
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'waited')])
    expect(server.code).toBe(0)
  })
})

describe('with `exit: false`', () => {
  it('a signal leaves no handle that keeps the process alive', async () => {
    const server = await serving({ env: { OPTIONS: '{"exit":false}', EXIT: '1' } })
    server.give('SIGTERM')
    await server.closed()
    expect(server.stderr).toBe('exit 0\n')
  })

  it('a signal leaves no handle on separate file descriptors', async () => {
    // A timer that is left behind would keep it running.
    const env = { OPTIONS: '{"exit":false}', EXIT: '1', ...heldTimers(1000) }
    const server = await servingIsolated({ env })
    server.give('SIGTERM')
    await server.closed()
    expect(server.stderr).toBe('exit 0\n')
    expect(server.code).toBe(0)
  })
})

describe('a client that has closed its end of stdout', () => {
  it('ends the server with 0 and no output', async () => {
    const server = await serving()
    await server.closeOutput()
    server.send(ping(1))
    await server.closed()
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('ends it also when a call in progress finishes', async () => {
    const server = await serving({ env: heldTimers(1000) })
    server.send(call(1, 'wait', { ms: 1000 }), call(2, 'never'))
    await server.said('begun 2')
    await server.closeOutput()
    server.give('SIGUSR2') // the first call finishes
    await server.closed()
    expect(server.stderr).toBe('begun 1\nbegun 2\n')
    expect(server.code).toBe(0)
  })

  it('ends it on a shell pipe', async () => {
    const child = new Child('sh', [
      '-c',
      '{ node "$0"; echo "code $?" >&2; } | { read -r line; echo "$line"; exec <&-; echo closed >&2; }',
      TOOLS,
    ])
    child.send(ping(1))
    expect(await child.line(0)).toBe(pong(1))
    await child.said('closed')
    child.send(ping(2))
    await child.closed()
    expect(child.stderr).toBe('closed\ncode 0\n')
    expect(child.lines).toEqual([pong(1)])
  })

  it('ends it on separate file descriptors', async () => {
    const server = await servingIsolated()
    await server.closeOutput()
    server.send(ping(1))
    await server.closed()
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('ends ./ccmcp', async () => {
    const server = new Child(CCMCP, ['--log-level', 'warning'])
    server.send(ping(1))
    await server.line(0)
    await server.closeOutput()
    server.send(ping(2))
    await server.closed()
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })
})

describe.runIf(process.platform === 'linux')('an output that cannot be written', () => {
  it('rejects serveStdio on separate file descriptors', async () => {
    const server = new Child(
      'sh',
      ['-c', 'CCMCP_WIRE=3,4 exec node "$0" 3<&0 4>/dev/full </dev/null 1>&2', TOOLS],
      { env: { CATCH: '1' } },
    )
    server.send(ping(1))
    await server.closed()
    expect(server.stderr).toBe('rejected with ENOSPC\n')
    expect(server.code).toBe(3)
  })

  it('rejects serveStdio on stdout', async () => {
    const server = new Child('sh', ['-c', 'exec node "$0" >/dev/full', TOOLS], {
      env: { CATCH: '1' },
    })
    server.send(ping(1))
    await server.closed()
    expect(server.stderr).toBe('rejected with ENOSPC\n')
    expect(server.code).toBe(3)
  })
})

describe('a parent process that is killed', () => {
  it('makes the server exit, though its stdin is still open', async () => {
    const parent = new Child(process.execPath, [PARENT], { env: { EXIT: '1' }, group: true })
    parent.send(...HANDSHAKE, call(1, 'never'))
    await parent.said('begun 1')
    parent.give('SIGKILL')
    await parent.exited()
    expect(parent.signal).toBe('SIGKILL')
    await parent.closed() // the server was the last to have stdout and stderr
    expect(parent.lines).toEqual([GREETING, stopped(1)])
    expect(parent.stderr).toBe('begun 1\nexit 0\n')
  })
})

describe('stderr closed by the host', () => {
  it('does not end the server', async () => {
    const server = new Child('sh', ['-c', `exec node "$0" 2>&-`, TOOLS])
    server.send('garbage', '{"jsonrpc":"2.0","id":1,"method":"ping"}')
    expect(await server.line(1)).toBe('{"jsonrpc":"2.0","id":1,"result":{}}')
    server.end()
    await server.closed()
    expect(server.code).toBe(0)
  })
})
