import { describe, expect, it } from 'vitest'
import { connect } from '../../src/client.js'
import { createServer, form, tool } from '../../src/index.js'
import { type ListenOptions, type Listening, listen } from '../../src/http.js'
import { webRequest } from '../../src/transports/http/client/http-request.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { closing, target } from './scripted.js'

const server = () =>
  createServer({
    name: 'http',
    version: '1',
    tools: [
      tool({
        name: 'add',
        input: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
        run: ({ a = 0, b = 0 }) => String(a + b),
      }),
      tool({
        name: 'count',
        run: async (_input, call) => {
          for (let done = 1; done <= 3; done++) {
            call.progress(done)
            await new Promise((resolve) => setImmediate(resolve))
          }
          return 'counted'
        },
      }),
      tool({
        name: 'ask',
        run: async (_input, call) => {
          const { who } = await call.ask({
            who: form({
              message: 'Who?',
              schema: {
                type: 'object',
                properties: { name: { type: 'string' } },
                required: ['name'],
              },
            }),
          })
          return `hello ${who.name}`
        },
      }),
    ],
  })

async function served(options: ListenOptions = {}): Promise<Listening> {
  const listening = await listen(server(), { port: 0, log: { write: () => true }, ...options })
  closing.push(() => listening.close(0))
  return listening
}

describe.each([
  ['node', () => nodeRequest()],
  ['fetch', () => webRequest(fetch)],
])('over %s', (_name, send) => {
  it.each(['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'])(
    '%s: calls, progress, elicitation',
    async (revision) => {
      const { url } = await served()
      const elicit = () => ({ action: 'accept' as const, content: { name: 'Ada' } })
      const client = await connect(target(url, send()), { revision, elicit })
      closing.push(() => client.close())
      expect((await client.callTool('add', { a: 1, b: 2 })).content).toEqual([
        { type: 'text', text: '3' },
      ])
      const progress: number[] = []
      await client.callTool('count', {}, { onProgress: (each) => progress.push(each.progress) })
      expect(progress.at(-1)).toBe(3)
      if (revision >= '2025-06-18')
        expect((await client.callTool('ask')).content).toEqual([
          { type: 'text', text: 'hello Ada' },
        ])
      await client.close()
    },
  )

  it('ends its session', async () => {
    const listening = await served()
    const client = await connect(target(listening.url, send()), { revision: '2025-11-25' })
    expect(listening.sessions).toBe(1)
    await client.close()
    expect(listening.sessions).toBe(0)
  })
})
