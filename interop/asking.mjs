// Our server with tools that ask the client, for other clients.
import { createServer, form, roots, sample, tool, url } from '../dist/index.js'
import { serveStdio } from '../dist/stdio.js'

const color = {
  type: 'object',
  properties: { color: { type: 'string', enum: ['red', 'green'] } },
  required: ['color'],
}
const say = (text) => ({
  messages: [{ role: 'user', content: { type: 'text', text } }],
  maxTokens: 10,
})
let steps = 0

await serveStdio(
  createServer({
    name: 'asking',
    version: '1.0.0',
    tools: [
      tool({
        name: 'form',
        run: async (_, call) =>
          (await call.ask({ it: form({ message: 'Which?', schema: color }) })).it.color,
      }),
      tool({
        name: 'url',
        async run(_, call) {
          await call.ask({ it: url({ message: 'Open it.', url: 'https://example.com/' }) })
          return 'opened'
        },
      }),
      tool({
        name: 'sample',
        run: async (_, call) => (await call.ask({ it: sample(say('hello')) })).it.content.text,
      }),
      tool({ name: 'roots', run: async (_, call) => (await call.ask({ it: roots() })).it[0].uri }),
      tool({
        name: 'several',
        async run(_, call) {
          const { first } = await call.ask({ first: form({ message: 'Which?', schema: color }) })
          const step = await call.step('count', () => ++steps)
          const { second } = await call.ask({ second: sample(say('hi')) })
          return `${first.color}, step ${step}, ${second.content.text}`
        },
      }),
    ],
  }),
)
