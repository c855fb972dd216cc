// Reads a journal of tasks line by line, without the code that wrote it, and reports what must never be in one.
import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { TaskAudit } from './task-audit.mjs'

/** The states of all tasks by their names; problems are added to a list. */
export function auditJournal(path, problems) {
  const audit = new TaskAudit(problems)
  let lines
  try {
    lines = readFileSync(path, 'latin1').split('\n')
  } catch (error) {
    // It was killed before the file was created.
    if (error.code === 'ENOENT') return audit.tasks
    throw error
  }
  // What follows the last line break was cut.
  lines.pop()
  for (const [index, line] of lines.entries()) {
    const json = Buffer.from(line.slice(9), 'latin1')
    if (crc32(json).toString(16).padStart(8, '0') !== line.slice(0, 8)) {
      problems.push(`line ${index + 1} of ${lines.length} has a wrong checksum`)
      return audit.tasks
    }
    if (index > 0) for (const change of JSON.parse(json.toString())) apply(audit, change)
  }
  return audit.tasks
}

function apply(audit, { task, change, name, version }) {
  if (task !== undefined) return audit.created(task.name, task.version, task.state, task.entries)
  audit.changed(name, version, change.state)
  audit.appended(name, change.append ?? [])
}
