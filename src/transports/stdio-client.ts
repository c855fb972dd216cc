import type { ChildProcess } from 'node:child_process'
import type { Framing } from '../framing/detect.js'
import type { Channel, ConnectionFacts, Receiver } from '../jsonrpc/channel.js'
import { withCode } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import type { SentMessage } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import { copyString } from '../jsonrpc/budget.js'
import { nextTurn } from '../runtime.js'
import { type ProcessStatus, explain } from './stdio-diagnosis.js'
import { StreamChannel } from './streams.js'

export interface ProcessOptions {
  /** The working directory of the server. */
  cwd?: string
  /** Added to the few variables that a server inherits (`PATH`, `HOME` and the like). */
  env?: Readonly<Record<string, string | undefined>>
  /** Called with what the server writes to stderr, which is read in any case. */
  stderr?: (text: string) => unknown
  /** The framing of messages (default `lines`). */
  framing?: Framing
  /** Maximum bytes of a message (default 32 MiB). */
  maxMessage?: number
  /** Milliseconds for the server to exit after its stdin is closed, and again after SIGTERM (default 2 s each). */
  exitTimeout?: number
}

const MAX_MESSAGE = 32 * 1024 * 1024
const EXIT_TIMEOUT = 2000
const MAX_STDERR = 8192
/** Milliseconds to read what a process has written before it exited. */
const OUTPUT_TIMEOUT = 500
const WINDOWS = globalThis.process?.platform === 'win32'
/** Other variables may be secrets of the host; a server gets them only through `env`. */
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

/** Node's module: not imported, so that bundlers for browsers need not resolve it. Throws if it is missing. */
export function childProcess(): typeof import('node:child_process') {
  const found = globalThis.process?.getBuiltinModule?.('node:child_process')
  if (found === undefined)
    throw withCode(
      'NOT_SUPPORTED',
      new Error('stdio: this runtime cannot start a server as a child process; use http(url)'),
    )
  return found
}

/** Process groups to be killed when this process exits. */
const groups = new Set<number>()
let watching = false

/** The channel to a server that is started as a child process. It leads its own process group, so that its children end with it. */
export class ProcessChannel implements Channel {
  readonly #child: ChildProcess
  readonly #streams: StreamChannel
  readonly #exitTimeout: number
  readonly #status: ProcessStatus
  #closing = false
  /** Resolves when the process has exited and its output is read: with the exit code, or null. */
  readonly exited: Promise<number | null>

  get connection(): ConnectionFacts {
    return this.#streams.connection
  }

  constructor(command: string, args: readonly string[], options: ProcessOptions = {}) {
    const {
      cwd,
      env,
      framing = 'lines',
      maxMessage = MAX_MESSAGE,
      exitTimeout = EXIT_TIMEOUT,
    } = options
    this.#exitTimeout = exitTimeout
    this.#status = { command: [command, ...args].join(' '), stderr: '' }
    const inherited = Object.fromEntries(INHERITED.map((name) => [name, process.env[name]]))
    const child = childProcess().spawn(command, args, {
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
      keepReading: true,
    })
    // The streams channel removes its listeners when it is closed; these stay, so that a late EPIPE cannot end this process.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', ignore)
    // When a process exits, Node reads and drops its output if nobody has listened yet. See `receive`.
    child.stdout.on('readable', ignore)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#status.stderr = (this.#status.stderr + text).slice(-MAX_STDERR)
      // An exception in the callback must not stop the reading.
      callHook(() => options.stderr?.(text), ignore)
    })
    if (child.pid !== undefined) watch(child.pid)
    this.exited = new Promise((resolve) => {
      child.on('error', (error) => {
        this.#status.error = error
        resolve(null)
      })
      const ended = (code: number | null) => {
        // Ends the children that the server has left behind.
        if (child.pid !== undefined) endGroup(child.pid)
        // A daemon that it has started may hold the other ends: ours would keep this process alive.
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
        resolve(code)
      }
      // A child of the server may keep its pipes open, so that `close` never fires.
      let grace: ReturnType<typeof setTimeout> | undefined
      child.on('exit', (code, signal) => {
        this.#status.code = code
        this.#status.signal = signal
        grace = setTimeout(ended, OUTPUT_TIMEOUT, code)
      })
      child.on('close', (code) => {
        clearTimeout(grace)
        ended(code)
      })
    })
  }

  receive(receiver: Receiver): void {
    const note = (text: string) => {
      if (/^\s*[[{]/.test(text)) this.#status.hasSentMessage = true
      else this.#status.firstInvalidLine ??= copyString(truncate(text))
    }
    this.#streams.receive({
      frame(frame) {
        note(frame)
        receiver.frame(frame)
      },
      malformed: (error, head, tail) => {
        if (head !== '') note(head)
        receiver.malformed(error, head, tail)
      },
      ready: () => receiver.ready?.(),
      drained: () => receiver.drained?.(),
      closed: () => {}, // a broken pipe: the exit of the process is reported instead, which says more
    })
    this.#child.stdout?.off('readable', ignore)
    let reported = false
    const closed = () => {
      if (reported) return
      reported = true
      const exited = () => withCode('SERVER_EXITED', new Error(this.diagnose()))
      receiver.closed(this.#closing ? undefined : exited())
    }
    void this.exited.then(closed)
    // A server that has closed its stdout can send no more responses, even if it keeps running.
    const closedOutput = () => {
      if (this.#status.code === undefined) closed()
    }
    // In the next turn: if this process was suspended, the exit of the server is noticed only then.
    void this.#streams.ended.then(() =>
      setTimeout(() => nextTurn(closedOutput), OUTPUT_TIMEOUT).unref(),
    )
  }

  send(frame: string, message?: SentMessage): void {
    this.#streams.send(frame, message)
  }

  get congested(): boolean {
    return this.#streams.congested
  }

  get full(): boolean {
    return this.#streams.full
  }

  diagnose(): string {
    return explain(this.#status)
  }

  /** Shuts the server down as the specification requires: closes its stdin, then sends SIGTERM, then SIGKILL to the whole group. */
  async close(): Promise<void> {
    if (this.#closing) {
      await this.exited
      return
    }
    this.#closing = true
    const { pid } = this.#child
    if (pid === undefined) return
    const terminating = setTimeout(() => signalGroup(pid, 'SIGTERM'), this.#exitTimeout)
    const killing = setTimeout(() => signalGroup(pid, 'SIGKILL'), 2 * this.#exitTimeout)
    // A server that does not read its stdin would block this forever.
    await Promise.race([this.#streams.close(), this.exited])
    this.#child.stdin?.end()
    this.#child.stdout?.off('readable', ignore).resume() // so that the server can finish writing
    await this.exited
    clearTimeout(terminating)
    clearTimeout(killing)
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    if (!WINDOWS) return void process.kill(-pid, signal)
    const args = ['/pid', String(pid), '/T', '/F']
    // Without a listener, a missing taskkill would end this process.
    const options = { stdio: 'ignore', windowsHide: true } as const
    childProcess().spawn('taskkill', args, options).on('error', ignore)
  } catch {
    // The process has exited already.
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
