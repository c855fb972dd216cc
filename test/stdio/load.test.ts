import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  CCMCP,
  Child,
  GREETING,
  HANDSHAKE,
  TOOLS,
  call,
  heldTimers,
  ping,
  pong,
  serving,
  servingIsolated,
  text,
} from './child.js'

const MB = 1024 * 1024
const linux = process.platform === 'linux'

/** Bytes from /proc/<pid>/status, such as VmRSS (now) and VmHWM (the peak). */
function memory(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  )
  return Number(match?.[1]) * 1024
}

/** What changes while a process works: its state, its CPU time, the bytes read and written. */
function activity(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  const [state, user, system] = [fields[0], fields[11], fields[12]]
  return `${state} ${user} ${system} ${/rchar: \d+/.exec(io)?.[0]} ${/wchar: \d+/.exec(io)?.[0]}`
}

/** Waits until a server has worked since `idle` was taken and is idle again. */
async function stalled(server: Child, idle: string): Promise<void> {
  const deadline = Date.now() + 60_000
  let last = idle
  let same = 0
  while (same < 8) {
    if (Date.now() > deadline) throw new Error(`The server does not come to rest: ${last}`)
    await new Promise((resolve) => setTimeout(resolve, 40))
    if (server.code !== null || server.signal !== null)
      throw new Error(`The server exited with ${server.code ?? server.signal}: ${server.stderr}`)
    const now = activity(server.pid)
    same = now === last && now !== idle && now.startsWith('S ') ? same + 1 : 0
    last = now
  }
}

/** Counts lines and bytes without storing them. */
class Meter {
  lines = 0
  bytes = 0
  ids = new Set<string>()
  #head = ''
  #inHead = true

  readonly add = (chunk: Buffer): void => {
    this.bytes += chunk.length
    for (let at = 0; at < chunk.length;) {
      const newline = chunk.indexOf(10, at)
      const end = newline === -1 ? chunk.length : newline
      if (this.#inHead) this.#head += chunk.toString('latin1', at, Math.min(end, at + 60))
      this.#inHead = newline === -1 ? this.#head.length < 60 : true
      if (newline !== -1) {
        this.lines++
        this.ids.add(/"id":(-?\d+)/.exec(this.#head)?.[1] ?? this.#head)
        this.#head = ''
      }
      at = end + 1
    }
  }
}

describe.runIf(linux)('a client that does not read', () => {
  const CALLS = 3000

  it.each([
    ['big', 'stdout', serving],
    ['big', 'an isolated wire', servingIsolated],
    ['bigAsync', 'stdout', serving],
    ['bigLate', 'stdout', serving],
  ] as const)(
    'is not answered into memory (3000 calls of %s with 100 KB each, on %s)',
    async (name, _, start) => {
      // A small heap: on a busy machine V8 would let hundreds of megabytes of garbage pile up.
      const env = { NODE_OPTIONS: '--max-old-space-size=128 --max-semi-space-size=8' }
      const server = await start({ reading: false, env })
      const meter = new Meter()
      const idle = activity(server.pid)
      const before = memory(server.pid, 'VmRSS')
      server.send(...Array.from({ length: CALLS }, (_unused, index) => call(index + 1, name)))
      await stalled(server, idle)
      // 256 asynchronous calls may have responded before the first had to wait.
      expect(memory(server.pid, 'VmRSS') - before).toBeLessThan(
        (name === 'bigLate' ? 180 : 100) * MB,
      )
      server.read(meter.add)
      await server.until(() => meter.lines >= CALLS + 2, 'all responses')
      expect(meter.lines).toBe(CALLS + 2)
      expect(meter.ids).toEqual(
        new Set(Array.from({ length: CALLS + 2 }, (_unused, index) => String(index - 1))),
      )
      expect(meter.bytes).toBeGreaterThan(CALLS * 100_000)
      expect(memory(server.pid, 'VmHWM') - before).toBeLessThan(200 * MB)
      server.end()
      await server.closed()
      expect(server.code).toBe(0)
      expect(server.stderr).toBe('begun -1\n')
    },
  )

  it('gets all responses when it reads after closing stdin', async () => {
    const server = await serving({ reading: false })
    const meter = new Meter()
    const idle = activity(server.pid)
    server.end(...Array.from({ length: 200 }, (_, index) => call(index + 1, 'big')))
    await stalled(server, idle)
    server.read(meter.add)
    await server.closed()
    expect(meter.lines).toBe(202)
    expect(server.code).toBe(0)
  })

  it('gets every byte, however long after closing stdin it reads', async () => {
    const server = await serving({ reading: false })
    const meter = new Meter()
    // More than run at the same time: the others start when the responses of the first are read.
    server.end(...Array.from({ length: 600 }, (_, index) => call(index + 1, 'bigLate')))
    // Longer than handlers may take: what was written must still be delivered completely.
    await new Promise((resolve) => setTimeout(resolve, 6500))
    server.read(meter.add)
    await server.closed()
    expect([meter.lines, server.code]).toEqual([602, 0])
    expect(meter.bytes).toBeGreaterThan(600 * 100_000)
  })

  it('gets every byte that was written before two signals', async () => {
    // Without the 2 s after which the output would be abandoned.
    const env = { AGAIN: '1', SIGNALS: '1', ...heldTimers(2000) }
    const server = await serving({ reading: false, env })
    const meter = new Meter()
    const idle = activity(server.pid)
    server.send(call(1, 'echo', { text: 'x'.repeat(4 * MB) }))
    await stalled(server, idle)
    server.give('SIGTERM')
    await server.said('got SIGTERM\ngot SIGTERM')
    server.read(meter.add)
    await server.closed()
    expect([meter.lines, meter.bytes > 4 * MB, server.code]).toEqual([3, true, 0])
  })

  it('does not prevent the server from exiting on a signal', async () => {
    const server = await serving({ reading: false })
    const idle = activity(server.pid)
    server.send(...Array.from({ length: 200 }, (_, index) => call(index + 1, 'big')))
    await stalled(server, idle)
    server.give('SIGTERM')
    await server.exited()
    expect(server.code).toBe(0)
    expect(server.signal).toBe(null)
  })
})

describe('a host that does not read stderr', () => {
  it('is served, and the buffered log is bounded', async () => {
    const LINES = 40_000
    const server = spawn(process.execPath, [TOOLS], { stdio: 'pipe' })
    try {
      const meter = new Meter()
      const served = new Promise<void>((resolve) => {
        server.stdout.on('data', (chunk: Buffer) => {
          meter.add(chunk)
          if (meter.lines > LINES) resolve()
        })
      })
      server.stdin.write(`${'{bad\n'.repeat(LINES)}${ping(1)}\n`)
      await served
      let logged = 0
      let found = false
      await new Promise<void>((resolve) => {
        server.stderr.on('data', (chunk: Buffer) => {
          if (found) return // the server may have been killed
          logged += chunk.length
          found = chunk.includes('a batch must not be empty')
          if (found) resolve()
          else server.stdin.write('[]\n') // its line comes after those that are buffered
        })
      })
      expect(logged).toBeGreaterThan(MB)
      expect(logged).toBeLessThan(3 * MB) // all lines would take more than 4 MB
    } finally {
      server.kill('SIGKILL')
    }
  })
})

describe('a message over the limit', () => {
  const tooLong = (id: string, size: number, limit: number) =>
    `{"jsonrpc":"2.0","id":${id},"error":{"code":-32600,"message":"Invalid Request: the message has ${size} bytes; the limit is ${limit}","data":{"size":${size},"limit":${limit}}}}`

  it('gets an error with its id, and the next one is served', async () => {
    const server = new Child(process.execPath, [TOOLS], { env: { OPTIONS: '{"maxMessage":200}' } })
    const long = call(7, 'echo', { text: 'x'.repeat(200) })
    const limit = `${ping(2)}${' '.repeat(200 - ping(2).length)}`
    server.end(ping(1), long, limit, `${limit} `, ping(3))
    await server.closed()
    expect(server.lines).toEqual([
      pong(1),
      tooLong('7', long.length, 200),
      pong(2),
      tooLong('2', 201, 200),
      pong(3),
    ])
    expect(server.code).toBe(0)
  })

  it('gets an error from ./ccmcp --max-message', async () => {
    const server = new Child(CCMCP, ['--max-message', '100'])
    server.end('x'.repeat(101), ping(1))
    await server.closed()
    expect(server.lines).toEqual([tooLong('null', 101, 100), pong(1)])
    expect(server.code).toBe(0)
  })

  it.runIf(linux)('of 200 MB is skipped in constant memory', async () => {
    const server = new Child(process.execPath, [TOOLS])
    server.send(ping(1))
    expect(await server.line(0)).toBe(pong(1))
    const before = memory(server.pid, 'VmHWM')
    const piece = Buffer.alloc(MB, 'x')
    for (let sent = 0; sent < 200; sent++) await server.push(piece)
    server.send('', ping(2))
    expect(await server.line(2)).toBe(pong(2))
    expect(memory(server.pid, 'VmHWM') - before).toBeLessThan(100 * MB)
    expect(server.lines).toEqual([pong(1), tooLong('null', 200 * MB, 32 * MB), pong(2)])
  })
})

describe('under load', () => {
  it('10,000 requests in one write get their responses in order', async () => {
    const server = new Child(process.execPath, [TOOLS])
    const ids = Array.from({ length: 10_000 }, (_, index) => index)
    server.end(...ids.map(ping))
    await server.closed()
    expect(server.stdout.toString()).toBe(ids.map((id) => `${pong(id)}\n`).join(''))
    expect(server.code).toBe(0)
  })

  it('a session that sends one byte per write is served', async () => {
    const server = new Child(process.execPath, [TOOLS])
    for (const byte of Buffer.from(
      [...HANDSHAKE, call(1, 'echo', { text: 'Grüße, 世界 🌍' }), ''].join('\n'),
    ))
      await server.push(Uint8Array.of(byte))
    expect(await server.line(1)).toBe(text(1, 'Grüße, 世界 🌍'))
    expect(server.lines).toHaveLength(2)
    expect(server.lines[0]).toBe(GREETING)
  })

  it('a message of 16 MB is echoed', async () => {
    const server = await serving()
    const long = 'Grüße '.repeat(2 * MB)
    expect(Buffer.byteLength(long)).toBe(16 * MB)
    server.end(call(1, 'echo', { text: long }), ping(2))
    await server.closed()
    expect(server.lines).toHaveLength(3)
    expect(server.lines[1] === text(1, long)).toBe(true) // a difference would be too long to show
    expect(server.lines[2]).toBe(pong(2))
  })

  it('a slow call does not block the next one', async () => {
    const server = await serving()
    server.send(call(1, 'hold'), ping(2), call(3, 'nap', { ms: 0 }))
    await server.line(2)
    server.send(call(4, 'release'))
    await server.line(4)
    expect(server.lines.slice(0, 3)).toEqual([GREETING, pong(2), text(3, 'slept')])
    expect(server.lines.slice(3).toSorted()).toEqual([text(1, 'held'), text(4, 'released')])
  })

  it('5,000 calls of 200 ms run concurrently', async () => {
    const server = await serving()
    const ids = Array.from({ length: 5000 }, (_, index) => index + 1)
    // One after the other, they would take 1000 s: longer than the timeout of the test.
    server.send(...ids.map((id) => call(id, 'nap', { ms: 200 })))
    await server.line(ids.length)
    server.end()
    await server.closed()
    expect(server.lines.slice(1).toSorted()).toEqual(ids.map((id) => text(id, 'slept')).toSorted())
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })
})
