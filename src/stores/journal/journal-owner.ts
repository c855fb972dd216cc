import fs from 'node:fs'
import { hostname } from 'node:os'

/** The process that a lock names. */
export interface Owner {
  readonly pid: number
  /** When it was started, on systems that tell: its id may have been used before. */
  readonly start: string
  /** Where its id is valid. */
  readonly place: string
}

/** How a lock names this process: its id, its start and its place. */
export function thisProcess(): string {
  return `${process.pid} ${startOf(process.pid)} ${thisPlace()}`
}

/** Reads how a lock names a process; older versions wrote no place. */
export function parseOwner(text: string): Owner {
  const [pid = '', start = '', place = ''] = text.split(' ')
  return { pid: Number(pid), start, place }
}

/** Whether the id of a process means nothing here: it is of another container, another machine, or before a reboot. */
export function isForeign({ place }: Owner): boolean {
  return place !== '' && place !== thisPlace()
}

/** Whether a process runs, which is not foreign; undefined if it has the id of this one, and its start is unknown. */
export function isRunning({ pid, start }: Owner): boolean | undefined {
  if (!(Number.isInteger(pid) && pid > 0) || !exists(pid)) return false
  const started = startOf(pid)
  // In a container, the process after a restart often has the same id.
  if (start === '' || started === '') return pid === process.pid ? undefined : true
  return started === start
}

let place: string | undefined

function thisPlace(): string {
  return (place ??= findPlace())
}

/** The machine since it was booted, and the namespace of process ids in it. */
function findPlace(): string {
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${fs.readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return `host/${nameOfHost()}`
  }
}

function nameOfHost(): string {
  try {
    return hostname().replaceAll(/\s/g, '')
  } catch {
    return '' // a runtime may forbid it
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

/** When a process was started; empty if that is unknown. */
function startOf(pid: number): string {
  try {
    // In a container without a /proc of its own, the ids in it are others.
    if (fs.readlinkSync('/proc/self') !== String(process.pid)) return ''
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A process that has ended stays listed until its parent asks for its exit code.
    return fields[0] === 'Z' ? 'ended' : (fields[19] ?? '')
  } catch {
    return ''
  }
}
