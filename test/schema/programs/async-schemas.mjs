// Validates by schemas whose functions return promises, in a process that an unhandled rejection ends. Prints a line of
// JSON for each case: its name, the outcome, and how often the function has run.
import { createServer, form, tool, withJsonSchema } from 'ccmcp'
import { connect, memory } from 'ccmcp/client'
import { z as zod4 } from 'zod'
import { z as zod3 } from 'zod/v3'

const JSON_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
}

/** Resolves only for the city that exists; without a database it rejects. */
const find = async (city) => {
  await Promise.resolve()
  if (city === 'down') throw new Error('no database')
  return city === 'Rome'
}

const KINDS = {
  // A function that is not declared as asynchronous.
  refine: (text, count) => text.refine((city) => count(find(city)), 'is no city'),
  superRefine: (text, count) =>
    text.superRefine(async (city, context) => {
      if (!(await count(find(city)))) context.addIssue({ code: 'custom', message: 'is no city' })
    }),
  transform: (text, count) =>
    text.transform(async (city, context) => {
      if (!(await count(find(city)))) context.addIssue({ code: 'custom', message: 'is no city' })
      return city
    }),
}

/** How a value is validated: returns the text of the result. */
const SIDES = {
  input: (schema) => called({ input: schema, run: ({ city }) => city }),
  output: (schema) => called({ input: JSON_SCHEMA, output: schema, run: ({ city }) => ({ city }) }),
  form: (schema) => called(asking(schema)),
  'form of 2026-07-28': (schema) => called(asking(schema), '2026-07-28'),
}

const asking = (schema) => ({
  input: JSON_SCHEMA,
  async run(_, call) {
    const { where } = await call.ask({ where: form({ message: 'Where?', schema }) })
    return where.city
  },
})

function called(definition, revision = '2025-11-25') {
  const server = createServer({
    name: 'cities',
    version: '1',
    tools: [tool({ name: 'find', ...definition })],
  })
  return async (city) => {
    const client = await connect(memory(server), {
      revision,
      elicit: () => ({ action: 'accept', content: { city } }),
    })
    try {
      const { content } = await client.callTool('find', { city })
      return content[0].text
    } catch (error) {
      return error.message
    } finally {
      await client.close()
    }
  }
}

for (const [zod, z] of Object.entries({ 'zod 4': zod4, 'zod 3': zod3 })) {
  for (const [kind, make] of Object.entries(KINDS)) {
    for (const [side, open] of Object.entries(SIDES)) {
      let runs = 0
      const count = (value) => {
        runs++
        return value
      }
      const schema = z.object({ city: make(z.string(), count) })
      const call = open(withJsonSchema(schema, () => JSON_SCHEMA))
      for (const city of ['Rome', 'Atlantis', 'down', 'Rome']) {
        // A form with an invalid answer is asked again.
        if (city === 'Atlantis' && side.startsWith('form')) continue
        runs = 0
        const text = await call(city)
        // Unhandled rejections are reported when the microtasks are done.
        await new Promise((resolve) => setImmediate(resolve))
        console.log(JSON.stringify([`${zod} ${kind} ${side} ${city}`, runs, text]))
      }
    }
  }
}
