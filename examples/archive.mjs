// A tool that asks the client, and does two things that must not be done twice.
// It works in every revision of the protocol: where the question ends the call,
// the call is run again with the answer, in this process or in another one that
// shares the key, and finished steps are not run again.
//
//   LEDGER=/tmp/ledger STATE_KEY='a secret of at least 32 characters' node examples/archive.mjs
import { appendFile } from 'node:fs/promises'
import { ToolError, createServer, roots, tool } from 'ccmcp'
import { serveStdio } from 'ccmcp/stdio'

const { LEDGER = '/dev/null', STATE_KEY, ONCE } = process.env

/** Stands for something outside that is charged for: a ticket, a payment, a mail. */
async function charge(what, key) {
  await appendFile(LEDGER, `${what} ${key}\n`)
}

const archive = tool({
  name: 'archive',
  description: 'Archives the folders that the user works in.',
  input: { type: 'object', properties: { label: { type: 'string' } }, required: ['label'] },
  async run({ label }, call) {
    const ticket = await call.step('ticket', async () => {
      await charge('ticket', call.key)
      return { id: `${label}-1` }
    })
    const { folders } = await call.ask({ folders: roots() })
    if (folders.length === 0) throw new ToolError('There is no folder to archive')
    // Presented twice, a state runs this twice; the key tells the other side that it is the same.
    await call.step('archive', () => charge('archive', call.key))
    return `Archived ${folders.map(({ uri }) => uri).join(', ')} as ${ticket.id}`
  },
})

/** Each state can be used once. Several processes would keep this in a database. */
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
