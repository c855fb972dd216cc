// A server with tools, resources and prompts, exported for `ccmcp serve`.
import { ToolError, createServer, prompt, resource, tool } from '../../../dist/index.js'

const number = { type: 'number' }
const tools = [
  tool({
    name: 'sum',
    description: 'Add two numbers.',
    input: {
      type: 'object',
      properties: {
        a: { ...number, description: 'The first' },
        b: number,
        style: { enum: ['plain', 'fancy'] },
        more: { type: 'array', items: { anyOf: [number, { type: 'string' }] } },
      },
      required: ['a', 'b'],
    },
    output: { type: 'object', properties: { sum: number }, required: ['sum'] },
    run: ({ a, b }) => ({ sum: a + b }),
  }),
  tool({
    name: 'fail',
    run() {
      throw new ToolError('As planned.')
    },
  }),
  tool({
    name: 'blocks',
    run: () => [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }, 'and \u001b[31mred'],
  }),
  tool({
    name: 'repeat',
    input: {
      type: 'object',
      properties: { text: { type: 'string' }, times: number },
      required: ['text', 'times'],
    },
    run: ({ text, times }) => text.repeat(times),
  }),
  tool({ name: 'variable', run: () => process.env.OFFER ?? 'not set' }),
  tool({
    name: 'hang',
    run: () => {
      console.error('hanging')
      return new Promise(() => {})
    },
  }),
  tool({
    name: 'die',
    run() {
      console.error('My last words')
      process.exit(9)
    },
  }),
  tool({
    name: 'print',
    run() {
      console.log('printed by a tool')
      return 'done'
    },
  }),
]
const resources = [
  resource({
    uri: 'text://note',
    name: 'note',
    mimeType: 'text/plain',
    description: 'A note',
    read: () => 'Grüße 👋',
  }),
  resource({
    uri: 'bytes://all',
    mimeType: 'application/octet-stream',
    read: () => Uint8Array.from({ length: 256 }, (_, i) => i),
  }),
  resource({ uri: 'name://{name}', read: ({ name }) => `I am ${name}` }),
]
const prompts = [
  prompt({
    name: 'greet',
    description: 'Greet somebody.',
    arguments: {
      name: { description: 'Whom' },
      tone: { required: false, values: ['warm', 'cold'] },
    },
    build: ({ name, tone = 'warm' }) => [
      { role: 'user', content: `Give ${name} a ${tone} welcome` },
      { role: 'assistant', content: 'Gladly.' },
    ],
  }),
]

console.log('printed while loading')

export const server = () =>
  createServer({
    name: 'offer',
    version: '1.0.0',
    instructions: 'Ask me.',
    tools,
    resources,
    prompts,
  })
