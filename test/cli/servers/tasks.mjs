// A server with a journal of tasks, which is its argument.
import { createServer, form, tool } from '../../../dist/index.js'
import { JournalTaskStore } from '../../../dist/journal.js'
import { serveStdio } from '../../../dist/stdio.js'
import { tasks } from '../../../dist/tasks.js'

const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
const input = { type: 'object', properties: { text: { type: 'string' } } }
const slow = tool({
  name: 'slow',
  input,
  task: 'must',
  async run(_, call) {
    await call.step('first', () => 1)
    call.progress(1, 2, `attempt ${call.attempt}`)
    return await new Promise((_resolve, reject) => {
      call.signal.addEventListener('abort', () => reject(call.signal.reason))
    })
  },
})
const ask = tool({
  name: 'ask',
  task: 'must',
  input,
  async run(_, call) {
    const { who } = await call.ask({ who: form({ message: 'Who?', schema }) })
    return `Hello, ${who.name}!`
  },
})
const quick = tool({ name: 'quick', input, task: 'must', run: () => 'done' })

const store = new JournalTaskStore(process.argv[2] ?? 'tasks.journal')
await serveStdio(
  createServer({
    name: 'tasks',
    version: '1',
    tools: [slow, ask, quick],
    extensions: [tasks({ store })],
  }),
)
