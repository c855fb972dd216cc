import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { InitializedSession, POST, type Sending, open, send, statelessRequest } from './caller.js'

/* A process with a heap of 100 MB must survive whoever wants it to keep more. */

const MEGABYTE = 1_000_000
/** What JSON.parse makes of this takes twenty times as much. */
const OBJECTS = `[${'{},'.repeat(300_000)}{}]`
const LONG = 'x'.repeat(MEGABYTE)

interface State {
  heap: number
  sessions: number
  open: number
}

let child: ChildProcess
let url: string
beforeEach(async () => {
  const script = fileURLToPath(new URL('memory-server.mjs', import.meta.url))
  child = fork(script, {
    execArgv: ['--expose-gc', '--max-old-space-size=100'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const [{ url: listening }] = (await once(child, 'message')) as [{ url: string }]
  url = listening
})
afterEach(async () => {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
})

async function state(): Promise<State> {
  child.send('state')
  const [found] = (await once(child, 'message')) as [State]
  return found
}

/** The heap after something has been done again and again, and what each time was answered. */
async function grown(
  times: number,
  attack: (i: number) => Promise<{ status: number }>,
): Promise<State & { statuses: number[] }> {
  const before = await state()
  const statuses: number[] = []
  for (let i = 0; i < times; i++) statuses.push((await attack(i)).status)
  const after = await state()
  return { ...after, heap: after.heap - before.heap, statuses: [...new Set(statuses)] }
}

const initialize = (params: string): Sending => ({
  headers: POST,
  body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",${params}}}`,
})
/** A request that describes itself, with something else in its parameters. */
function withJunk(method: string, params: object, junk: string): Sending {
  const { headers, body } = statelessRequest(method, { ...params, junk: 'here' })
  return { headers, body: String(body).replace('"here"', junk) }
}

describe('the memory of a server', () => {
  it('does not grow with the initialize params', async () => {
    const capabilities = `"capabilities":{"experimental":{"a":${OBJECTS}}},"clientInfo":{"name":"x","version":"1"}`
    expect(await grown(6, () => send(url, initialize(capabilities)))).toMatchObject({
      statuses: [200],
      sessions: 6,
    })
    const icons = `"capabilities":{},"clientInfo":{"name":"x","version":"1","icons":[{"src":"data:${LONG}"}]}`
    const { heap } = await grown(30, () => send(url, initialize(icons)))
    expect(heap).toBeLessThan(5 * MEGABYTE)
  })

  it('is bounded for a body in tiny chunks', async () => {
    const before = await state()
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    // If the server has ended, the next request says so.
    socket.on('error', () => {})
    socket.write(
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    for (let i = 0; i < 100 && !socket.destroyed; i++)
      if (!socket.write('1\r\nx\r\n'.repeat(10_000)))
        await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
    expect((await send(url, statelessRequest('resources/list'))).status).toBe(200)
    expect((await state()).heap - before.heap).toBeLessThan(5 * MEGABYTE)
    socket.destroy()
  })

  it('does not grow with subscriptions beyond their limit', async () => {
    const client = await InitializedSession.open(url, '2025-11-25')
    const { heap } = await grown(30, (i) =>
      client.request('resources/subscribe', { uri: `x://${i}/${LONG}` }),
    )
    expect(heap).toBeLessThan(5 * MEGABYTE)
  })

  it('does not retain the rest of a batch with a subscription', async () => {
    const notifications = { toolsListChanged: true }
    const streams: Awaited<ReturnType<typeof open>>[] = []
    const { heap, open: count } = await grown(6, async () => {
      const stream = await open(url, withJunk('subscriptions/listen', { notifications }, OBJECTS))
      streams.push(stream)
      return stream
    })
    for (const stream of streams) stream.disconnect()
    expect(count).toBe(6)
    expect(heap).toBeLessThan(5 * MEGABYTE)
  })

  it('is bounded for requests in progress, also of batches', async () => {
    const before = await state()
    const client = await InitializedSession.open(url, '2025-03-26')
    const batch = (i: number) =>
      `[{"jsonrpc":"2.0","id":${i},"method":"tools/call","params":{"name":"slow","arguments":{}}},{"jsonrpc":"2.0","method":"x","params":{"a":"${LONG}"}}]`
    for (let i = 0; i < 40; i++) void client.post(batch(i)).catch(() => {})
    await expect.poll(async () => (await state()).open, { timeout: 60_000 }).toBe(40)
    expect((await state()).heap - before.heap).toBeLessThan(10 * MEGABYTE)
    for (let i = 0; i < 10; i++)
      void send(url, withJunk('tools/call', { name: 'slow', arguments: {} }, OBJECTS)).catch(
        () => {},
      )
    // Of those, one or two fit; the others are refused. What is sent before one of them is complete would be accepted.
    await expect.poll(async () => (await state()).open, { timeout: 60_000 }).toBeGreaterThan(40)
    const refused = statelessRequest('tools/call', { name: 'slow', arguments: {} })
    expect((await send(url, refused)).status).toBe(503)
    expect((await state()).sessions).toBe(1)
  })
})
