// A tool that asks the client and has two side effects that must not be repeated.
// Works in every revision of the protocol: where a question ends the call, the
// call runs again with the answer, in this process or in another one with the
// same key, and completed steps are not repeated.
//
//   LEDGER=/tmp/ledger STATE_KEY='a secret of at least 32 characters' node examples/archive.mjs
import { appendFile } from 'node:fs/promises'
import { ToolError, createServer, roots, tool } from 'ccmcp'
import { serveStdio } from 'ccmcp/stdio'

const { LEDGER = '/dev/null', STATE_KEY, ONCE } = process.env

/** Stands for an external side effect: a ticket, a payment, a mail. */
async function charge(what, key) {
  await appendFile(LEDGER, `${what} ${key}\n`)
}

const archive = tool({
  name: 'archive',
  description: 'Archives the directories that the user works in.',
  input: { type: 'object', properties: { label: { type: 'string' } }, required: ['label'] },
  async run({ label }, call) {
    const ticket = await call.step('ticket', async () => {
      await charge('ticket', call.key)
      return { id: `${label}-1` }
    })
    const { folders } = await call.ask({ folders: roots() })
    if (folders.length === 0) throw new ToolError('There is no folder to archive')
    // If a state is used twice, this runs twice; the idempotency key lets the other side detect it.
    await call.step('archive', () => charge('archive', call.key))
    return `Archived ${folders.map(({ uri }) => uri).join(', ')} as ${ticket.id}`
  },
})

/** Each state can be used once. Several processes would store this in a database. */
const used = new Map()
const once = {
  consume(id, expires) {
    for (const [each, until] of used) if (until < Date.now()) used.delete(each)
    if (used.has(id)) return false
    used.set(id, expires)
    return true
  },
}

const state = { ...(STATE_KEY && { keys: [STATE_KEY] }), ...(ONCE && { once }) }
await serveStdio(createServer({ name: 'archive', version: '1.0.0', tools: [archive], state }))
