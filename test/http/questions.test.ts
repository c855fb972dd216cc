import { afterEach, describe, expect, it } from 'vitest'
import { type ListenOptions, type Listening, MemorySessionStore, listen } from '../../src/http.js'
import { InitializedSession, type Stream } from './caller.js'
import { type Gate, servedOverHttp } from './served.js'
import { SseCaller } from './sse-caller.js'

/* Questions of a server to its clients: their ids, while it closes, and what they hold. */

const ASKING = ['2025-06-18', '2025-11-25']
const NEWEST = '2025-11-25'
const ELICITATION = { elicitation: {} }
const ask = { name: 'ask', arguments: {} }
const text = (value: string) => ({ result: { content: [{ type: 'text', text: value }] } })

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
