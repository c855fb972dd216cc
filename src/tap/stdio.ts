import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { CaptureFile } from './capture-file.js'

const WINDOWS = process.platform === 'win32'
/** The signals that are passed on. */
const SIGNALS: readonly NodeJS.Signals[] = WINDOWS
  ? ['SIGINT', 'SIGTERM', 'SIGBREAK']
  : ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']
/** Those that ask a process to end. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGINT',
  'SIGTERM',
  'SIGBREAK',
  'SIGHUP',
  'SIGQUIT',
])
/** Milliseconds without progress after the server has exited. Its children may keep its pipes open. */
const OUTPUT_TIMEOUT = 500
/** Milliseconds between checks whether the client has read everything. */
const WRITE_CHECK = 20

/** How a server ended. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/**
 * Starts a server and connects it with the stdin, stdout and stderr of this process. Bytes are forwarded first and recorded
 * second; whichever side does not read pauses the other. Resolves when the server has exited and everything that it wrote
 * was forwarded, or this process was asked to end and the client does not read; rejects if it cannot be started.
 */
export async function tapStdio(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  capture: CaptureFile,
): Promise<Exit> {
  const child = spawn(command, args, {
    stdio: 'pipe',
    env,
    // A process group of its own: a signal to this group, such as Ctrl-C, would otherwise reach the server twice.
    detached: !WINDOWS,
    windowsHide: true,
  })
  capture.event('spawn', {
    argv: [command, ...args],
    cwd: process.cwd(),
    env: Object.keys(env).toSorted(),
    pid: child.pid,
    ppid: process.ppid,
  })
  let isEnding = false
  const signalled = SIGNALS.map((signal) => {
    const pass = () => {
      capture.event('signal', { signal })
      isEnding ||= ENDING.has(signal)
      child.kill(signal)
    }
    process.on(signal, pass)
    return () => process.off(signal, pass)
  })
  try {
    return await connect(child, capture, () => isEnding)
  } finally {
    process.stdin.destroy() // nobody reads it any more
    for (const stop of signalled) stop()
  }
}

async function connect(
  child: ChildProcess,
  capture: CaptureFile,
  isEnding: () => boolean,
): Promise<Exit> {
  const { stdin, stdout, stderr } = child
  if (stdin === null || stdout === null || stderr === null) throw new Error('no pipes') // not with stdio: 'pipe'
  const exiting = exited(child)
  if (child.pid === undefined) return await exiting
  forward(process.stdin, stdin, {
    copy: (bytes) => capture.bytes('in', bytes),
    ended: () => {
      capture.event('end', { dir: 'in' })
      stdin.end()
    },
    // The server has closed its stdin: so does this process.
    broken: () => {
      process.stdin.destroy()
      closeDescriptor(process.stdin.fd)
    },
  })
  const output = forward(stdout, process.stdout, {
    copy: (bytes) => capture.bytes('out', bytes),
    ended: () => {
      capture.event('end', { dir: 'out' })
      process.stdout.end(() => closeDescriptor(process.stdout.fd))
    },
    broken: () => stdout.destroy(),
  })
  const errors = forward(stderr, process.stderr, {
    copy: (bytes) => capture.bytes('stderr', bytes),
    ended: () => {},
    // Nobody reads it any more; it is still recorded, and the server does not block.
    broken: () => stderr.resume(),
  })
  const closed = new Promise<void>((resolve) => {
    child.on('close', () => resolve())
  })
  const exit = await exiting
  capture.event('exit', { ...exit })
  await drained(closed, [output, errors], isEnding)
  return exit
}

interface Forwarding {
  copy(bytes: Uint8Array): void
  ended(): void
  /** The receiver has closed its end. */
  broken(): void
}

/** The state of one direction. */
interface Flow {
  /** Counts the chunks that were read. */
  chunks: number
  to: Writable
}

function forward(from: Readable, to: Writable, { copy, ended, broken }: Forwarding): Flow {
  const flow: Flow = { chunks: 0, to }
  let isBroken = false
  from.on('data', (bytes: Buffer) => {
    flow.chunks++
    const hasRoom = isBroken || to.write(bytes)
    copy(bytes)
    if (!hasRoom) from.pause()
  })
  to.on('drain', () => from.resume())
  from.on('end', ended)
  // A connection that breaks has ended.
  from.on('error', ended)
  to.on('error', () => {
    isBroken = true
    broken()
  })
  return flow
}

/** Node keeps stdin and stdout open; a server that closes them and runs on must be seen to have done so. */
function closeDescriptor(descriptor: number): void {
  try {
    closeSync(descriptor)
  } catch {
    // The stream has closed it.
  }
}

function exited(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      // Without a pid it was not started; otherwise a signal could not be sent.
      if (child.pid === undefined) reject(error)
    })
    child.on('exit', (code, signal) => resolve({ code, signal }))
  })
}

/**
 * Waits until all output was read and written; or nothing more came for a while, and nothing is waiting to be written.
 * When this process is to end, it does not wait for a client that does not read, nor for children of the server that
 * go on writing.
 */
async function drained(
  closed: Promise<void>,
  flows: readonly Flow[],
  isEnding: () => boolean,
): Promise<void> {
  const pipes = { areOpen: true }
  const closing = closed.then(() => (pipes.areOpen = false))
  // Usually this is all. The promise is awaited once: it would keep everything that waits for it.
  await Promise.race([closing, delay(WRITE_CHECK)])
  let before = ''
  // Checks are counted, not milliseconds: between two of them, everything that is there is read and written.
  for (let idle = 0; pipes.areOpen || flows.some(isWaiting);) {
    const isLeaving = isEnding()
    const state = `${isLeaving} ${flows.map(stateOf).join(' ')}`
    const hasProgress = state !== before && (!isLeaving || flows.some(isWaiting))
    idle = hasProgress ? 0 : idle + 1
    before = state
    const mayLeave = isLeaving || !flows.some(isWaiting)
    if (mayLeave && idle * WRITE_CHECK >= OUTPUT_TIMEOUT) return
    await delay(WRITE_CHECK)
  }
}

function isWaiting({ to }: Flow): boolean {
  return to.writableLength > 0 && !to.destroyed && to.errored === null
}

/** Changes with every chunk that is read, and every part of one that is written. */
function stateOf({ chunks, to }: Flow): string {
  // The length changes only when all of a chunk is written. Only the handle of a pipe knows what is left of it.
  const { _handle: handle } = to as { _handle?: { writeQueueSize?: number } | null } // if it is one of Node
  return `${chunks} ${to.writableLength} ${handle?.writeQueueSize ?? 0}`
}
