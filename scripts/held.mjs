// Measures for each thing that a peer can make a server keep what is charged for it against a limit, and what it holds in
// memory. Fails if one holds more than twice of what is charged; an estimate may err on the high side. It takes some
// minutes.
//
//   npm run held [name …]     for example: npm run held session event
//
// A row is a function that fills a limit and returns { count, charged, held }, with `charged` and `held` in bytes. It
// runs in a process of its own, with `gc`. Each module in held/ exports its rows by name.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { rows as bodies } from './held/bodies.mjs'
import { rows as calls } from './held/calls.mjs'
import { rows as events } from './held/events.mjs'
import { rows as questions } from './held/parked-questions.mjs'
import { rows as sessions } from './held/sessions.mjs'
import { rows as tasks } from './held/tasks.mjs'

const ROWS = { ...bodies, ...sessions, ...events, ...calls, ...questions, ...tasks }
const MAX_RATIO = 2

/** Runs a row in a process of its own. */
async function run(name) {
  const script = fileURLToPath(import.meta.url)
  const child = fork(script, ['--row', name], { execArgv: ['--expose-gc'] })
  const [result] = await Promise.race([once(child, 'message'), once(child, 'exit')])
  if (typeof result !== 'object') throw new Error(`${name} has ended without a result`)
  child.kill('SIGKILL')
  return result
}

const bytes = (count) =>
  count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`

async function printTable(names) {
  const print = (thing, ...columns) =>
    console.log(thing.padEnd(42) + columns.map((column) => String(column).padStart(11)).join(''))
  print('thing', 'how many', 'charged', 'held', 'held each', 'ratio')
  for (const name of names) {
    const { count, charged, held } = await run(name)
    const ratio = held / charged
    const isOff = ratio > MAX_RATIO
    if (isOff) process.exitCode = 1
    const each = bytes(held / count)
    print(name, count, bytes(charged), bytes(held), each, `${isOff ? '! ' : ''}${ratio.toFixed(2)}`)
  }
}

const [first, ...more] = process.argv.slice(2)
if (first === '--row') {
  process.send(await ROWS[more[0]]())
} else {
  const wanted = process.argv.slice(2)
  const names = Object.keys(ROWS).filter(
    (name) => wanted.length === 0 || wanted.some((each) => name.startsWith(each)),
  )
  if (names.length > 0) await printTable(names)
  else console.error(`There is no such row: there are ${Object.keys(ROWS).join(', ')}`)
}
