// A server whose tools ask the user, report progress, log, and return their arguments.
import { createServer, form, roots, tool, url } from '../../../dist/index.js'

const text = { type: 'string' }
const fields = {
  name: { ...text, title: 'Full name', description: 'As in your passport', minLength: 2 },
  mail: { ...text, format: 'email' },
  age: { type: 'integer', minimum: 18, maximum: 130 },
  news: { type: 'boolean', default: true },
  size: {
    ...text,
    oneOf: [
      { const: 's', title: 'Small' },
      { const: 'l', title: 'Large' },
    ],
  },
  color: { ...text, enum: ['red', 'green'], default: 'green' },
  days: {
    type: 'array',
    minItems: 1,
    items: {
      anyOf: [
        { const: 'mo', title: 'Monday' },
        { const: 'tu', title: 'Tuesday' },
      ],
    },
  },
}
const tools = [
  tool({
    name: 'form',
    async run(_, call) {
      const { details } = await call.ask({
        details: form({
          message: 'Your details, please \u001b[31m',
          schema: { type: 'object', properties: fields, required: ['name', 'age', 'days'] },
        }),
      })
      return JSON.stringify(details)
    },
  }),
  tool({
    name: 'two',
    async run(_, call) {
      const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
      const { one, other } = await call.ask({
        one: form({ message: 'First?', schema, optional: true }),
        other: form({ message: 'Second?', schema, optional: true }),
      })
      return JSON.stringify([one ?? 'declined', other ?? 'declined'])
    },
  }),
  tool({
    name: 'pay',
    async run(_, call) {
      const { paid } = await call.ask({
        paid: url({
          message: 'Pay here',
          url: 'https://pay.example.com/bill?id=7',
          optional: true,
        }),
      })
      return paid === true ? 'agreed' : 'not agreed'
    },
  }),
  tool({
    name: 'slow',
    async run(_, call) {
      call.log.info('starting')
      call.progress(1, 4, 'one of four')
      await new Promise((resolve) => setTimeout(resolve, 300))
      call.log.warning('half way')
      call.progress(2, 4, 'two of four')
      await new Promise((resolve) => setTimeout(resolve, 100))
      return 'slow is done'
    },
  }),
  tool({
    name: 'endless',
    run: (_, call) =>
      new Promise((_resolve, reject) => {
        call.progress(1, 2, 'digging')
        call.signal.addEventListener('abort', () => reject(new Error('aborted')))
      }),
  }),
  tool({
    name: 'where',
    async run(_, call) {
      const { all } = await call.ask({ all: roots() })
      return JSON.stringify(all)
    },
  }),
  tool({
    name: 'typed',
    input: {
      type: 'object',
      properties: {
        text,
        count: { type: 'integer' },
        ratio: { type: 'number' },
        on: { type: 'boolean' },
        maybe: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        style: { enum: ['plain', 'fancy'] },
        tags: { type: 'array', items: text },
        sizes: { type: 'array', items: { $ref: '#/$defs/size' } },
        place: {
          type: 'object',
          properties: { city: text, zip: { type: 'integer' } },
        },
        'a.b': { type: 'integer' },
        any: {},
      },
      required: ['text'],
      $defs: { size: { type: 'number' } },
    },
    run: (args) => JSON.stringify(args),
  }),
]

export const server = () => createServer({ name: 'ask', version: '1.0.0', tools })
