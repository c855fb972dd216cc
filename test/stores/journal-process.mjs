// Uses a journal until its stdin ends:   node journal-process.mjs JOURNAL
// Prints a line when it has opened the journal, or could not, and creates a task for each line that it reads.
import { createInterface } from 'node:readline'
import { JournalTaskStore } from '../../dist/journal.js'

const store = new JournalTaskStore(process.argv[2])
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`)
try {
  store.open()
  print({ opened: store.size, pid: process.pid })
} catch (error) {
  print({ code: error.code, pid: process.pid, message: error.message })
  process.exit()
}
for await (const name of createInterface({ input: process.stdin })) {
  const expires = Date.now() + 60_000
  const task = { name, owner: '', expires, runnable: true, claimed: true, state: '', entries: [] }
  const created = await store.create(task).catch(({ code }) => code)
  print({ created })
}
await store.close()
