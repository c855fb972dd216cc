// A server with a journal of tasks on a disk that fails as a plan says:   node server.mjs JOURNAL LEDGER PLAN
//
//   {"kill": KIND, "at": N, "phase": PHASE}   kills the process (SIGKILL) at its Nth operation of a kind
//   {"full": N, "times": M}                   refuses M writes from the Nth on, because the disk is full
//   {}                                        does nothing
import fs from 'node:fs'
import { createServer } from '../../dist/index.js'
import { JournalTaskStore } from '../../dist/journal.js'
import { serveStdio } from '../../dist/stdio.js'
import { tasks } from '../../dist/tasks.js'
import { faultTools } from './tools.mjs'

const [journal, ledger, plan] = process.argv.slice(2)
const { kill, at = 1, phase, full = Infinity, times = 0 } = JSON.parse(plan)

const die = () => process.kill(process.pid, 'SIGKILL')
const counts = new Map()
/** Counts an operation; returns the phase in which the process is killed, if it is this one. */
function phaseOf(kind) {
  const count = (counts.get(kind) ?? 0) + 1
  counts.set(kind, count)
  return kind === kill && count === at ? phase : undefined
}

/** Bytes of a write that are on the disk when the process is killed. */
const TORN = {
  before: () => 0,
  first: () => 1,
  half: (length) => Math.floor(length / 2),
  last: (length) => length - 1,
  after: (length) => length,
}

const { openSync, write, writeFileSync, writeSync } = fs
/** The files that a compaction writes before they are renamed. */
const aside = new Set()
fs.openSync = (path, ...rest) => {
  const fd = openSync(path, ...rest)
  if (String(path).endsWith('.new')) aside.add(fd)
  else aside.delete(fd)
  return fd
}
let writes = 0
fs.write = (fd, bytes, offset, length, position, done) => {
  const fatal = phaseOf(aside.has(fd) ? 'compact' : 'write')
  if (fatal !== undefined) {
    const torn = TORN[fatal](length)
    if (torn > 0) writeSync(fd, bytes, offset, torn, position)
    die()
  }
  writes++
  if (writes < full || writes >= full + times)
    return write(fd, bytes, offset, length, position, done)
  writeSync(fd, bytes, offset, Math.floor(length / 2), position)
  setImmediate(done, Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }))
}
fs.writeFileSync = (file, content, ...rest) => {
  const fatal = phaseOf(typeof file === 'number' ? 'create' : 'lock')
  if (fatal === undefined) return writeFileSync(file, content, ...rest)
  const bytes = Buffer.from(content)
  writeFileSync(file, bytes.subarray(0, TORN[fatal](bytes.length)), ...rest)
  die()
}
/** Operations with a callback or without, and the kinds under which they are counted. */
const OTHERS = {
  fdatasync: 'sync',
  fsync: 'compact-sync',
  rename: 'compact-rename',
  fsyncSync: 'create-sync',
  renameSync: 'rename',
  ftruncateSync: 'cut',
  fdatasyncSync: 'cut-sync',
  linkSync: 'link',
}
for (const [name, kind] of Object.entries(OTHERS)) {
  const operation = fs[name]
  fs[name] = (...args) => {
    const fatal = phaseOf(kind)
    // From now on it is the journal.
    if (name.startsWith('rename')) aside.clear()
    if (fatal === undefined) return operation(...args)
    if (fatal === 'before') die()
    if (name.endsWith('Sync')) {
      try {
        operation(...args)
      } finally {
        die()
      }
    }
    operation(...args.slice(0, -1), die)
  }
}

const store = new JournalTaskStore(journal, { compactBytes: 20_000 })
await serveStdio(
  createServer({
    name: 'faults',
    version: '1',
    tools: faultTools(ledger),
    extensions: [tasks({ store })],
  }),
)
