import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Call, createServer, form, tool } from '../../src/index.js'
import { serve } from '../../src/stdio.js'
import { HANDSHAKE } from './child.js'
import { serveInOneTurn } from '../clock.js'

serveInOneTurn()

/*
 * Requests in progress are limited in bytes. Each large one has 100 kB; five fit. Responses that the client does not read
 * are limited by starting no queued call.
 */

const LIMIT = 1_000_000
const TEXT = 'x'.repeat(100_000)
const large = (id: number, name = 'slow') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":{"text":"${TEXT}"}}}\n`
const turns = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate)
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A server, its running handlers and its output, which is read from the beginning or by `read`. */
async function started({ reading = true, result = 'done', concurrency = Infinity } = {}) {
  const running = new Map<string | number | bigint, () => void>()
  const run = (_: unknown, call: Call) =>
    new Promise<string>((resolve) => running.set(call.id, () => resolve(result)))
  const input = { type: 'object', properties: { text: { type: 'string' } } } as const
  const server = createServer({
    name: 'slow',
    version: '1',
    tools: [
      tool({ name: 'slow', input, run }),
      tool({
        name: 'ask',
        input,
        async run(_, call) {
          const schema = {
            type: 'object',
            properties: { name: { type: 'string' } },
            required: ['name'],
          } as const
          const { who } = await call.ask({ who: form({ message: 'Who?', schema }) })
          return who.name
        },
      }),
    ],
  })
  const wire = { input: new PassThrough(), output: new PassThrough() }
  let text = ''
  const read = () => wire.output.on('data', (chunk: Buffer) => (text += chunk.toString()))
  if (reading) read()
  const ended = serve(server, { ...wire, maxPending: LIMIT, concurrency })
  const [initialize, ...rest] = HANDSHAKE
  wire.input.write(
    `${initialize.replace('"capabilities":{}', '"capabilities":{"elicitation":{}}')}\n${rest.join('\n')}\n`,
  )
  await turns()
  const answers = () =>
    text
      .split('\n')
      .flatMap((line) =>
        line === '' ? [] : [JSON.parse(line) as { id?: number; method?: string; error?: object }],
      )
  const end = async () => {
    for (const finish of running.values()) finish()
    await turns()
    for (const finish of running.values()) finish()
    wire.input.end()
    await turns()
    await ended
  }
  return { ...wire, running, answers, read, ended, end }
}

describe('while requests in progress use up the memory limit', () => {
  it('reading pauses, and every request gets its response in the end', async () => {
    const { input, running, answers, end } = await started()
    for (let id = 1; id <= 20; id++) input.write(large(id))
    await turns()
    expect([...running.keys()]).toEqual([1, 2, 3, 4, 5])
    expect(input.readableLength + input.writableLength).toBeGreaterThan(10 * TEXT.length)
    for (let id = 1; id <= 20; id++) {
      running.get(id)?.()
      await turns()
      // Less than the maximum pause without a call that ends.
      await vi.advanceTimersByTimeAsync(900)
      await turns()
    }
    await end()
    expect(answers().map(({ id, error }) => [id, error])).toEqual(
      [0, ...running.keys()].map((id) => [id, undefined]),
    )
    expect(running.size).toBe(20)
  })

  it('and none ends, reading continues: pings and cancellations are served, requests get an error', async () => {
    const { input, running, answers, end } = await started()
    for (let id = 1; id <= 5; id++) input.write(large(id))
    input.write('{"jsonrpc":"2.0","id":6,"method":"ping"}\n')
    input.write(large(7))
    input.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
    input.write('{"jsonrpc":"2.0","id":8,"method":"ping"}\n')
    await turns()
    expect(answers().map(({ id }) => id)).toEqual([0])
    await vi.advanceTimersByTimeAsync(1000)
    await turns()
    expect(answers().slice(1)).toMatchObject([
      { id: 6, result: {} },
      { id: 7, error: { code: -32603 } },
      { id: 8, result: {} },
    ])
    for (const finish of running.values()) finish()
    await turns()
    input.write(large(9))
    await turns()
    expect([...running.keys()]).toEqual([1, 2, 3, 4, 5, 9])
    await end()
  })

  it('and one waits for a response of the client, the response is read immediately', async () => {
    const { input, answers, end } = await started()
    for (let id = 1; id <= 4; id++) input.write(large(id))
    input.write(large(5, 'ask'))
    await vi.waitFor(
      () => expect(answers().at(-1)).toMatchObject({ method: 'elicitation/create' }),
      60_000,
    )
    const question = answers().at(-1)?.id ?? 0
    input.write(
      `{"jsonrpc":"2.0","id":${question},"result":{"action":"accept","content":{"name":"Ada"}}}\n`,
    )
    await turns()
    expect(answers().at(-1)).toMatchObject({ id: 5, result: { content: [{ text: 'Ada' }] } })
    await end()
  })
})

describe('while the client does not read', () => {
  const small = (id: number) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"slow","arguments":{}}}\n`
  const ids = Array.from({ length: 300 }, (_, index) => index + 1)

  /** 300 calls have been received. All that were started have responded: 256 at the same time, and a few before that was more than is written at once. */
  async function unread() {
    const served = await started({ reading: false, result: TEXT, concurrency: 256 })
    served.input.write(ids.map(small).join(''))
    await turns()
    const { running } = served
    expect(running.size).toBe(256)
    for (let round = 0; round < 10; round++) {
      for (const finish of running.values()) finish()
      await turns()
    }
    expect(running.size).toBeLessThan(260)
    return { ...served, count: running.size }
  }

  it('no queued call is started; all get their responses when it reads', async () => {
    const { running, answers, read, end } = await unread()
    read()
    await turns()
    expect(running.size).toBe(300)
    await end()
    expect(answers().map(({ id, error }) => [id, error])).toEqual(
      [0, ...ids].map((id) => [id, undefined]),
    )
  })

  it('queued calls are not aborted at the end of the input, and have five seconds when it reads', async () => {
    const { input, running, count, answers, read, ended } = await unread()
    input.end()
    await turns()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(running.size).toBe(count)
    read()
    await turns()
    expect(running.size).toBe(300)
    await vi.advanceTimersByTimeAsync(4900)
    for (const id of ids.slice(256, -1)) running.get(id)?.()
    await turns()
    await vi.advanceTimersByTimeAsync(5100)
    await turns()
    await ended
    const failed = answers().filter(({ error }) => error !== undefined)
    expect(failed).toMatchObject([{ id: 300, error: { code: -32603 } }])
    expect(answers()).toHaveLength(301)
  })
})
