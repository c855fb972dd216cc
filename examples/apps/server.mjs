// A tool with a page: `expenses` returns numbers, the page draws them, and adds one by a tool that only pages call.
//   ccmcp list -- node examples/apps/server.mjs, or in a host: node /absolute/path/to/examples/apps/server.mjs
import { createServer, result, tool } from 'ccmcp'
import { app, apps } from 'ccmcp/apps'
import { serveStdio } from 'ccmcp/stdio'

const amounts = new Map([
  ['rent', 900],
  ['food', 310],
  ['travel', 120],
])

const output = {
  type: 'object',
  properties: { amounts: { type: 'object', additionalProperties: { type: 'number' } } },
  required: ['amounts'],
}
const categories = { type: 'array', items: { type: 'string' } }
const added = {
  type: 'object',
  properties: {
    category: { type: 'string', minLength: 1 },
    amount: { type: 'number', minimum: 0 },
  },
  required: ['category', 'amount'],
}

/** The numbers for the page, and a text for the model and for hosts without apps. */
function expenses(names) {
  const shown = [...amounts].filter(([name]) => names === undefined || names.includes(name))
  return result({
    value: { amounts: Object.fromEntries(shown) },
    content: shown.map(([name, amount]) => `${name}: ${amount}`).join('\n') || 'No expenses',
  })
}

const chart = app({
  name: 'chart',
  title: 'Expenses',
  file: new URL('chart.html', import.meta.url),
  prefersBorder: true,
})

const server = createServer({
  name: 'expenses',
  version: '1.0.0',
  extensions: [apps()],
  tools: [
    tool({
      name: 'expenses',
      description: 'Show the expenses of this month by category.',
      input: { type: 'object', properties: { categories } },
      output,
      app: chart,
      run: ({ categories: names }) => expenses(names),
    }),
    tool({
      name: 'add_expense',
      description: 'Add an amount to a category.',
      input: added,
      output,
      app: { visibility: ['app'] },
      run({ category, amount }) {
        amounts.set(category, (amounts.get(category) ?? 0) + amount)
        return expenses()
      },
    }),
  ],
})

await serveStdio(server)
