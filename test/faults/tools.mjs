// The tools of servers that are killed. What they do is noted in a file, so that it can be compared with what was stored.
import { appendFileSync } from 'node:fs'
import { form, tool } from '../../dist/index.js'

export function faultTools(ledger) {
  const note = (...words) => appendFileSync(ledger, `${words.join(' ')}\n`)
  /** Large: the journal is soon compacted. */
  const value = 'x'.repeat(9000)
  async function step(call, name) {
    await call.step(name, () => {
      note('effect', call.key, name, call.attempt)
      return value
    })
    note('recorded', call.key, name, call.attempt)
  }

  const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
  const ask = tool({
    name: 'ask',
    task: 'must',
    async run(_, call) {
      await step(call, 'first')
      const { who } = await call.ask({ who: form({ message: 'Who?', schema }) })
      await step(call, 'second')
      return `Hello, ${who.name}!`
    },
  })
  const retried = tool({
    name: 'retried',
    task: { mode: 'must', retries: 1000, retryDelay: 0 },
    async run(_, call) {
      for (const name of ['first', 'second', 'third']) await step(call, name)
      return 'Done at last'
    },
  })
  const endless = tool({
    name: 'endless',
    task: 'must',
    run: (_, call) =>
      new Promise((_resolve, reject) => {
        call.signal.addEventListener('abort', () => reject(call.signal.reason))
      }),
  })
  const may = tool({ name: 'may', task: { mode: 'may', after: 0 }, run: () => 'Done' })

  return [ask, retried, endless, may]
}
