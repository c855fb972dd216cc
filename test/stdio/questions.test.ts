import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createServer, form, prompt, tool } from '../../src/index.js'
import { serve } from '../../src/stdio.js'

/* Questions of a server over two streams: their ids, and what becomes of them when it stops. */

const schema = {
  type: 'object',
  properties: { ok: { type: 'boolean' } },
  required: ['ok'],
} as const
const sure = () => form({ message: 'Sure?', schema })

interface Sent {
  id?: unknown
  method?: string
  params?: Record<string, unknown>
  result?: { content: { text: string }[]; isError: boolean }
  error?: { message: string }
}

/** A server on two streams, with a client that has initialized and has called what asks. */
async function asking(method = 'tools/call') {
  const server = createServer({
    name: 'asking',
    version: '1',
    tools: [
      tool({
        name: 'ask',
        run: async (_, call) => `ok: ${(await call.ask({ sure: sure() })).sure.ok}`,
      }),
    ],
    prompts: [
      prompt({
        name: 'ask',
        build: async (_, call) => String((await call.ask({ sure: sure() })).sure.ok),
      }),
    ],
  })
  const [input, output] = [new PassThrough(), new PassThrough()]
  const stop = new AbortController()
  const errors: string[] = []
  const log = { write: (line: string) => (errors.push(line), true) }
  const served = serve(server, { input, output, log, logLevel: 'error', signal: stop.signal })
  let rest = ''
  const next = async (): Promise<Sent> => {
    while (!rest.includes('\n')) rest += String((await once(output, 'data'))[0])
    const end = rest.indexOf('\n')
    const sent = JSON.parse(rest.slice(0, end)) as Sent
    rest = rest.slice(end + 1)
    return sent
  }
  const send = (message: object) =>
    void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const capabilities = { elicitation: {} }
  const params = {
    protocolVersion: '2025-11-25',
    capabilities,
    clientInfo: { name: 'x', version: '1' },
  }
  send({ id: 1, method: 'initialize', params })
  await next()
  send({ method: 'notifications/initialized' })
  send({ id: 2, method, params: { name: 'ask' } })
  const question = await next()
  expect(question.method).toBe('elicitation/create')
  const answer = () =>
    send({ id: question.id, result: { action: 'accept', content: { ok: true } } })
  return { input, output, stop: () => stop.abort(), served, send, next, question, answer, errors }
}

describe('a question over two streams', () => {
  it('has a number as its id', async () => {
    const { question, answer, next, input, served } = await asking()
    expect(question.id).toBe(1)
    answer()
    expect(await next()).toMatchObject({ id: 2, result: { content: [{ text: 'ok: true' }] } })
    input.end()
    await served
  })

  it('is answered after the server was told to stop, which serves no other request', async () => {
    const { stop, answer, send, next, served, errors } = await asking()
    stop()
    send({ id: 3, method: 'ping' })
    answer()
    expect(await next()).toMatchObject({ id: 2, result: { content: [{ text: 'ok: true' }] } })
    await served
    expect(errors).toEqual([])
  })

  it('ends with its call, which is cancelled after the server was told to stop', async () => {
    const { stop, send, next, question, served, errors } = await asking()
    stop()
    send({ method: 'notifications/cancelled', params: { requestId: 2 } })
    expect(await next()).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: question.id },
    })
    await served
    expect(errors).toEqual([])
  })

  it.each(['tools/call', 'prompts/get'])(
    'of %s fails a second later, because the server is shutting down',
    async (method) => {
      const { stop, next, question, served, errors } = await asking(method)
      stop()
      expect(await next()).toMatchObject({
        method: 'notifications/cancelled',
        params: { requestId: question.id, reason: expect.stringContaining('shutting down') },
      })
      expect(await next()).toMatchObject({
        id: 2,
        error: { message: expect.stringContaining('shutting down') },
      })
      await served
      expect(errors).toEqual([])
    },
  )

  it('fails when the input ends: no answer can arrive', async () => {
    const { input, next, served, errors } = await asking()
    input.end()
    expect(await next()).toMatchObject({
      id: 2,
      result: {
        isError: true,
        content: [
          { text: expect.stringMatching(/^The client could not answer "sure": .*closing/) },
        ],
      },
    })
    await served
    expect(errors).toEqual([])
  })

  it('is no failure of the handler when the output breaks', async () => {
    const { output, served, errors } = await asking()
    output.destroy(new Error('broken'))
    await expect(served).rejects.toThrow('broken')
    // The handler has heard of it.
    await new Promise(setImmediate)
    expect(errors).toEqual([])
  })
})
