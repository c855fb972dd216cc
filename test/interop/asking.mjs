// A server that uses elicitation, sampling and roots, from the built package.
import { createServer, form, prompt, resource, roots, sample, tool } from '../../dist/index.js'

const Color = {
  type: 'object',
  properties: { color: { type: 'string', enum: ['red', 'blue'] } },
  required: ['color'],
}
const question = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Which?' } }],
  maxTokens: 10,
}

export function askingServer() {
  let steps = 0
  return createServer({
    name: 'asking',
    version: '1.0.0',
    tools: [
      tool({
        name: 'form',
        run: async (_, call) =>
          (await call.ask({ it: form({ message: 'Which?', schema: Color }) })).it.color,
      }),
      tool({
        name: 'twice',
        async run(_, call) {
          const step = await call.step('count', () => ++steps)
          const { folders } = await call.ask({ folders: roots() })
          const { word } = await call.ask({ word: sample(question) })
          return `${step} ${folders[0].uri} ${word.content.text} ${steps}`
        },
      }),
    ],
    resources: [
      resource({
        uri: 'folder:it',
        read: async (_, call) => (await call.ask({ it: roots() })).it[0].uri,
      }),
    ],
    prompts: [
      prompt({
        name: 'word',
        build: async (_, call) => (await call.ask({ it: sample(question) })).it.content,
      }),
    ],
  })
}
