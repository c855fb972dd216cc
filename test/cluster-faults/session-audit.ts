import { commandsOf } from '../redis/tasks-audit.js'

/* What Redis has executed of sessions and events: nothing is written by a process that has lost a session. */

interface Audited {
  generation: number
  /** By generation, the process that has it. */
  readonly owners: Map<number, string>
  deleted: boolean
}

export function auditSessions(file: Buffer, prefix: string, problems: string[]): void {
  const sessions = new Map<string, Audited>()
  const [session, events] = [`{${prefix}}:s:`, `{${prefix}}:e:`]
  for (const [command = '', key = '', ...rest] of commandsOf(file)) {
    if (command === 'HSET' && key.startsWith(session)) {
      const audited = sessions.get(key.slice(session.length)) ?? {
        generation: 0,
        owners: new Map(),
        deleted: false,
      }
      sessions.set(key.slice(session.length), audited)
      for (let i = 0; i < rest.length; i += 2) write(audited, rest[i] ?? '', rest[i + 1] ?? '')
    }
    if (command === 'XADD' && key.startsWith(events)) append(key.slice(events.length))
  }

  function write(audited: Audited, field: string, value: string): void {
    if (audited.deleted) problems.push(`a session that has ended was written: ${field}`)
    if (field === 'd') audited.deleted = true
    if (field === 'g') {
      if (Number(value) < audited.generation)
        problems.push(`generation ${value} was written after ${audited.generation}`)
      audited.generation = Number(value)
    }
    if (field !== 'o') return
    const owner = audited.owners.get(audited.generation) ?? value
    if (owner !== value)
      problems.push(`generation ${audited.generation} of a session belongs to two processes`)
    audited.owners.set(audited.generation, owner)
  }

  /** The name of a stream begins with that of its session. */
  function append(stream: string): void {
    if (sessions.get(stream.split('/')[0] ?? '')?.deleted === true)
      problems.push('an event was stored of a session that has ended')
  }
}
