import { afterEach, describe, expect, it, vi } from 'vitest'
import { parkedQuestions } from '../../scripts/held/parked-questions.mjs'
import { type ListenOptions, type Listening, MemorySessionStore, listen } from '../../src/http.js'
import { POST, InitializedSession, type Stream, message, open, send } from './caller.js'
import { type Gate, servedOverHttp } from './served.js'
import { SseCaller } from './sse-caller.js'

/* Questions of a server to its clients: their ids, while it closes, and what they hold. */

const ASKING = ['2025-06-18', '2025-11-25']
const NEWEST = '2025-11-25'
const ELICITATION = { elicitation: {} }
const ask = { name: 'ask', arguments: {} }
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const text = (value: string) => ({ result: { content: [{ type: 'text', text: value }] } })
const SHUTTING_DOWN = { error: { code: -32603, message: /shutting down/ } }

interface Question {
  id: string
  method: string
}
const accepted = (id: string, name = 'Ada') =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: { name } } })

const processes: Listening[] = []
afterEach(async () => {
  await Promise.all(processes.splice(0).map((each) => each.close(0)))
})

/** A process with a server that asks, and what it logs at level `error`. */
async function start(
  options: ListenOptions = {},
): Promise<{ listening: Listening; url: string; gate: Gate; errors: string[] }> {
  const { server, gate } = servedOverHttp()
  const errors: string[] = []
  const log = { write: (line: string) => (errors.push(line), true) }
  const listening = await listen(server, { port: 0, log, logLevel: 'error', ...options })
  processes.push(listening)
  return { listening, url: listening.url, gate, errors }
}

/** Calls the tool that asks; the stream of the call, and the question. */
async function asked(client: InitializedSession): Promise<[Stream, Question]> {
  const stream = await client.stream('tools/call', ask)
  const question = (await stream.message()) as Question
  expect(question.method).toBe('elicitation/create')
  return [stream, question]
}

describe('the id of a request to a client', () => {
  it.each(ASKING)('is a random string with a letter, in %s', async (revision) => {
    const { url } = await start()
    const client = await InitializedSession.open(url, revision, ELICITATION)
    const questions = [await asked(client), await asked(client)].map(([, { id }]) => id)
    expect(new Set(questions).size).toBe(2)
    for (const id of questions) expect(id).toMatch(/^r-[0-9a-f-]{36}$/)
  })

  it('is a random string over HTTP+SSE too', async () => {
    const { url } = await start({ legacySse: true })
    const client = await SseCaller.initialized(new URL('/sse', url).href, NEWEST, {
      capabilities: ELICITATION,
    })
    const { id } = (await client.request('tools/call', ask)) as Question
    expect(id).toMatch(/^r-[0-9a-f-]{36}$/)
    await client.post(accepted(id))
    expect(await client.stream.message()).toMatchObject(text('It is Ada'))
    client.stream.disconnect()
  })

  it('is unknown to a process that takes the session over: a late answer answers nothing else', async () => {
    const sessionStore = new MemorySessionStore()
    const first = await start({ sessionStore })
    const client = await InitializedSession.open(first.url, NEWEST, ELICITATION)
    const [, early] = await asked(client)
    const second = await start({ sessionStore })
    const moved = client.at(second.url)
    const [stream, later] = await asked(moved)
    expect((await moved.post(accepted(early.id, 'Eve'))).status).toBe(202)
    expect((await moved.post(accepted(later.id, 'Ada'))).status).toBe(202)
    expect(await stream.message()).toMatchObject(text('It is Ada'))
  })
})

describe('while the server closes, a question', () => {
  it.each(ASKING)('is answered, in %s', async (revision) => {
    const { listening, url, errors } = await start()
    const client = await InitializedSession.open(url, revision, ELICITATION)
    const [stream, { id }] = await asked(client)
    const closed = listening.close(60_000)
    const { status } = await client.request('ping')
    expect(status).toBe(503)
    expect((await client.post(accepted(id))).status).toBe(202)
    expect(await stream.message()).toMatchObject(text('It is Ada'))
    await closed
    expect(errors).toEqual([])
  })

  it('is answered over HTTP+SSE', async () => {
    const { listening, url, errors } = await start({ legacySse: true })
    const client = await SseCaller.initialized(new URL('/sse', url).href, NEWEST, {
      capabilities: ELICITATION,
    })
    const { id } = (await client.request('tools/call', ask)) as Question
    const closed = listening.close(60_000)
    expect((await client.post(message('ping', undefined, 9))).status).toBe(503)
    expect((await client.post(accepted(id))).status).toBe(202)
    expect(await client.stream.message()).toMatchObject(text('It is Ada'))
    await closed
    expect(errors).toEqual([])
  })

  it('is answered in a batch, whose requests are refused', async () => {
    const { listening, url } = await start()
    const client = await InitializedSession.open(url, '2025-03-26', { sampling: {} })
    const stream = await client.stream('tools/call', { name: 'sample', arguments: {} })
    const { id } = (await stream.message()) as Question
    const closed = listening.close(60_000)
    const result = { role: 'assistant', content: { type: 'text', text: 'Hi' }, model: 'm' }
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result })
    expect((await client.post(`[${message('ping', undefined, 9)}]`)).status).toBe(503)
    const { status, json } = await client.post(`[${answer},${message('ping', undefined, 9)}]`)
    const refused = {
      id: 9,
      error: { message: expect.stringContaining('shutting down') as string },
    }
    expect([status, json]).toMatchObject([200, [refused]])
    expect(await stream.message()).toMatchObject(text('m'))
    await closed
  })

  it('fails if the answer is invalid', async () => {
    const { listening, url } = await start()
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const [stream, { id }] = await asked(client)
    const closed = listening.close(60_000)
    const answer = JSON.stringify({ jsonrpc: '2.0', id, error: 'no' })
    expect((await client.post(answer)).status).not.toBe(503)
    expect(await stream.message()).toMatchObject({ result: { isError: true } })
    await closed
  })

  it('may be asked: the call is in progress', async () => {
    const { listening, url, gate } = await start()
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const stream = await client.stream('tools/call', { name: 'ask', arguments: { gate: 'go' } })
    await stream.has('before')
    const closed = listening.close(60_000)
    gate.open('go')
    await stream.has('elicitation/create')
    const { id } = stream.messages.at(-1) as Question
    expect((await client.post(accepted(id))).status).toBe(202)
    await stream.has('It is Ada')
    await closed
  })

  it('ends with its call when that is cancelled', async () => {
    const { listening, url, errors } = await start()
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const stream = await client.stream('tools/call', ask, 7)
    const { id } = (await stream.message()) as Question
    const closed = listening.close(60_000)
    const cancellation = message('notifications/cancelled', { requestId: 7, reason: 'enough' })
    expect((await client.post(cancellation)).status).toBe(202)
    await stream.ended()
    await closed
    expect(stream.messages.slice(1)).toEqual([
      expect.objectContaining({ method: 'notifications/cancelled' }),
    ])
    expect(stream.text).toContain(id)
    expect(errors).toEqual([])
  })

  it('fails at the deadline, because the server is shutting down', async () => {
    const { listening, url, errors } = await start()
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const [stream, { id }] = await asked(client)
    await listening.close(20)
    await stream.ended()
    expect(stream.messages.slice(1)).toEqual([
      expect.objectContaining({
        method: 'notifications/cancelled',
        params: { requestId: id, reason: expect.stringMatching(SHUTTING_DOWN.error.message) },
      }),
      expect.objectContaining({
        error: {
          code: SHUTTING_DOWN.error.code,
          message: expect.stringMatching(SHUTTING_DOWN.error.message),
        },
      }),
    ])
    expect(errors).toEqual([])
  })

  it('cannot be answered in an unknown session', async () => {
    const { listening, url } = await start()
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const [stream, { id }] = await asked(client)
    const closed = listening.close(60_000)
    const others = [{ 'mcp-session-id': 'x'.repeat(32) }, {}]
    for (const headers of others)
      expect(
        (await send(url, { headers: { ...POST, ...headers }, body: accepted(id) })).status,
      ).toBe('mcp-session-id' in headers ? 503 : 400)
    await client.post(accepted(id))
    expect(await stream.message()).toMatchObject(text('It is Ada'))
    await closed
  })

  it('does not keep a GET stream from being refused', async () => {
    const { listening, url } = await start()
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const [, { id }] = await asked(client)
    const closed = listening.close(60_000)
    expect((await client.listen()).status).toBe(503)
    await client.post(accepted(id))
    await closed
    await expect(open(url)).rejects.toThrow('ECONNREFUSED')
  })
})

describe('a call whose client has gone away while it waits', () => {
  it('holds no more than twice what it is charged', async () => {
    const { charged, held } = await parkedQuestions(1000)
    expect(held).toBeLessThan(2 * charged)
  })

  it('is charged until it ends', async () => {
    const limits = { pendingBytes: 200_000, pendingBytesPerClient: 200_000 }
    const { listening, url } = await start({ limits })
    const client = await InitializedSession.open(url, NEWEST, ELICITATION)
    const questions: Question[] = []
    let status = 200
    while (status === 200) {
      const stream = await client.stream('tools/call', ask)
      ;({ status } = stream)
      const found = await stream.message()
      if (status === 200) questions.push(found as Question)
      stream.disconnect()
    }
    expect(status).toBe(503)
    // Some are still connected; what is charged does not depend on it.
    expect(questions.length).toBeLessThan(25)
    await until(() => expect(listening.openResponses).toBe(0))
    for (const { id } of questions) await client.post(accepted(id))
    const [stream, { id }] = await asked(client)
    await client.post(accepted(id))
    expect(await stream.message()).toMatchObject(text('It is Ada'))
  })
})
