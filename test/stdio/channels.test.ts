import { existsSync, readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Channel, Receiver } from '../../src/jsonrpc/channel.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { ProcessChannel } from '../../src/transports/stdio-client.js'
import { StreamChannel } from '../../src/transports/streams.js'
import { createServer, tool } from '../../src/index.js'
import { connect, stdio } from '../../src/client.js'
import { serve } from '../../src/stdio.js'
import { HANDSHAKE, call, ping, pong, within } from './child.js'

/* What every channel must do (jsonrpc/channel.ts). A new transport gets a row in CHANNELS. */

/** A channel, and what its other side does. */
interface Opened {
  channel: Channel
  /** Sends frames, then ends. */
  sendAndEnd(...frames: string[]): void
  /** Resolves when the other side has ended and the channel knows it. */
  ended: Promise<unknown>
  /** Breaks the connection so that sending fails. */
  break?(): void
  /** The frames that the other side has received. `close` resolves only when it has all of them. */
  received(): string[]
}

const frames = (text: string) => text.split('\n').filter((line) => line !== '')

/** Sends the lines after "send " to the client, and exits at the end of its stdin; all others go to stderr. */
const SCRIPT = `
  let text = ''
  process.stdin.on('data', (chunk) => {
    const lines = (text += chunk).split('\\n')
    text = lines.pop()
    for (const line of lines) {
      if (line === '"end"') process.exit()
      if (line === '"exit"') process.exit(1)
      if (line.startsWith('"send ')) require('fs').writeSync(1, JSON.parse(line).slice(5) + '\\n')
      else require('fs').writeSync(2, line + '\\n')
    }
  })`

const CHANNELS: Record<string, () => Opened> = {
  memory() {
    const [channel, other] = memoryChannels()
    const received: string[] = []
    let end = () => {}
    const ended = new Promise<void>((resolve) => (end = resolve))
    other.receive({ ...nothing, frame: (frame) => received.push(frame) })
    return {
      channel,
      sendAndEnd(...sent) {
        for (const frame of sent) other.send(frame)
        void other.close()
        void other.close().then(() => setImmediate(end))
      },
      ended,
      received: () => received,
    }
  },
  'the streams of a client': () => {
    const input = new PassThrough()
    const output = new PassThrough()
    const streams = new StreamChannel({ input, output, framing: 'lines', keepReading: true })
    let text = ''
    output.on('data', (chunk: Buffer) => (text += chunk.toString()))
    return {
      channel: streams,
      sendAndEnd: (...sent) => void input.end(sent.map((frame) => `${frame}\n`).join('')),
      ended: streams.ended,
      break: () => void output.destroy(new Error('broken')),
      received: () => frames(text),
    }
  },
  process() {
    let text = ''
    const channel = new ProcessChannel(process.execPath, ['--eval', SCRIPT], {
      stderr: (chunk) => (text += chunk),
    })
    return {
      channel,
      break: () => channel.send('"exit"'),
      sendAndEnd(...sent) {
        for (const frame of sent) channel.send(JSON.stringify(`send ${frame}`))
        channel.send('"end"')
      },
      ended: channel.exited,
      received: () => frames(text),
    }
  },
}

const nothing: Receiver = { frame: () => {}, malformed: () => {}, closed: () => {} }

/** A receiver that notes what it is told. */
function noting() {
  const events: string[] = []
  let end: (error: Error | undefined) => void = () => {}
  const closed = new Promise<Error | undefined>((resolve) => (end = resolve))
  const receiver: Receiver = {
    frame: (frame) => events.push(frame),
    malformed: ({ message }) => events.push(message),
    closed(error) {
      events.push('closed')
      end(error)
    },
  }
  return { events, closed, receiver }
}

describe.each(Object.entries(CHANNELS))('a channel over %s', (_, open) => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  it('delivers what was sent before the end, then calls `closed`, once', async () => {
    const { channel, sendAndEnd, ended } = open()
    const { events, closed, receiver } = noting()
    channel.receive(receiver)
    sendAndEnd('[1]', '[2]', '[3]')
    await ended
    await closed
    await vi.advanceTimersByTimeAsync(10_000)
    await channel.close()
    expect(events).toEqual(['[1]', '[2]', '[3]', 'closed'])
  })

  it('delivers what arrived, and the end, before it was received', async () => {
    const { channel, sendAndEnd, ended } = open()
    sendAndEnd('[1]', '[2]')
    await new Promise(setImmediate)
    const { events, closed, receiver } = noting()
    channel.receive(receiver)
    await ended
    await closed
    await channel.close()
    expect(events).toEqual(['[1]', '[2]', 'closed'])
  })

  it('calls `closed` once, with an error, if the connection breaks', async ({ skip }) => {
    const { channel, break: breakConnection, sendAndEnd } = open()
    if (breakConnection === undefined) return skip('memory does not break')
    const { events, closed, receiver } = noting()
    channel.receive(receiver)
    breakConnection()
    channel.send('[1]')
    sendAndEnd()
    expect(await closed).toBeInstanceOf(Error)
    await vi.advanceTimersByTimeAsync(10_000)
    await channel.close()
    expect(events).toEqual(['closed'])
  })

  it('sends what was sent before `close`, and drops what is sent after it', async () => {
    const { channel, received } = open()
    const { events, receiver } = noting()
    channel.receive(receiver)
    channel.send('[1]')
    channel.send('[2]')
    const closing = channel.close()
    channel.send('[3]')
    await closing
    channel.send('[4]')
    await channel.close()
    await new Promise(setImmediate)
    expect(received()).toEqual(['[1]', '[2]'])
    expect(events.filter((event) => event === 'closed').length).toBeLessThanOrEqual(1)
  })
})

describe('streams', () => {
  it('that were paused are read', async () => {
    const input = new PassThrough().pause()
    const output = new PassThrough()
    const served = serve(createServer({ name: 'paused', version: '1' }), { input, output })
    input.end(`${ping(1)}\n`)
    await within(served, () => 'the end of serving')
    expect(frames(String(output.read()))).toEqual([pong(1)])
  })

  it('that fail in several ways are closed once', async () => {
    const output = new PassThrough({ highWaterMark: 1 })
    const channel = new StreamChannel({ input: new PassThrough(), output })
    const { events, closed, receiver } = noting()
    channel.receive(receiver)
    channel.send('[1]')
    await new Promise(setImmediate)
    channel.send('[2]')
    output.destroy(new Error('gone'))
    await closed
    await channel.close()
    await new Promise(setImmediate)
    expect(events).toEqual(['closed'])
  })

  it('that are not read delay the end of `close`, and lose nothing', async () => {
    const output = new PassThrough({ highWaterMark: 1 })
    const channel = new StreamChannel({ input: new PassThrough(), output, framing: 'lines' })
    channel.receive(nothing)
    const sent = Array.from({ length: 100 }, (_, i) => `[${i}]`)
    for (const frame of sent) channel.send(frame)
    let isClosed = false
    const closing = channel.close().then(() => (isClosed = true))
    await new Promise(setImmediate)
    expect(isClosed).toBe(false)
    let text = ''
    output.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await within(closing, () => 'the end of close')
    expect(frames(text)).toEqual(sent)
  })

  it('that are read again start the calls that were queued meanwhile', async () => {
    const finish = new Map<number, (text: string) => void>()
    const slow = tool({
      name: 'slow',
      run: (_, { id }) => new Promise<string>((resolve) => void finish.set(Number(id), resolve)),
    })
    const input = new PassThrough()
    const output = new PassThrough({ highWaterMark: 1 })
    const served = serve(createServer({ name: 'slow', version: '1', tools: [slow] }), {
      input,
      output,
      concurrency: 256,
    })
    output.resume()
    // 256 handlers run, two calls are queued.
    const calls = Array.from({ length: 258 }, (_, i) => call(i + 1, 'slow'))
    input.write([...HANDSHAKE, ...calls, ''].join('\n'))
    await vi.waitFor(() => expect(finish.size).toBe(256), 60_000)
    output.pause()
    finish.get(1)?.('x'.repeat(1_000_000))
    // This blocks the output, so that neither queued call starts.
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    finish.get(2)?.('small')
    await new Promise(setImmediate)
    const before = finish.size
    output.resume()
    await vi.waitFor(() => expect(finish.size).toBe(258), 60_000)
    expect(before).toBe(256)
    for (const each of finish.values()) each('done')
    input.end()
    await within(served, () => 'the end of serving')
  })
})

describe('a process', () => {
  it('that exited before it was received is read', async () => {
    const channel = new ProcessChannel(process.execPath, ['--eval', 'console.log("[1]")'])
    // In the turn in which its exit is noticed.
    while (!channel.diagnose().includes('It exited with code 0')) await new Promise(setImmediate)
    const { events, closed, receiver } = noting()
    channel.receive(receiver)
    await closed
    expect(events).toEqual(['[1]', 'closed'])
  })

  it('whose output was never received is closed', async () => {
    const script = 'console.log("x".repeat(1_000_000)); process.stdin.resume()'
    const channel = new ProcessChannel(process.execPath, ['--eval', script])
    await within(channel.close(), () => 'the end of close')
    expect(await channel.exited).toBe(0)
  })

  it('that does not read is ended by `close`', async () => {
    const channel = new ProcessChannel(
      process.execPath,
      ['--eval', 'console.log("[0]"); setInterval(() => {}, 1000)'],
      { exitTimeout: 1 },
    )
    const started = new Promise<void>((resolve) =>
      channel.receive({ ...nothing, frame: () => resolve() }),
    )
    await within(started, () => 'the first frame')
    channel.send(`["${'x'.repeat(2_000_000)}"]`)
    await within(channel.close(), () => 'the end of close')
  })

  it.runIf(process.platform === 'linux')(
    'that exits while this process is suspended is reported with its exit code',
    async () => {
      // Its stdout ends a little before its exit.
      const script =
        'console.log(`[${process.pid}]`); require("fs").closeSync(1); setTimeout(() => process.exit(7), 100)'
      const channel = new ProcessChannel(process.execPath, ['--eval', script])
      const { events, closed, receiver } = noting()
      const start = globalThis.setTimeout
      const sleep = (milliseconds: number) =>
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
      const hasExited = () => {
        const stat = `/proc/${events[0]?.slice(1, -1)}/stat`
        return !existsSync(stat) || readFileSync(stat, 'utf8').includes(') Z ')
      }
      // Suspended until it has exited, and the time to wait for that after the end of stdout is over.
      vi.spyOn(globalThis, 'setTimeout').mockImplementation(
        (run: () => void, milliseconds?: number) => {
          const timer = start(run, milliseconds)
          if (milliseconds !== 500 || events.length !== 1) return timer
          events.push('suspended')
          while (!hasExited()) sleep(10)
          sleep(500)
          return timer
        },
      )
      onTestFinished(() => void vi.restoreAllMocks())
      channel.receive(receiver)
      expect((await closed)?.message).toContain('It exited with code 7')
      expect(events).toContain('suspended')
    },
  )

  it('that does not read before its responses are read gets all requests', async () => {
    const script = new URL('../interop/server.mjs', import.meta.url).pathname
    await using client = await connect(stdio(process.execPath, [script]))
    // Ten megabytes in each direction: more than the pipes hold.
    const message = 'x'.repeat(20_000)
    const results = await within(
      Promise.all(Array.from({ length: 500 }, () => client.callTool('echo', { message }))),
      () => 'the results',
    )
    expect(results.filter(({ isError }) => isError)).toEqual([])
  })

  it('that floods the client with requests and reads nothing fills no memory', async () => {
    const input = new PassThrough()
    const output = new PassThrough({ highWaterMark: 1 })
    const channel = new StreamChannel({ input, output, framing: 'lines', keepReading: true })
    const response = `["${'x'.repeat(1_000_000)}"]`
    let delivered = 0
    channel.receive({
      ...nothing,
      frame() {
        delivered++
        channel.send(response, { kind: 'response', id: 1, result: {} })
      },
    })
    for (let i = 0; i < 100; i++) input.write('[]\n')
    await vi.waitFor(() => expect(input.isPaused()).toBe(true), 60_000)
    for (let i = 0; i < 100; i++) await new Promise(setImmediate)
    expect(delivered).toBeLessThan(20)
    output.resume()
    await vi.waitFor(() => expect(delivered).toBe(100), 60_000)
  })
})
