import { describe, expect, it, vi } from 'vitest'
import { memory } from '../../src/client.js'
import { createServer, roots, tool } from '../../src/index.js'
import type { Channel } from '../../src/jsonrpc/channel.js'
import { waitingQuestions } from '../../src/server/asking/waiting-questions.js'

/* The number of questions that wait for answers, in this process. */

const MAX = 10_000
/** How many more may wait: those of other tests in this process may never be answered. */
const room = () => MAX - waitingQuestions.total
const TOO_MANY = /^Too many questions wait/

const server = createServer({
  name: 'asking',
  version: '1',
  tools: [
    tool({
      name: 'ask',
      input: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
      async run({ count }, call) {
        await call.ask(Object.fromEntries(Array.from({ length: count }, (_, i) => [i, roots()])))
        return 'answered'
      },
    }),
  ],
})

const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })

interface Received {
  id: number
  method?: string
  result?: { content: { text: string }[] }
}

/** A client that answers its questions when it is told to. */
class Caller {
  readonly questions: number[] = []
  /** The texts of the results, by the id of the call. */
  readonly texts = new Map<number, string | undefined>()
  readonly #channel: Channel
  #id = 1

  constructor(principal?: string, capabilities: object = { roots: {} }) {
    const identity = principal === undefined ? {} : { principal: { id: principal, scopes: [] } }
    this.#channel = memory(server, identity).open()
    this.#channel.receive({
      frame: (frame) => {
        const { id, method, result } = JSON.parse(frame) as Received
        if (method === 'roots/list') this.questions.push(id)
        else this.texts.set(id, result?.content?.[0]?.text)
      },
      malformed: () => {},
      closed: () => {},
    })
    const clientInfo = { name: 'x', version: '1' }
    this.#send({
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities, clientInfo },
    })
    this.#send({ method: 'notifications/initialized' })
  }

  #send(message: object): void {
    this.#channel.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  /** Calls the tool with a number of questions; resolves when they are asked, or with its result. */
  async ask(count: number): Promise<string | undefined> {
    const id = this.#id++
    const asked = this.questions.length + count
    this.#send({ id, method: 'tools/call', params: { name: 'ask', arguments: { count } } })
    await until(() => expect(this.texts.has(id) || this.questions.length === asked).toBe(true))
    if (count > 0) return this.texts.get(id)
    await until(() => expect(this.texts.has(id)).toBe(true))
    return this.texts.get(id)
  }

  /** Answers all questions; resolves with the result of a call. */
  async answer(call: number): Promise<string | undefined> {
    for (const id of this.questions.splice(0)) this.#send({ id, result: { roots: [] } })
    await until(() => expect(this.texts.has(call)).toBe(true))
    return this.texts.get(call)
  }

  cancel(requestId: number): void {
    this.#send({ method: 'notifications/cancelled', params: { requestId } })
  }

  close(): Promise<void> {
    return this.#channel.close()
  }
}

describe('the questions that wait for answers', () => {
  it('are limited in total: without authorization, one client may have them all', async () => {
    const [all, other] = [new Caller(), new Caller()]
    expect(await all.ask(room() + 1)).toMatch(TOO_MANY)
    expect(await all.ask(room())).toBeUndefined()
    expect(await other.ask(1)).toMatch(TOO_MANY)
    expect(await all.answer(2)).toBe('answered')
    expect(await other.ask(1)).toBeUndefined()
    await Promise.all([all.close(), other.close()])
  })

  it('are limited to half of that for each principal', async () => {
    const [ada, ada2, bob, eve] = ['ada', 'ada', 'bob', 'eve'].map((id) => new Caller(id)) as [
      Caller,
      Caller,
      Caller,
      Caller,
    ]
    expect(await ada.ask(MAX / 2 + 1)).toMatch(TOO_MANY)
    expect(await ada.ask(MAX / 2)).toBeUndefined()
    expect(await ada2.ask(1)).toMatch(TOO_MANY)
    expect(await bob.ask(room())).toBeUndefined()
    expect(await eve.ask(1)).toMatch(TOO_MANY)
    await ada.close()
    expect(await ada2.ask(1)).toBeUndefined()
    expect(await eve.ask(1)).toBeUndefined()
    await Promise.all([ada2.close(), bob.close(), eve.close()])
  })

  it('count no longer when their call is cancelled, or their client has left', async () => {
    const [first, second] = [new Caller(), new Caller()]
    const count = room()
    expect(await first.ask(count)).toBeUndefined()
    first.cancel(1)
    await until(async () => expect(await second.ask(count)).toBeUndefined())
    await second.close()
    expect(await first.ask(count)).toBeUndefined()
    await first.close()
  })

  it('do not count if they cannot be sent', async () => {
    const [first, second] = [new Caller(undefined, {}), new Caller()]
    expect(await first.ask(0)).toBe('answered')
    expect(await first.ask(room())).toContain('cannot be sent')
    expect(await second.ask(room())).toBeUndefined()
    await Promise.all([first.close(), second.close()])
  })
})
