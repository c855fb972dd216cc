// Reads a journal of tasks line by line, without the code that wrote it, and reports what must never be in one.
import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'

const TERMINAL = new Set(['completed', 'failed', 'cancelled'])

/** The states of all tasks by their names; problems are added to a list. */
export function auditJournal(path, problems) {
  const tasks = new Map()
  let lines
  try {
    lines = readFileSync(path, 'latin1').split('\n')
  } catch (error) {
    // It was killed before the file was created.
    if (error.code === 'ENOENT') return tasks
    throw error
  }
  // What follows the last line break was cut.
  lines.pop()
  for (const [index, line] of lines.entries()) {
    const json = Buffer.from(line.slice(9), 'latin1')
    if (crc32(json).toString(16).padStart(8, '0') !== line.slice(0, 8)) {
      problems.push(`line ${index + 1} of ${lines.length} has a wrong checksum`)
      return tasks
    }
    if (index > 0) for (const change of JSON.parse(json.toString())) apply(tasks, change, problems)
  }
  return tasks
}

function apply(tasks, { task, change, name, version }, problems) {
  if (task !== undefined) {
    if (tasks.has(task.name)) problems.push('a task was created twice')
    tasks.set(task.name, { version: task.version, state: JSON.parse(task.state), steps: new Set() })
    addSteps(tasks.get(task.name), task.entries, problems)
    return
  }
  const before = tasks.get(name)
  if (before === undefined) return void problems.push('a task was changed that does not exist')
  if (before.version !== version) problems.push('a version was skipped, or used twice')
  if (TERMINAL.has(before.state.status)) problems.push('a task was changed after its end')
  before.version = version + 1
  before.state = JSON.parse(change.state)
  addSteps(before, change.append ?? [], problems)
}

function addSteps({ steps }, entries, problems) {
  for (const { step } of entries.map((entry) => JSON.parse(entry))) {
    if (step === undefined) continue
    if (steps.has(step)) problems.push('a step was recorded twice')
    steps.add(step)
  }
}
