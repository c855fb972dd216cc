import { type ChildProcess, spawn } from 'node:child_process'
import { Connection } from './connection.js'
import type { Recording } from './recording.js'

const WINDOWS = process.platform === 'win32'
/** Milliseconds for a server to exit before it is killed, if that is not what is checked. */
const CLOSE_TIMEOUT = 500
/** Milliseconds to read the rest after the server has exited: its children may keep its pipes open. */
const OUTPUT_TIMEOUT = 500
const MAX_STDERR = 64 * 1024
/** Bytes that the server has not read. */
const MAX_WAITING = 8 * 1024 * 1024

/** Process groups that still run. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) kill(child, 'SIGKILL')
})

/** A server on stdio that was started for one probe, as the leader of a process group. */
export class ProcessConnection extends Connection {
  readonly #child: ChildProcess
  #stderr = ''
  #isEndedByUs = false
  /** Resolves when it has exited and its output was read, or when it could not be started. */
  readonly exited: Promise<void>
  #hasExited = false

  constructor(
    [command = '', ...args]: readonly string[],
    env: NodeJS.ProcessEnv,
    recording: Recording,
    timeout: number,
  ) {
    super(recording, timeout)
    const child = spawn(command, args, {
      stdio: 'pipe',
      env,
      detached: !WINDOWS,
      windowsHide: true,
    })
    this.#child = child
    running.add(child)
    recording.event('spawn', { argv: [command, ...args], pid: child.pid })
    // A failed write shows up as a missing response.
    child.stdin.on('error', () => {})
    child.stdout.on('data', (bytes: Buffer) => this.receive(bytes))
    child.stdout.on('error', () => {})
    // Delayed: if the server is exiting, the exit is reported instead, and stderr has been read.
    const closedOutput = () => {
      if (child.exitCode === null && child.signalCode === null)
        this.end('the server closed its output')
    }
    // In the next turn: if this process was suspended, the exit of the server is noticed only then.
    child.stdout.on('end', () => {
      setTimeout(() => setImmediate(closedOutput), OUTPUT_TIMEOUT).unref()
    })
    child.stderr.on('data', (bytes: Buffer) => {
      recording.stderr(bytes)
      this.#stderr = (this.#stderr + bytes.toString('utf8')).slice(-MAX_STDERR)
    })
    child.stderr.on('error', () => {})
    this.exited = this.#untilExit(child)
  }

  #untilExit(child: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      const finish = (reason: string) => {
        clearTimeout(grace)
        if (this.#hasExited) return
        this.#hasExited = true
        this.end(reason)
        this.recording.end()
        kill(child, 'SIGKILL') // its children
        running.delete(child)
        resolve()
      }
      let grace: ReturnType<typeof setTimeout> | undefined
      child.on('error', ({ message }) => {
        if (child.pid === undefined) finish(message)
      })
      child.on('exit', (code, signal) => {
        // A server that the check has killed may have been writing.
        if (signal === 'SIGKILL' && this.#isEndedByUs) this.recording.ignore('partial-line')
        this.recording.event('exit', { code, signal })
        const how = signal === null ? `with code ${String(code)}` : `by ${signal}`
        grace = setTimeout(finish, OUTPUT_TIMEOUT, `the server exited ${how}`)
        child.on('close', () => finish(`the server exited ${how}`))
      })
    })
  }

  /** The last lines that the server wrote to stderr. */
  get stderr(): string {
    return this.#stderr
  }

  get hasExited(): boolean {
    return this.#hasExited
  }

  protected write(text: string): void {
    const { stdin } = this.#child
    if (stdin === null || stdin.writableEnded || stdin.destroyed) return
    // A server that does not read must not fill the memory.
    if (stdin.writableLength < MAX_WAITING) stdin.write(`${text}\n`)
  }

  endInput(): void {
    this.recording.event('end', { dir: 'in' })
    this.#child.stdin?.end()
  }

  signal(signal: NodeJS.Signals): void {
    this.recording.event('signal', { signal })
    this.#child.kill(signal)
  }

  /** Milliseconds for a server to exit after its input has ended, or after SIGTERM. */
  get exitTimeout(): number {
    return this.timeout / 2
  }

  /** Whether the server exits by itself. */
  async exits(timeout = this.exitTimeout): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeout)
    })
    await Promise.race([this.exited, late])
    clearTimeout(timer)
    return this.#hasExited
  }

  async close(): Promise<void> {
    this.#isEndedByUs = true
    this.#child.stdin?.end()
    if (this.#child.pid !== undefined && !(await this.exits(CLOSE_TIMEOUT)))
      kill(this.#child, 'SIGKILL')
    await this.exited
  }
}

/** Ends the process group. */
function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  const { pid } = child
  if (pid === undefined) return
  try {
    if (!WINDOWS) return void process.kill(-pid, signal)
    const args = ['/pid', String(pid), '/T', '/F']
    spawn('taskkill', args, { stdio: 'ignore', windowsHide: true }).on('error', () => {})
  } catch {
    // It has exited.
  }
}
