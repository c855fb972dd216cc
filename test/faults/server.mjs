// A server with a journal of tasks that kills itself (SIGKILL) at its Nth operation on a file: within a write, before
// or after a sync or a rename.   node server.mjs JOURNAL EFFECTS N
import { appendFileSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { createServer, form, tool } from '../../dist/index.js'
import { serveStdio } from '../../dist/stdio.js'

const [journal, effects, last] = process.argv.slice(2)
let operations = 0
const count = () => {
  if (++operations === Number(last)) process.kill(process.pid, 'SIGKILL')
}

const handle = await files.open(effects, 'a')
const prototype = Object.getPrototypeOf(handle)
await handle.close()
const { write, datasync, sync } = prototype
prototype.write = async function (bytes, offset, length, position) {
  count()
  const half = Math.ceil(length / 2)
  await write.call(this, bytes, offset, half, position)
  count()
  if (half < length) await write.call(this, bytes, offset + half, length - half, position + half)
  return { bytesWritten: length }
}
const around = (operation) =>
  async function (...args) {
    count()
    await operation.apply(this, args)
    count()
  }
prototype.datasync = around(datasync)
prototype.sync = around(sync)
files.rename = around(files.rename)
syncBuiltinESMExports()

// Loaded after the functions were replaced.
const { JournalTaskStore } = await import('../../dist/journal.js')
const { tasks } = await import('../../dist/tasks.js')

const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
const effect = (call, step) =>
  call.step(step, () => appendFileSync(effects, `${call.key} ${step}\n`))
const work = tool({
  name: 'work',
  task: 'must',
  async run(_, call) {
    await effect(call, 'first')
    const { who } = await call.ask({ who: form({ message: 'Who?', schema }) })
    await effect(call, 'second')
    return `Hello, ${who.name}!`
  },
})
const store = await JournalTaskStore.open(journal)
await serveStdio(
  createServer({ name: 'faults', version: '1', tools: [work], extensions: [tasks({ store })] }),
)
await store.close()
