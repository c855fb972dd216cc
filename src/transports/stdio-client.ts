import { type ChildProcess, spawn } from 'node:child_process'
import type { Framing } from '../framing/detect.js'
import type { Channel, Receiver } from '../jsonrpc/channel.js'
import { withCode } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import { truncate } from '../jsonrpc/truncate.js'
import { detached } from '../jsonrpc/weight.js'
import { type Ending, explain } from './stdio-diagnosis.js'
import { StreamChannel } from './streams.js'

export interface ProcessOptions {
  /** The folder that it is started in. */
  cwd?: string
  /** Added to the few variables that a server is given (`PATH`, `HOME` and the like). */
  env?: Readonly<Record<string, string | undefined>>
  /** Shows what the server writes to stderr. It is read in any case. */
  stderr?: (text: string) => unknown
  /** How messages are told apart (default `lines`). */
  framing?: Framing
  /** The longest message that is taken in, in bytes (default 32 MiB). */
  maxMessage?: number
  /** Milliseconds that the server has to exit, after its input has ended and after SIGTERM (default 2 s each). */
  patience?: number
}

const MAX_MESSAGE = 32 * 1024 * 1024
const PATIENCE = 2000
const TAIL = 8192
/** Milliseconds for what a process has written before its end. */
const GRACE = 500
const WINDOWS = process.platform === 'win32'
/** A server gets no secrets of its host unless they are given to it. */
const INHERITED = WINDOWS
  ? [
      'APPDATA',
      'HOMEDRIVE',
      'HOMEPATH',
      'LOCALAPPDATA',
      'PATH',
      'PATHEXT',
      'PROGRAMFILES',
      'SYSTEMDRIVE',
      'SYSTEMROOT',
      'TEMP',
      'USERNAME',
      'USERPROFILE',
    ]
  : ['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'USER']

/** Process groups that must not outlive this process. */
const groups = new Set<number>()
let watching = false

/** A server started as a child process, as a channel. It leads a group of its own, so that its children end with it. */
export class ProcessChannel implements Channel {
  readonly #child: ChildProcess
  readonly #streams: StreamChannel
  readonly #patience: number
  readonly #ending: Ending
  #closing = false
  /** Resolves when the process has ended and all of its output is read: with its exit code, or null. */
  readonly exited: Promise<number | null>

  constructor(command: string, args: readonly string[], options: ProcessOptions = {}) {
    const { cwd, env, framing = 'lines', maxMessage = MAX_MESSAGE, patience = PATIENCE } = options
    this.#patience = patience
    this.#ending = { command: [command, ...args].join(' '), stderr: '' }
    const inherited = Object.fromEntries(INHERITED.map((name) => [name, process.env[name]]))
    const child = spawn(command, args, {
      stdio: 'pipe',
      cwd,
      env: { ...inherited, ...env },
      detached: !WINDOWS,
      windowsHide: true,
    })
    this.#child = child
    this.#streams = new StreamChannel({
      input: child.stdout,
      output: child.stdin,
      framing,
      maxMessage,
      readsOn: true,
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#ending.stderr = (this.#ending.stderr + text).slice(-TAIL)
      // Whoever shows it must not keep it from being read.
      callHook(() => options.stderr?.(text), ignore)
    })
    if (child.pid !== undefined) watch(child.pid)
    this.exited = new Promise((resolve) => {
      child.on('error', (error) => {
        this.#ending.error = error
        resolve(null)
      })
      const ended = (code: number | null, signal: NodeJS.Signals | null) => {
        this.#ending.code = code
        this.#ending.signal = signal
        // Whoever is left of its group has lost its reason to be.
        if (child.pid !== undefined) endGroup(child.pid)
        resolve(code)
      }
      // A child of it may hold its pipes open: then they are not waited for much longer.
      let grace: ReturnType<typeof setTimeout> | undefined
      child.on('exit', (code, signal) => (grace = setTimeout(ended, GRACE, code, signal)))
      child.on('close', (code, signal) => {
        clearTimeout(grace)
        ended(code, signal)
      })
    })
  }

  receive(receiver: Receiver): void {
    const note = (text: string) => {
      if (/^\s*[[{]/.test(text)) this.#ending.answered = true
      else this.#ending.garbage ??= detached(truncate(text))
    }
    this.#streams.receive({
      frame(frame) {
        note(frame)
        receiver.frame(frame)
      },
      garbage: (error, head, tail) => {
        if (head !== '') note(head)
        receiver.garbage(error, head, tail)
      },
      closed: () => {}, // a broken pipe: what the process does next will say more
    })
    const closed = () =>
      receiver.closed(
        this.#closing ? undefined : withCode('SERVER_EXITED', new Error(this.diagnose())),
      )
    void this.exited.then(closed)
    // A server that has closed its output will not answer any more, though it may live on.
    void this.#streams.ended.then(() => setTimeout(closed, GRACE).unref())
  }

  send(frame: string): void {
    this.#streams.send(frame)
  }

  diagnose(): string {
    return explain(this.#ending)
  }

  /** Ends the input, then asks, then kills: the whole group, each after its time. */
  async close(): Promise<void> {
    if (this.#closing) {
      await this.exited
      return
    }
    this.#closing = true
    const { pid } = this.#child
    if (pid === undefined) return
    const asked = setTimeout(() => signalGroup(pid, 'SIGTERM'), this.#patience)
    const killed = setTimeout(() => signalGroup(pid, 'SIGKILL'), 2 * this.#patience)
    // A server that does not read would keep us from ending its input.
    await Promise.race([this.#streams.close(), this.exited])
    this.#child.stdin?.end()
    this.#child.stdout?.resume() // it must be able to finish what it writes
    await this.exited
    clearTimeout(asked)
    clearTimeout(killed)
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    if (WINDOWS)
      spawn('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true })
    else process.kill(-pid, signal)
  } catch {
    // It is gone already.
  }
}

function endGroup(pid: number): void {
  if (!WINDOWS) signalGroup(pid, 'SIGKILL')
  groups.delete(pid)
}

function watch(pid: number): void {
  groups.add(pid)
  if (watching) return
  watching = true
  process.on('exit', () => {
    for (const group of groups) signalGroup(group, 'SIGKILL')
  })
}
