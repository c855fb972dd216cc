import { TaskAudit } from '../faults/task-audit.mjs'

/* What Redis has executed, read without the code that has sent it. */

/** The commands of an append-only file. */
export function* commandsOf(file: Buffer): Generator<string[]> {
  let position = 0
  const number = (sign: string) => {
    const end = file.indexOf('\r\n', position)
    const text = file.toString('latin1', position, end)
    if (!text.startsWith(sign)) throw new Error(`unexpected ${text} in the append-only file`)
    position = end + 2
    return Number(text.slice(1))
  }
  while (position < file.length) {
    const command: string[] = []
    for (let left = number('*'); left > 0; left--) {
      const length = number('$')
      command.push(file.toString('utf8', position, position + length))
      position += length + 2
    }
    yield command
  }
}

/** Follows every write to the tasks under a prefix; problems are added to a list. Returns the last state of each task. */
export function auditTasks(
  file: Buffer,
  prefix: string,
  problems: string[],
): Map<string, { state: { status: string } }> {
  const audit = new TaskAudit(problems)
  for (const [command = '', key = '', ...rest] of commandsOf(file)) {
    const name = key.replace(/^\{[^}]*\}:te?:/, '')
    if (command === 'RPUSH' && key.startsWith(`{${prefix}}:te:`)) audit.appended(name, rest)
    if (command !== 'HSET' || !key.startsWith(`{${prefix}}:t:`)) continue
    const fields = new Map<string, string>()
    for (let i = 0; i < rest.length; i += 2) fields.set(rest[i] ?? '', rest[i + 1] ?? '')
    const [version, state] = [Number(fields.get('v')), fields.get('s')]
    if (state === undefined) continue
    if (fields.has('o')) audit.created(name, version, state, [])
    else audit.changed(name, version - 1, state)
  }
  return audit.tasks
}

/** A step that was recorded is not run again, unless by a process that has lost its task without knowing. */
export function ledgerProblems(lines: readonly string[]): string[] {
  const problems: string[] = []
  const recorded = new Map<string, number>()
  for (const line of lines) {
    const [what, key, step, attempt] = line.split(' ')
    const name = `${key} ${step}`
    const before = recorded.get(name)
    if (what === 'recorded') recorded.set(name, Math.min(Number(attempt), before ?? Infinity))
    else if (what === 'effect' && before !== undefined && Number(attempt) > before)
      problems.push(`the step ${name} was run again after it was recorded`)
  }
  return problems
}
